import { link, overview } from "../data/live.ts";

/** What everybody must know, whatever they look at. */
export const Banner = () => {
  if (link.value === "away")
    return (
      <div class="banner" role="alert">
        The server does not answer. What you see is as it was; the page goes on by itself when the server is back. If it
        was stopped, start it with <code>slipway up</code>: nothing is lost.
      </div>
    );
  const server = overview.value?.server;
  if (server === undefined) return null;
  if (server.state !== "running")
    return (
      <div class="banner note" role="status">
        {server.state === "stopping"
          ? "The server is stopping: running tasks end, nothing new begins."
          : "The disk is full: the server keeps what it has and takes nothing new."}{" "}
        {server.detail ?? ""}
      </div>
    );
  const problem = server.clustersFile?.problem;
  return problem == null ? null : (
    <div class="banner note" role="status">
      clusters.yaml was not taken over as it is now: {problem}
    </div>
  );
};
