import { createCommands, type RunCommand } from "../../src/managers/commands.ts";
import { pbsDirectives } from "../../src/managers/pbs/directives.ts";
import { pbsIsTransient } from "../../src/managers/pbs/driver/failures.ts";
import { createPbsProvider } from "../../src/managers/pbs/driver/provider.ts";
import { providerContract, scriptRequest } from "../contract/provider-contract.ts";
import { startPbs, type PbsLabOptions } from "./lab/pbs.ts";
import { PBS_WAITING } from "../../src/managers/pbs/waiting-reasons.ts";

const BUILDS: Readonly<Record<string, PbsLabOptions>> = {
  "of today, without history": {},
  "with history, whose JSON is none, and which prints one job of several": {
    history: true,
    json: "release",
    onlyFirst: true,
  },
};

const FORGOTTEN = "without history only who looked in time knows; jobs-pbs.test.ts has it";
const SKIPPED = {
  "runs a job to its end, and says when it has ended": FORGOTTEN,
  "says of a job that failed with which exit code": FORGOTTEN,
};

for (const [name, build] of Object.entries(BUILDS))
  providerContract({
    name: `pbs ${name}`,
    reasons: PBS_WAITING,
    boot: async () => {
      const lab = await startPbs({ nodes: 2, ...build });
      const execute = createCommands({ env: lab.env, isTransient: pbsIsTransient });
      let commands = 0;
      const run: RunCommand = (...words) => {
        commands += 1;
        return execute(...words);
      };
      return {
        create: async () => createPbsProvider({ run }),
        request: (job) => scriptRequest(job, pbsDirectives, { memory: 50 * 1024 * 1024 }),
        unreachable: async () => {
          await lab.cutServer();
          const impatient = createCommands({ env: lab.env, isTransient: pbsIsTransient, pausesMs: [10] });
          return { provider: createPbsProvider({ run: impatient }), mend: () => lab.mendServer() };
        },
        commands: () => commands,
        stop: () => lab.stop(),
      };
    },
    skip: build.history === true ? {} : SKIPPED,
    held: ["-h"],
    waiting: ["-a", "209912312359"],
    refused: { options: ["-q", "nowhere"], words: /Unknown queue/ },
    oddName: "._+-1e5",
    strangerId: (n) => `${900_000_000 + n}.pbshead`,
  });
