export declare const schemathesis: string;
export declare const installSchemathesis: () => string[];
export declare const jupyter: string;
export declare const installJupyter: () => string[];
export declare const daskPython: string;
export declare const noDask: string | undefined;
export declare const noJobqueue: string | undefined;
export declare const installDask: (apt?: (name: string) => void) => string[];
