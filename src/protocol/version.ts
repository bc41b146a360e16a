/**
 * Versions of the agent's protocol (rule 12). A server speaks the version before its own too: such an agent finishes
 * what it has and drains. Anyone else is refused, with both versions named.
 */
export const PROTOCOL_VERSION = 3;

/** How an agent's connection is told from a client's at the one port (ALPN). */
export const AGENT_PROTOCOL = "slipway-agent";

export type VersionVerdict = "current" | "previous" | "stranger";

export const judgeVersion = (theirs: unknown): VersionVerdict => {
  if (theirs === PROTOCOL_VERSION) return "current";
  return theirs === PROTOCOL_VERSION - 1 ? "previous" : "stranger";
};
