/** Set by the build from package.json; the sources alone, as in unit tests, have no version. */
declare const SLIPWAY_VERSION: string | undefined;

export const VERSION: string = typeof SLIPWAY_VERSION === "string" ? SLIPWAY_VERSION : "0.0.0-source";
