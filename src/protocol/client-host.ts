/**
 * The Host of every request that Slipway's own programs send. On the unix socket it tells them from browsers: a socket
 * that is forwarded to somebody's laptop is asked with the name that stands in the browser, and that is never this one.
 */
export const CLIENT_HOST = "slipway";
