import { mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PilotView, RunView, WhyView } from "../../src/api/schemas.ts";
import { createHome, type SlipwayHome } from "../cli/slipway-process.ts";
import { until } from "../until.ts";
import { skipReason, startSlurm, type SlurmLab } from "./lab/slurm.ts";

interface Check {
  readonly ok: boolean;
  readonly checks: readonly {
    readonly what: string;
    readonly queue: string | null;
    readonly ok: boolean;
    readonly detail: string;
    readonly remedy: string | null;
  }[];
}

const reason = skipReason();

const GOOD = `
clusters:
  hpc:
    type: slurm
    fleet-of: cpu
    queues:
      cpu: { partition: batch, nodes: 2, cores: 4, memory: 1G, walltime: 30m, fleet: { max: 2, period: 1s } }
      any: { cores: 1, cleanup: always, fleet: { max: 2, period: 1s } }
`.replace("    fleet-of: cpu\n", "");

const BAD = `
clusters:
  hpc:
    type: slurm
    queues:
      name: { partition: bacth, cores: 1 }
      size: { partition: batch, cores: 9, memory: 20G, gpus: 3, nodes: 50, walltime: 1h }
      option: { partition: batch, cores: 1, options: ["--no-such-option=1"] }
      old: { partition: batch, cores: 1, node: NODE }
  lost: { type: slurm, bin: /no/such/directory, queues: { q: { cores: 1 } } }
  silent: { type: slurm, config: CONF, queues: { q: { cores: 1 } } }
`;

