import { createHash } from "node:crypto";
import type { TLSSocket } from "node:tls";

/** The hash of the public key that a peer showed: this is pinned, whatever the host name or the clock (rule 16). */
export const pinOf = (socket: TLSSocket): string | undefined => {
  const key = socket.getPeerX509Certificate()?.publicKey.export({ type: "spki", format: "der" });
  return key === undefined ? undefined : createHash("sha256").update(key).digest("base64");
};
