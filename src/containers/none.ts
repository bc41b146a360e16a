import type { ContainerRuntime } from "./runtime.ts";

/** No container: the node itself, with a TMPDIR of the rank's own. */
export const none: ContainerRuntime = (ask) => ({
  lines: ["seen=$job", "run=(env)"],
  stop: [],
  remove: [],
  notes: ask.binds.length === 0 ? [] : ["bind_mounts have no effect without a container"],
});
