import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as vitest from "vitest";
import { type ClusterConfig, clusterNamed } from "../../src/config/clusters-file.ts";
import { loadClusters } from "../../src/config/load-clusters.ts";
import type * as Contract from "../../src/managers/provider-contract.ts";
import { createProvider } from "../../src/managers/registry.ts";

/** A manager from outside: loaded as users load it, tried with the suite that they get. */

const MODULE = fileURLToPath(new URL("../../examples/managers/task-spooler.mjs", import.meta.url));
const SUITE = new URL("../../dist/provider-contract.js", import.meta.url).href;
const { providerContract, scriptRequest } = (await import(SUITE)) as typeof Contract;

const TSP = "/usr/bin/tsp";

/** A home whose clusters.yaml names a copy of the module: a checkout may be where others can write. */
const clusterAt = async (root: string, socket: string): Promise<ClusterConfig> => {
  await mkdir(join(root, "home"), { recursive: true });
  await copyFile(MODULE, join(root, "task-spooler.mjs"));
  const here = { type: "task-spooler", bin: join(root, "bin"), socket };
  const text = JSON.stringify({ modules: [join(root, "task-spooler.mjs")], clusters: { here } });
  await writeFile(join(root, "home", "clusters.yaml"), text);
  return clusterNamed(await loadClusters({ home: join(root, "home") }), "here");
};

providerContract(vitest, {
  name: "task-spooler, from outside (rows 003-17 and 003-23)",
  unavailable: existsSync(TSP) ? undefined : "task-spooler is not installed",
  boot: async () => {
    const root = await mkdtemp(join(tmpdir(), "slw-tsp-"));
    const calls = join(root, "calls");
    await mkdir(join(root, "bin"));
    await writeFile(calls, "");
    const counting = `#!/bin/sh\necho "$1" >>'${calls}'\nexec ${TSP} "$@"\n`;
    await writeFile(join(root, "bin", "tsp"), counting, { mode: 0o755 });
    const socket = join(root, "socket");
    const cluster = await clusterAt(root, socket);
    const tsp = (...words: string[]): string =>
      execFileSync(TSP, words, { env: { ...process.env, TS_SOCKET: socket, TMPDIR: root }, encoding: "utf8" }).trim();
    tsp("-S", "8");
    // what waits behind a running job can be removed
    const first = tsp("sleep", "100000");
    return {
      create: async () => createProvider(cluster),
      request: (job) => scriptRequest(job, (ask) => cluster.manager.batch!.directives(ask)),
      commands: () => readFileSync(calls, "utf8").split("\n").length - 1,
      unreachable: async () => ({ provider: createProvider(await clusterAt(root, "/nonexistent/socket")) }),
      stop: async () => {
        tsp("-k", first);
        tsp("-K");
        // its server takes a moment to end, and removes files of its own
        await rm(root, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 });
      },
    };
  },
  waiting: ["-N", "1000"],
  oddName: "ü b'\"$(;)|&=#%,\\x\tend[1]",
  skip: {
    "shows a held job as held": "task-spooler holds nothing back",
    "says why a job is held, and why one waits, in words that have a plain meaning": "task-spooler holds nothing back",
    "refuses with the manager's own words": "task-spooler takes every job",
    "lets the manager judge a job without running it": "task-spooler takes every job",
  },
});
