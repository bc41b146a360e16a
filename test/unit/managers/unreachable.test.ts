import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { combineClusters, readClustersFile } from "../../../src/config/clusters-file.ts";
import { CommandError } from "../../../src/managers/commands.ts";
import type { Provider } from "../../../src/managers/provider.ts";
import { createProvider, type ProviderOptions } from "../../../src/managers/registry.ts";

/**
 * Drivers whose manager does not answer: its programs are missing, hang, or say so. The contract suite has the same
 * against real ones (test/clusters/contract-*.test.ts).
 */

/** What each prints then, as we saw it, and with which exit statuses. */
const SILENT = {
  slurm: {
    programs: ["sbatch", "squeue", "scancel", "sinfo", "sacct"],
    words: "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
    codes: {},
  },
  pbs: {
    programs: ["qsub", "qstat", "qdel", "pbsnodes"],
    words: "Connection refused\nqstat: cannot connect to server pbshead (errno=15010)",
    codes: { qsub: 162, qdel: 162, qstat: 255 },
  },
  sge: {
    programs: ["qsub", "qstat", "qdel", "qhost", "qconf", "qacct"],
    words: `error: commlib error: got select error (Connection refused)
error: unable to send message to qmaster using port 6444 on host "head": got send error`,
    codes: {},
  },
  oar: {
    programs: ["oarsub", "oarstat", "oardel", "oarnodes"],
    words: "DBI connect failed: could not connect to server: Connection refused",
    codes: { oarsub: 6, oarstat: 2 },
  },
} as const;

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "slw-unreachable-"));
  await writeFile(join(root, "job.sh"), "#!/bin/sh\n", { mode: 0o755 });
});
// commands that ran beside the one that gave up may still end
afterEach(() => rm(root, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));

describe.each(Object.entries(SILENT))("%s: a manager that does not answer", (type, { programs, words, codes }) => {
  const provider = (bin: string, options: ProviderOptions = {}): Provider => {
    const layer = readClustersFile(JSON.stringify({ clusters: { x: { type, bin } } }), "c.yaml");
    return createProvider(combineClusters([layer]).clusters.get("x")!, options)!;
  };
  const install = async (line: (program: string) => string): Promise<string> => {
    const bin = join(root, "bin");
    await mkdir(bin);
    for (const program of programs) {
      const path = join(bin, program);
      await writeFile(path, `#!/bin/sh\necho ${program} >>${root}/calls\n${line(program)}\n`);
      await chmod(path, 0o755);
    }
    return bin;
  };
  const job = () => ({ name: "slw-1", directory: root, command: [], script: join(root, "job.sh") });
  const questions: Readonly<Record<string, (driver: Provider) => Promise<unknown>>> = {
    describe: (driver) => driver.describe(),
    poll: (driver) => driver.poll(["7", "8"]),
    cancel: (driver) => driver.cancel(["7"]),
    list: (driver) => driver.list("slw-"),
  };
  const handing: typeof questions = {
    submit: (driver) => driver.submit(job()),
    tryOut: (driver) => driver.tryOut!(job()),
  };
  const unreachable = (detail: RegExp) => ({
    code: "cluster-unreachable",
    facts: { detail: expect.stringMatching(detail) },
  });

  it.each(Object.entries({ ...questions, ...handing }))(
    "%s, by what it says, after a few tries",
    async (_name, ask) => {
      const code = (program: string): number => (codes as Readonly<Record<string, number>>)[program] ?? 1;
      const bin = await install((program) => `cat >&2 <<'END'\n${words}\nEND\nexit ${code(program)}`);
      await expect(ask(provider(bin, { pausesMs: [1, 1] }))).rejects.toMatchObject(unreachable(/[Cc]onnect/));
      const counts = new Map<string, number>();
      for (const program of (await readFile(join(root, "calls"), "utf8")).trim().split("\n"))
        counts.set(program, (counts.get(program) ?? 0) + 1);
      // some describe themselves with several commands at once, two of them of one program; the first to give up ends
      // it
      expect(Math.max(...counts.values())).toBeGreaterThanOrEqual(3);
      expect(Math.max(...counts.values())).toBeLessThanOrEqual(6);
    },
  );

  it.each(Object.entries({ ...questions, ...handing }))(
    "%s, because its programs are not there",
    async (_name, ask) => {
      await expect(ask(provider(join(root, "none")))).rejects.toMatchObject(unreachable(/not found/));
    },
  );

  it.each(Object.entries(questions))("%s, because its programs do not end", async (_name, ask) => {
    const bin = await install(() => "exec sleep 1000");
    const impatient = provider(bin, { timeoutMs: 100, pausesMs: [] });
    await expect(ask(impatient)).rejects.toMatchObject(unreachable(/did not answer within/));
  });

  it.each(Object.entries(handing))("%s: of a submission that does not end nothing is known", async (_name, ask) => {
    const bin = await install(() => "exec sleep 1000");
    const error: unknown = await ask(provider(bin, { timeoutMs: 100, pausesMs: [1] })).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(CommandError);
    expect(error).toMatchObject({ timedOut: true });
    // killed at once on a busy machine, it may not have begun
    expect(await readFile(join(root, "calls"), "utf8").catch(() => "")).toMatch(/^\w*\n?$/);
  });
});
