import { chmod, chown, mkdir, readdir, stat, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createHome, type SlipwayHome } from "./slipway-process.ts";

/** `launch`, `jobs`, `tokens` and `sudoers` without a cluster to launch on; test/clusters/launch-*.test.ts have one. */

let slipway: SlipwayHome;

beforeEach(async () => {
  slipway = await createHome();
});
afterEach(() => slipway.cleanup());

const spec = async (text: string): Promise<string> => {
  await writeFile(join(slipway.cwd, "spec.yaml"), text);
  return "spec.yaml";
};

const codeOf = (stderr: string): string => (JSON.parse(stderr) as { error: { code: string } }).error.code;

describe("launch without a cluster", () => {
  it("a bad file is refused with its line, before a server is needed; a good one needs a server", async () => {
    const bad = await slipway.run(["launch", await spec("command: x\nslots: many\n")]);
    expect(bad).toMatchObject({ status: 2, stdout: "" });
    expect(bad.stderr).toContain("spec.yaml:2:8: slots:");
    const files = await slipway.run(["launch", await spec("command: x\nfiles:\n  - { path: a, from: nonsuch }\n")]);
    expect(files.stderr).toMatch(/spec\.yaml:3:\d+: files\[0\]\.from: cannot read .*nonsuch/);
    const lonely = await slipway.run(["launch", await spec("command: x\n"), "--json"]);
    expect(lonely.status).toBe(3);
    expect(codeOf(lonely.stderr)).toBe("no-server");
  });

  it("the local cluster launches nothing, lists are empty, and unknown launches are no crash", async () => {
    expect((await slipway.run(["up"])).status).toBe(0);
    const local = await slipway.run(["launch", await spec("command: x\n"), "--json"]);
    expect(local.status).toBe(2);
    expect(JSON.parse(local.stderr)).toMatchObject({ error: { code: "bad-value", facts: { key: "cluster" } } });
    expect(await slipway.json(["jobs", "list"])).toEqual([]);
    expect((await slipway.run(["jobs", "list"])).stdout).toBe("no jobs\n");
    for (const verb of ["show", "logs", "cancel", "clean"]) {
      const unknown = await slipway.run(["jobs", verb, "7", "--json"]);
      expect(unknown.status).toBe(2);
      expect(codeOf(unknown.stderr)).toBe("no-such-launch");
    }
    expect((await slipway.run(["jobs", "show", "x"])).status).toBe(2);
  });

  it("tokens are told once, replaced and taken back; root has none", async () => {
    expect((await slipway.run(["up"])).status).toBe(0);
    const add = async (): Promise<{ user: string; token: string }> => {
      const { stdout } = await slipway.run(["tokens", "add", "daemon"]);
      return JSON.parse(stdout) as { user: string; token: string };
    };
    const [first, second] = [await add(), await add()];
    expect(first.user).toBe("daemon");
    expect(first.token).toMatch(/^[\w-]{43}$/);
    expect(second.token).not.toBe(first.token);
    expect((await slipway.json<{ user: string }[]>(["tokens", "list"])).map(({ user }) => user)).toEqual(["daemon"]);
    const again = await slipway.run(["tokens", "add", "root", "--json"]);
    expect(codeOf(again.stderr)).toBe("user-refused");
    expect((await slipway.run(["tokens", "remove", "daemon"])).status).toBe(0);
    expect((await slipway.run(["tokens", "remove", "daemon"])).status).toBe(2);
    expect(await slipway.json(["tokens", "list"])).toEqual([]);
  });

  it("root writes a token with the rights of the user whose it is, wherever their links lead", async (ctx) => {
    if (process.getuid?.() !== 0) ctx.skip("needs root");
    expect((await slipway.run(["up"])).status).toBe(0);
    const [theirs, roots] = [join(slipway.cwd, "theirs"), join(slipway.cwd, "roots")];
    await mkdir(theirs);
    await mkdir(roots);
    // the daemon account's uid and gid are 1 everywhere
    await chown(theirs, 1, 1);
    for (let path = theirs; path.startsWith(slipway.root); path = dirname(path))
      await chmod(path, ((await stat(path)).mode & 0o7777) | 0o001);
    await symlink(roots, join(theirs, "link"));
    const led = await slipway.run(["tokens", "add", "daemon", "--to", join(theirs, "link", "remote.json")]);
    expect(led.status).toBe(2);
    expect(await readdir(roots)).toEqual([]);
    const made = await slipway.run(["tokens", "add", "daemon", "--to", join(theirs, "remote.json")]);
    expect(made.status, made.stderr).toBe(0);
    const facts = await stat(join(theirs, "remote.json"));
    expect([facts.uid, facts.mode & 0o777]).toEqual([1, 0o600]);
  });

  it("sudoers are printed for the clusters that need them", async () => {
    const none = await slipway.run(["sudoers", "--user", "daemon"]);
    expect(none.status).toBe(2);
    expect(none.stderr).toContain("no cluster of type slurm or pbs");
    const clusters = join(slipway.cwd, "c.yaml");
    await writeFile(
      clusters,
      "clusters: { hpc: { type: slurm, job_storage_root: /shared/jobs, sudo_authorized: ['%users'] } }\n",
    );
    const { status, stdout } = await slipway.run(["sudoers", "--user", "daemon", "--clusters", clusters]);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^Runas_Alias SLIPWAY_HPC_USERS = %users, !root, !#0$/m);
    expect(stdout).toMatch(/^daemon ALL = \(SLIPWAY_HPC_USERS\) NOPASSWD: SLIPWAY_HPC_COMMANDS$/m);
    expect((await slipway.run(["sudoers", "--user", "root", "--clusters", clusters])).status).toBe(2);
  });

  it("sudoers name the commands where bin of their cluster says they are", async () => {
    const bin = join(slipway.cwd, "bin");
    await mkdir(bin);
    await writeFile(join(bin, "sbatch"), "#!/bin/sh\n", { mode: 0o755 });
    const clusters = join(slipway.cwd, "c.yaml");
    await writeFile(clusters, JSON.stringify({ clusters: { one: { type: "slurm", bin }, two: { type: "pbs", bin } } }));
    const { stdout, stderr } = await slipway.run(["sudoers", "--user", "daemon", "--clusters", clusters]);
    expect(stdout).toContain(`Cmnd_Alias SLIPWAY_ONE_COMMANDS = ${bin}/sbatch, ${bin}/scancel\n`);
    expect(stdout).toContain(`Cmnd_Alias SLIPWAY_TWO_COMMANDS = ${bin}/qsub, ${bin}/qdel\n`);
    expect(stderr).toContain(`scancel is not in ${bin}`);
  });

  it("a job_storage_root that somebody could exchange is refused at start, in sudoers, and with a user's token", async () => {
    const above = join(slipway.cwd, "above");
    const storage = join(above, "jobs");
    await mkdir(storage, { recursive: true });
    // not root's: this account's own, or another's
    if (process.getuid?.() === 0) await chown(above, 54_321, 54_321);
    const clusters = join(slipway.cwd, "c.yaml");
    const declare = (more: object): Promise<void> =>
      writeFile(clusters, JSON.stringify({ clusters: { hpc: { type: "slurm", job_storage_root: storage, ...more } } }));
    await declare({ sudo_authorized: ["%users"] });
    const refusal = { code: "bad-value", facts: { key: "clusters.hpc.job_storage_root" } };
    for (const verb of [["up"], ["sudoers", "--user", "daemon"]]) {
      const { status, stderr } = await slipway.run([...verb, "--clusters", clusters, "--json"]);
      expect(status).toBe(2);
      expect(JSON.parse(stderr)).toMatchObject({ error: refusal });
      expect(stderr).toMatch(/(above|tmp|slw-[^ ]*) (belongs to user \d+, not to root|is writable by users other)/);
    }
    // a server that nobody shares may keep its jobs anywhere, and cannot be shared
    await declare({});
    expect((await slipway.run(["up", "--clusters", clusters])).status).toBe(0);
    const token = await slipway.run(["tokens", "add", "daemon", "--json"]);
    expect(JSON.parse(token.stderr)).toMatchObject({ error: refusal });
    const text = "command: x\ncluster: hpc\nuser: daemon\ncontainer_run_type: none\n";
    const launch = await slipway.run(["launch", await spec(text), "--json"]);
    expect(JSON.parse(launch.stderr)).toMatchObject({ error: { code: "user-refused", facts: { user: "daemon" } } });
  });
});
