import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

/**
 * Several agents on one machine, as one job: what a manager's launcher does on the nodes of a cluster. Signals go to
 * all of them; the job ends with the last. An agent whose parent is gone notices that on its standard input, and ends
 * too.
 */
export const runAgents = async (count: number, settings: string): Promise<void> => {
  const agents: ChildProcess[] = [];
  for (let i = 0; i < count; i += 1)
    agents.push(
      spawn(process.execPath, [process.argv[1]!, "--settings", settings], {
        stdio: ["pipe", "inherit", "inherit"],
        env: { ...process.env, SLIPWAY_AGENT_OF_SEVERAL: String(i) },
      }),
    );
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR2"] as const)
    process.on(signal, () => {
      for (const agent of agents) agent.kill(signal);
    });
  const codes = await Promise.all(agents.map(async (agent) => (await once(agent, "exit"))[0] as number | null));
  process.exit(codes.find((code) => code !== 0) ?? 0);
};

/** Calls back when the process that started this agent beside others is gone. */
export const onParentGone = (then: () => void): void => {
  if (process.env["SLIPWAY_AGENT_OF_SEVERAL"] === undefined) return;
  delete process.env["SLIPWAY_AGENT_OF_SEVERAL"];
  process.stdin.on("end", then).on("error", then).resume();
};
