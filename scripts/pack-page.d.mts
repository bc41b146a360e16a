export declare const packPage: (directory: string) => number;
