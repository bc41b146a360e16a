import { chmod, copyFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createCommands, type RunCommand } from "../../src/managers/commands.ts";
import { oarDirectives } from "../../src/managers/oar/directives.ts";
import { oarIsTransient } from "../../src/managers/oar/driver/failures.ts";
import { createOarProvider } from "../../src/managers/oar/driver/provider.ts";
import { providerContract, scriptRequest } from "../contract/provider-contract.ts";
import { freePorts } from "./lab/daemons.ts";
import { skipReason, startOar } from "./lab/oar.ts";
import { becomeUser } from "./lab/users.ts";
import { OAR_WAITING } from "../../src/managers/oar/waiting-reasons.ts";

providerContract({
  name: "OAR",
  reasons: OAR_WAITING,
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
          memory: 50 * 1024 * 1024,
          own: { memoryPerCorePropertyName: "memcore", property: "drain='NO'" },
        }),
      unreachable: async () => {
        // its commands read one file: here they find another one, with ports where nobody listens
        const [database, server] = await freePorts(2);
        const config = join(lab.root, "elsewhere.conf");
        await copyFile("/etc/oar/oar.conf", config);
        await writeFile(config, `DB_PORT="${database}"\nSERVER_PORT="${server}"\n`, { flag: "a" });
        await chmod(config, 0o644);
        const elsewhere = [
          "unshare",
          "--mount",
          "sh",
          "-c",
          'mount --bind "$0" /etc/oar/oar.conf && exec "$@"',
          config,
        ];
        const away = createCommands({
          become: (...words) => [...elsewhere, ...becomeUser(...words)],
          isTransient: oarIsTransient,
          pausesMs: [],
          timeoutMs: 3000,
        });
        const impatient: RunCommand = (argv, options) => away(argv, { ...options, user: lab.user });
        // oarsub waits for its database for ever
        return { provider: createOarProvider({ run: impatient, user: lab.user }), endless: true };
      },
      commands: () => commands,
      stop: () => lab.stop(),
    };
  },
  held: ["--hold"],
  waiting: ["-r", "2030-01-01 00:00:00"],
  refused: { options: ["-q", "nowhere"], words: /The queue nowhere does not exist/ },
  // a user may have two reservations that wait, and an array is as many as it has elements
  array: { variable: "OAR_ARRAY_INDEX", first: 1, waiting: ["--hold"] },
  oddName: 'ü b"$(;)|&=#%,\\x end',
});
