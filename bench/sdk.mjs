// The client that the package offers to programs.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "./slipway.mjs";

export const connectTo = async (slipway) => {
  const { connect } = await import(pathToFileURL(join(root, "dist", "client.js")).href);
  return connect({ home: slipway.home });
};

/** Submits a run and waits for its end; resolves with the run as the server shows it, and when it was accepted. */
export const runThrough = async (client, document) => {
  const begun = performance.now();
  const { views } = await client.submitAndWatch(document);
  const accepted = performance.now() - begun;
  let last;
  for await (const view of views) last = view;
  return { ms: performance.now() - begun, accepted, run: last };
};
