import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { RunCommand } from "../../src/managers/commands.ts";
import { createCommands } from "../../src/managers/commands.ts";
import { slurmDirectives } from "../../src/managers/slurm/directives.ts";
import { slurmIsTransient } from "../../src/managers/slurm/driver/failures.ts";
import { createSlurmProvider } from "../../src/managers/slurm/driver/provider.ts";
import { providerContract, scriptRequest } from "../contract/provider-contract.ts";
import { freePorts } from "./lab/daemons.ts";
import { skipReason, startSlurm } from "./lab/slurm.ts";
import { SLURM_WAITING } from "../../src/managers/slurm/waiting-reasons.ts";

for (const accounting of [false, true])
  providerContract({
    name: `slurm ${accounting ? "with" : "without"} slurmdbd`,
    reasons: SLURM_WAITING,
    unavailable: skipReason({ accounting }),
    boot: async () => {
      const lab = await startSlurm({ nodes: 2, accounting });
      const execute = createCommands({ env: lab.env, isTransient: slurmIsTransient });
      let commands = 0;
      const run: RunCommand = (...words) => {
        commands += 1;
        return execute(...words);
      };
      return {
        create: async () => createSlurmProvider({ run, mineOnly: accounting }),
        request: (job) => scriptRequest(job, slurmDirectives, { memory: 50 * 1024 * 1024 }),
        unreachable: async () => {
          // the same cluster at a port where nobody listens
          const [port] = await freePorts(1);
          const text = await readFile(lab.env["SLURM_CONF"]!, "utf8");
          const config = join(lab.root, "conf", "elsewhere.conf");
          // how many seconds commands wait for a controller
          const changed = text
            .replace(/^SlurmctldPort=.*$/m, `SlurmctldPort=${port}`)
            .replace(/^MessageTimeout=.*\n/m, "");
          await writeFile(config, `${changed}\nMessageTimeout=2\n`);
          const env = { ...lab.env, SLURM_CONF: config };
          const impatient = createCommands({ env, isTransient: slurmIsTransient, pausesMs: [] });
          return { provider: createSlurmProvider({ run: impatient }) };
        },
        commands: () => commands,
        stop: () => lab.stop(),
      };
    },
    held: ["--hold"],
    waiting: ["--begin=now+1hour"],
    refused: {
      options: ["--partition=nowhere"],
      words: /^invalid partition specified: nowhere; .*Invalid partition name/,
    },
    array: { variable: "SLURM_ARRAY_TASK_ID", first: 0 },
    oddName: "ü b'\"$(;)|&=#%,\\x\tend",
  });
