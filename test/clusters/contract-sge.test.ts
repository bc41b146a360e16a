import { createCommands, type RunCommand } from "../../src/managers/commands.ts";
import { sgeDirectives } from "../../src/managers/sge/directives.ts";
import { sgeIsTransient } from "../../src/managers/sge/driver/failures.ts";
import { createSgeProvider } from "../../src/managers/sge/driver/provider.ts";
import { providerContract, scriptRequest } from "../contract/provider-contract.ts";
import { freePorts } from "./lab/daemons.ts";
import { skipReason, startSge } from "./lab/sge.ts";
import { SGE_WAITING } from "../../src/managers/sge/waiting-reasons.ts";

providerContract({
  name: "Grid Engine",
  reasons: SGE_WAITING,
  unavailable: skipReason(),
  boot: async () => {
    const lab = await startSge({ nodes: 2 });
    // what a site's profile would set; clusters.yaml has the rest
    const { SGE_QMASTER_PORT = "", SGE_EXECD_PORT = "", SGE_ROOT = "", SGE_CELL = "" } = lab.env;
    const execute = createCommands({ env: { SGE_QMASTER_PORT, SGE_EXECD_PORT }, isTransient: sgeIsTransient });
    let commands = 0;
    const run: RunCommand = (...words) => {
      commands += 1;
      return execute(...words);
    };
    return {
      create: async () => createSgeProvider({ run, bin: lab.bin, root: SGE_ROOT, cell: SGE_CELL, cluster: "lab" }),
      request: (job) =>
        scriptRequest(job, sgeDirectives, {
          memory: 50 * 1024 * 1024,
          own: { parallelEnvironment: "smp", memResource: "mem_mb" },
        }),
      unreachable: async () => {
        const [port] = await freePorts(1);
        const impatient = createCommands({
          env: { SGE_QMASTER_PORT: String(port), SGE_EXECD_PORT },
          isTransient: sgeIsTransient,
          pausesMs: [10],
        });
        return { provider: createSgeProvider({ run: impatient, bin: lab.bin, root: SGE_ROOT, cell: SGE_CELL }) };
      },
      commands: () => commands,
      stop: () => lab.stop(),
    };
  },
  held: ["-h"],
  waiting: ["-a", "203001010000"],
  refused: {
    options: ["-q", "nowhere.q"],
    words: /^Job was rejected because job requests unknown queue "nowhere\.q"$/,
  },
  array: { variable: "SGE_TASK_ID", first: 1 },
  oddName: "b'$(;)|&=#%,<x>end",
});
