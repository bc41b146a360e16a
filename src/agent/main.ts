import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { putBack } from "../extra-authorities.ts";
import { VERSION } from "../protocol/package-version.ts";
import { startAgent } from "./agent.ts";
import { runNodeSpawner } from "./spawner/node-spawner.ts";
import { onParentGone, runAgents } from "./run-agents.ts";
import { readSettings } from "./read-settings.ts";

/** Entry point of dist/agent.cjs: one file, without native code, that a compute node runs with Node alone. */
const main = async (): Promise<void> => {
  putBack();
  const [mode, settingsFile, dashes, ...command] = process.argv.slice(2);
  if (mode === "--stream" && settingsFile !== undefined && dashes === "--" && command.length > 0) {
    // it speaks HTTP, which agents need not load
    const { runStreamed } = await import("../launch/stream/run-streamed.ts");
    process.exit(await runStreamed(settingsFile, command));
  }
  const { values } = parseArgs({
    options: {
      spawner: { type: "boolean" },
      settings: { type: "string" },
      "settings-file": { type: "string" },
      job: { type: "string" },
      agents: { type: "string" },
      cpus: { type: "string" },
      element: { type: "string" },
    },
  });
  if (values.spawner === true) return runNodeSpawner(process.stdin, process.stdout);
  const settings = readSettings(values);
  if (values.agents !== undefined) return runAgents(Number(values.agents), JSON.stringify(settings));
  const bundle = process.argv[1]!;
  const log = (text: string): void => {
    process.stderr.write(`${new Date().toISOString()} ${text}\n`);
  };
  const agent = await startAgent({
    settings,
    version: VERSION,
    nativePath: join(dirname(bundle), "slipway-spawner"),
    nodeEntry: [process.execPath, bundle, "--spawner"],
    log,
  });
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2"] as const)
    // a hangup is meant for this agent; the other signals go to a whole pilot, though not always to all its nodes
    process.on(signal, () => agent.drain(true, `its pilot was told to end (${signal})`, signal !== "SIGHUP"));
  onParentGone(() => agent.drain(true, "the pilot is gone"));
  log(`ended: ${await agent.ended}`);
  // a job that never reached its server has failed, and so has the job of a task whose result no server has
  process.exit(agent.succeeded() ? 0 : 1);
};

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exit(1);
});
