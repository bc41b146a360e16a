import { dirname, join } from "node:path";
import { runProgram } from "../code-cache.ts";

/** Entry point of dist/agent-quick.cjs: starts agent.cjs, which lies beside it, in less time. */
const agent = join(dirname(process.argv[1]!), "agent.cjs");
process.argv[1] = agent;
runProgram(agent);
