export const schemathesis: string;
export const installSchemathesis: () => string[];
