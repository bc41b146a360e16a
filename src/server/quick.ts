import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runProgram } from "../code-cache.ts";

/**
 * Entry point of dist/server.js: starts server.cjs, which lies beside it, in less time. V8's flags are set here, since
 * compiled code counts only for those it was made with. A V8 without one of them ignores it.
 */

/**
 * Code is compiled to its fastest form after this many bytes of it have run, a seventh of V8's own: what a run of one
 * task needs is called once or twice for each, and would stay slow for thousands of them.
 */
setFlagsFromString("--interrupt-budget=20000");
/** A server that comes to rest collects its garbage once, to give back memory: a second time would give back nothing. */
setFlagsFromString("--memory-reducer-single-gc");
/**
 * One that has not yet had a reason to collect does not collect because it rests: its start alone is no reason, and would cost a
 * login node as much as two minutes of rest. V8 takes it for one unless all of these say otherwise. The last of them counts
 * only where the server was started with it (src/cli/server-process.ts): V8's own first limit shrinks as the start goes on. It is said here
 * too so that compiled code suits every use of this program. None keeps V8 from giving back memory at rest once a collection
 * was due.
 */
setFlagsFromString("--no-memory-reducer");
setFlagsFromString("--no-memory-reducer-for-small-heaps");
setFlagsFromString("--initial-old-space-size=64");

runProgram(join(dirname(fileURLToPath(import.meta.url)), "server.cjs"), process.argv[2] === "serve");
