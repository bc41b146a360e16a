/**
 * Versions of the agent's protocol (rule 12). A server also speaks the version before its own: such an agent finishes
 * what it has and drains. Any other version is refused, with both versions named.
 */
export const PROTOCOL_VERSION = 3;

/** Tells an agent's connection from a client's on the shared port (ALPN). */
export const AGENT_PROTOCOL = "slipway-agent";

export type VersionVerdict = "current" | "previous" | "stranger";

export const judgeVersion = (theirs: unknown): VersionVerdict => {
  if (theirs === PROTOCOL_VERSION) return "current";
  return theirs === PROTOCOL_VERSION - 1 ? "previous" : "stranger";
};
