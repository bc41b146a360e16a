/** The home: the directory that holds all state of one server, and the right to be that server. */
export { type HomeClock, systemClock } from "./clock.ts";
export { type ClaimOptions, type ClaimTimes, claimHome, defaultClaimTimes, heldElsewhere } from "./claim.ts";
export type { HomeClaim } from "./hold.ts";
export { type Keys, loadKeys } from "./keys.ts";
export type { Lease } from "./lease.ts";
export { type HomePaths, prepareHome } from "./prepare.ts";
export { MAX_SOCKET_PATH, removeRuntimeDirectory, runtimeDirectory, socketPath } from "./runtime-dir.ts";
export { removeEndpoint, writeEndpoint } from "../protocol/publish-endpoint.ts";
