import { createCommands, type RunCommand } from "../../src/providers/commands.ts";
import { oarDirectives } from "../../src/providers/oar/directives.ts";
import { createOarProvider, oarIsTransient } from "../../src/providers/oar/provider.ts";
import { providerContract, scriptRequest } from "../contract/provider-contract.ts";
import { skipReason, startOar } from "./lab/oar.ts";
import { becomeUser } from "./lab/users.ts";

providerContract({
  name: "OAR",
  unavailable: skipReason(),
  boot: async () => {
    const lab = await startOar({ nodes: 2 });
    const execute = createCommands({ become: becomeUser, isTransient: oarIsTransient });
    let commands = 0;
    // root may not submit
    const run: RunCommand = (argv, options) => {
      commands += 1;
      return execute(argv, { ...options, user: lab.user });
    };
    return {
      create: async () => createOarProvider({ run, user: lab.user }),
      request: (job) =>
        scriptRequest(job, oarDirectives, {
          memoryBytes: 50 * 1024 * 1024,
          oar: { memoryPerCoreProperty: "memcore", property: "drain='NO'" },
        }),
      commands: () => commands,
      stop: () => lab.stop(),
    };
  },
  held: ["--hold"],
  waiting: ["-r", "2030-01-01 00:00:00"],
  refused: { options: ["-q", "nowhere"], words: /The queue nowhere does not exist/ },
  oddName: 'ü b"$(;)|&=#%,\\x end',
});
