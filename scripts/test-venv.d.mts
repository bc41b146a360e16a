export const schemathesis: string;
export const installSchemathesis: () => string[];
export declare const daskPython: string;
export declare const installDask: () => string[];