describe.skipIf(reason !== undefined)(
  `slipway clusters check on a real Slurm${reason === undefined ? "" : ` (skipped: ${reason})`}`,
  () => {
    let lab: SlurmLab;
    let home: SlipwayHome;
    beforeAll(async () => {
      lab = await startSlurm({ nodes: 2, bigNodes: 0, plainNodes: 0, gpus: { a100: 2 }, accounting: true });
      home = await createHome();
      await mkdir(home.home, { recursive: true, mode: 0o700 });
      await writeFile(join(home.home, "clusters.yaml"), GOOD);
      expect(await home.run(["up"], { env: lab.env })).toMatchObject({ status: 0, stderr: "" });
    });
    afterAll(async () => {
      await home?.cleanup();
      await lab?.stop();
    });

    const check = (name: string, ...more: string[]): Promise<Check> =>
      home.json<Check>(["clusters", "check", name, ...more], { statuses: [0, 4], timeoutMs: 170_000 });

    it("a good one: every part is proved, a probe of each queue joins and is gone again", async () => {
      const found = await check("hpc", "--probe");
      expect(found.checks.filter(({ ok }) => !ok)).toEqual([]);
      expect(found.ok).toBe(true);
      const about = (what: string, queue: string | null) =>
        found.checks.find((each) => each.what === what && each.queue === queue)?.detail;
      expect(about("programs", null)).toMatch(/\/sbatch, .*\/squeue/);
      expect(about("manager", null)).toMatch(/^slurm\S* \d+\.\d+.*batch/);
      expect(about("server", null)).toMatch(/127\.0\.0\.1, /);
      expect(about("partition", "cpu")).toBe("batch");
      expect(about("partition", "any")).toBe("batch, the default");
      expect(about("limits", "cpu")).toBe("nodes 2, cores 4, memory 1G, walltime 30m");
      expect(about("node", "cpu")).toMatch(/node v\d+/);
      expect(about("submission", "cpu")).toMatch(/to start at .* using 8 processors/);
      expect(about("probe", "cpu")).toMatch(/^n[12](, n[12])?: cpus 4, mem 1G; connected after/);
      expect(about("probe", "any")).toMatch(/^n[12]: cpus 1(,|;)/);

      const text = await home.run(["clusters", "check", "hpc", "--queue", "cpu"], { env: { LANG: "C.UTF-8" } });
      expect(text.status).toBe(0);
      expect(text.stdout).toMatch(/^hpc {2}slurm\n✓ programs/);
      expect(text.stdout).toMatch(/^queue cpu\n✓ partition {3}batch$/m);
      expect(text.stdout).not.toContain("queue any");
      expect((await readdir(join(home.home, "jobs"))).filter((name) => name.startsWith("check-"))).toEqual([]);
    });

    it("what the manager refuses is no reason to run here, whatever fallback says; a silent manager is waited for", async () => {
      const fleet = "fleet: { max: 1, period: 1s }";
      const queues = `wrong: { partition: nowhere, cores: 1, ${fleet} }, account: { account: porj }, qos: { qos: urgnet }, none: { fleet: { max: 0 } }, option: { options: ["--no-such=1"], cores: 1, ${fleet} }, good: { partition: batch, account: proj, qos: low, cores: 1, walltime: 1h, ${fleet} }`;
      const clusters = ["plain", "here", "waits"].map((name) => {
        const fallback = { plain: "", here: "fallback: local, ", waits: "fallback: wait, " }[name];
        return `${name}: { type: slurm, ${fallback}queues: { ${queues} } }`;
      });
      await writeFile(join(home.home, "clusters.yaml"), `clusters: { ${clusters.join(", ")} }\n`);
      await home.run(["down", "--now"]);
      expect(await home.run(["up"], { env: lab.env })).toMatchObject({ status: 0, stderr: "" });
      const ran = join(home.cwd, "ran");
      const submit = async (cluster: string, queue: string): Promise<number> => {
        const words = ["submit", "--cluster", cluster, "--queue", queue, "--", "sh", "-c", `hostname >>'${ran}'`];
        const { stderr } = await home.run(words);
        expect(stderr).not.toContain("warning");
        return Number((await home.json<RunView[]>(["list"]))[0]!.id);
      };
      const why = async (run: number): Promise<WhyView> => home.json<WhyView>(["why", String(run)]);
      // by the description that `up` took: no manager is asked, so it may be away
      await lab.stopController();
      for (const cluster of ["plain", "here", "waits"])
        for (const [queue, words] of Object.entries({
          wrong: /Slurm has no partition 'nowhere'.*\n.*Set partition to one of .*batch/,
          account: /no account 'porj' for this user; did you mean 'proj'\?/,
          qos: /no QOS 'urgnet' for this user; did you mean 'urgent'\?/,
          none: /max: 0/,
        })) {
          const said = await home.run(["submit", "--cluster", cluster, "--queue", queue, "--", "true"]);
          expect(said, `${cluster} ${queue}`).toMatchObject({ status: 2, stdout: "" });
          expect(said.stderr).toMatch(words);
        }
      const asJob = ["submit", "--via", "job", "--cluster", "plain", "--queue", "account", "--", "true"];
      expect((await home.run(asJob)).stderr).toMatch(/no account 'porj' for this user/);
      const long = ["submit", "--cluster", "plain", "--queue", "good", "--time-request", "2h", "--", "true"];
      expect((await home.run(long)).stderr).toMatch(/time-request of 2h is longer than the .* walltime of 1h/);
      expect(await home.json<RunView[]>(["list"])).toEqual([]);
      await lab.startController();
      // what only the manager knows is said by the manager
      const refused: number[] = [];
      for (const cluster of ["plain", "here", "waits"]) refused.push(await submit(cluster, "option"));
      for (const run of refused)
        await until(`why run ${run} waits`, async () => {
          const { cause, detail } = await why(run);
          return cause === "no-pilot" && detail.includes("no-such");
        });
      // nothing of it ran here, or anywhere
      await expect(readFile(ran)).rejects.toThrow("ENOENT");
      await home.run(["cancel", ...refused.map(String)]);

      await lab.stopController();
      const silent = await submit("plain", "good");
      await until("why to tell since when", async () => {
        const { cause, detail } = await why(silent);
        return cause === "no-pilot" && /has not answered for \d+ s|so since \d{4}-\d\d-\d\d/.test(detail);
      });
      await expect(readFile(ran)).rejects.toThrow("ENOENT");
      await lab.startController();
      expect((await home.run(["wait", String(silent)], { timeoutMs: 170_000 })).status).toBe(0);
      const host = (await readFile(ran, "utf8")).trim();
      expect(lab.nodes).toContain(host);
      expect(host).not.toBe(hostname());
      const pilot = (await home.json<PilotView[]>(["pilots", "list"])).at(-1);
      expect(pilot).toMatchObject({ cluster: "plain", queue: "good" });
      expect((await home.run(["down", "--now"])).status).toBe(0);
      await writeFile(join(home.home, "clusters.yaml"), GOOD);
      expect((await home.run(["up"], { env: lab.env })).status).toBe(0);
    });

    it("a bad one: each mistake is named with what to do, exit status 4, and nothing is submitted", async () => {
      const old = join(home.root, "old-node");
      await writeFile(old, "#!/bin/sh\necho v14.2.0\n", { mode: 0o755 });
      const conf = join(home.root, "slurm.conf");
      await writeFile(
        conf,
        "ClusterName=gone\nSlurmctldHost=localhost(127.0.0.1)\nSlurmctldPort=1\nMessageTimeout=2\nNodeName=n1\n",
      );
      await writeFile(join(home.home, "clusters.yaml"), BAD.replace("NODE", old).replace("CONF", conf));
      const { ok, checks } = await check("hpc");
      expect(ok).toBe(false);
      const wrong = Object.fromEntries(
        checks
          .filter((each) => !each.ok)
          .map(({ what, queue, detail, remedy }) => [`${queue} ${what}`, [detail, remedy]]),
      );
      expect(wrong["name partition"]).toEqual([
        "there is no partition 'bacth'; did you mean 'batch'?",
        expect.stringContaining("batch"),
      ]);
      expect(wrong["name submission"]![0]).toMatch(/invalid partition/i);
      expect(wrong["size limits"]![0]).toBe(
        "nodes 50 is more than the 2 of batch; cores 9 is more than the 8 of batch; " +
          "memory 20G is more than the 15.63G of batch; gpus 3 is more than the 2 of batch",
      );
      expect(wrong["size limits"]![1]).toBe("Lower nodes and cores and memory and gpus in clusters.yaml.");
      expect(wrong["size submission"]).toBeDefined();
      expect(wrong["option submission"]![0]).toMatch(/no-such-option/);
      expect(wrong["old node"]![0]).toContain("v14.2.0; agents need 20.19 or newer");
      expect(Object.keys(wrong).sort()).toEqual(
        ["name partition", "name submission", "old node", "option submission", "size limits", "size submission"].sort(),
      );

      const lost = await check("lost");
      expect(lost.checks).toMatchObject([{ what: "programs", ok: false, remedy: expect.stringContaining("`bin`") }]);
      const silent = await check("silent");
      expect(silent.checks.find(({ ok }) => !ok)).toMatchObject({
        what: "manager",
        remedy: expect.stringContaining("squeue"),
      });
      const text = await home.run(["clusters", "check", "lost"], { env: { LANG: "C.UTF-8" } });
      expect(text).toMatchObject({ status: 4, stderr: "" });
      expect(text.stdout).toMatch(/✗ programs {4}sbatch, .*: not found in \/no\/such\/directory\n {14}→ Set `bin`/);
      expect((await lab.run(["squeue", "--noheader", "--states=PD,R"])).stdout).toBe("");

      await writeFile(
        join(home.home, "clusters.yaml"),
        "clusters: { hpc: { type: slurm, queues: { q: { coers: 1 } } } }",
      );
      const broken = await home.run(["clusters", "check", "hpc"]);
      expect(broken.status).toBe(2);
      expect(broken.stderr).toMatch(/clusters\.yaml:1:\d+: unknown key 'coers'; did you mean 'cores'\?/);
      await writeFile(join(home.home, "clusters.yaml"), GOOD);
    });

    it("a prologue that fails ends its pilot with its message; a pilot that lives keeps its terms when its queue changes", async () => {
      const fleet = "fleet: { max: 2, period: 1s }";
      const write = (walltime: string, logs: string): Promise<void> =>
        writeFile(
          join(home.home, "clusters.yaml"),
          `clusters: { hpc: { type: slurm, queues: {
            broken: { cores: 1, ${fleet}, prologue: ["echo there is no module foo >&2; (exit 7)", "export A=1"] },
            lives: { cores: 1, walltime: ${walltime}, log-directory: ${logs}, cleanup: always, ${fleet} } } } }\n`,
        );
      const [before, after] = [join(home.root, "logs-before"), join(home.root, "logs-after")];
      await Promise.all([before, after].map((path) => mkdir(path)));
      await write("30m", before);
      expect((await home.run(["clusters", "reload"])).stdout).toContain("hpc/broken: added");
      const add = async (queue: string): Promise<string> =>
        (await home.json<PilotView[]>(["pilots", "add", "--cluster", "hpc", "--queue", queue]))[0]!.id;
      const of = async (id: string): Promise<PilotView> =>
        (await home.json<PilotView[]>(["pilots", "list"])).find((each) => each.id === id)!;
      const bad = await add("broken");
      const failed = await until("the pilot to fail", async () => {
        const pilot = await of(bad);
        return pilot.state === "FAILED" ? pilot : undefined;
      });
      expect(failed.reason).toMatch(
        /the prologue failed with exit status 7 at: \( exit 7 \) \(there is no module foo\)/,
      );
      const why = await home.json<WhyView>(["why", "pilot", bad]);
      expect(why).toMatchObject({
        cause: "failed",
        detail: expect.stringContaining("there is no module foo") as string,
      });

      const id = await add("lives");
      const lives = await until("an agent", async () => {
        const pilot = await of(id);
        return pilot.agents.length > 0 ? pilot : undefined;
      });
      expect(await home.json<WhyView>(["why", "job", lives.nativeId!])).toMatchObject({ of: { kind: "pilot", id } });
      expect(await readdir(before)).toHaveLength(1);
      await write("20m", after);
      expect((await home.run(["clusters", "reload"])).stdout).toMatch(/hpc\/lives: walltime 30m → 20m/);
      expect((await of(id)).ends).toBe(lives.ends);
      expect((await home.run(["pilots", "cancel", id])).status).toBe(0);
      // its own directory goes, as it was promised
      await until("its directory to go", async () => (await readdir(before)).length === 0);
      expect(await readdir(after)).toEqual([]);
      await writeFile(join(home.home, "clusters.yaml"), GOOD);
    });
  },
);
