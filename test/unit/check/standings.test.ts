import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { absenceOf } from "../../../src/check/absence.ts";
import { createDescriptions } from "../../../src/check/descriptions.ts";
import { createStandings } from "../../../src/check/standings.ts";
import { type ClusterConfig, combineClusters, readClustersFile } from "../../../src/config/clusters-file.ts";
import { createState } from "../../../src/core/state.ts";
import type { ClusterDescription } from "../../../src/managers/provider.ts";
import { createFallback } from "../../../src/server/fallback.ts";
import { until } from "../../until.ts";

/** When a cluster cannot be used. */

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "slipway-standings-"));
  for (const program of ["sbatch", "squeue", "scancel", "sinfo", "qsub", "qstat", "qdel", "qhost", "qconf"])
    await writeFile(join(root, program), "#!/bin/sh\n", { mode: 0o755 });
});
afterEach(() => rm(root, { recursive: true }));

const cluster = (keys: object): ClusterConfig =>
  combineClusters([readClustersFile(JSON.stringify({ clusters: { hpc: keys } }), "c.yaml")]).clusters.get("hpc")!;
const FINE: ClusterDescription = { version: "slurm 22.05", largest: { cpus: 80_000 } };
const slurm = (keys: object = {}): ClusterConfig => cluster({ type: "slurm", bin: root, ...keys });

describe("row 001-22: what is not here", () => {
  it("programs and configuration files are looked for; what nobody named is left to the manager", async () => {
    expect(await absenceOf(slurm(), {})).toBeUndefined();
    expect(await absenceOf(slurm({ bin: "/none" }), {})).toMatchObject({
      cause: "sbatch, squeue, scancel, sinfo: not found in /none",
    });
    const conf = join(root, "slurm.conf");
    expect((await absenceOf(slurm({ config: conf }), {}))?.cause).toContain(`there is no ${conf}`);
    expect((await absenceOf(slurm(), { SLURM_CONF: conf }))?.cause).toContain(conf);
    await writeFile(conf, "");
    expect(await absenceOf(slurm({ config: conf }), {})).toBeUndefined();
    const sge = cluster({ type: "sge", bin: root, root: join(root, "sge"), cell: "c" });
    expect((await absenceOf(sge, {}))?.cause).toContain("sge/c/common");
    expect(await absenceOf(cluster({ type: "local" }), {})).toBeUndefined();
  });
});

const asking = (ask: () => Promise<unknown>) =>
  createDescriptions({ describe: ask as () => Promise<ClusterDescription> });

describe("standings", () => {
  const lines: string[] = [];
  const standing = (of: ClusterConfig, ask: () => Promise<ClusterDescription>) => {
    let now = 1000;
    const clock = (): number => (now += 1);
    return createStandings({ clusters: () => [of], clock, log: (text) => lines.push(text), descriptions: asking(ask) });
  };

  it("a manager that answers is fine, one that does not is silent, one without configuration is absent", async () => {
    const states = await Promise.all(
      [
        async () => FINE,
        () => Promise.reject(new Error("Unable to contact slurm controller")),
        () => Promise.reject(new Error("sinfo: fatal: Could not establish a configuration source")),
        () => Promise.reject(new Error("invalid partition specified: qcpu")),
      ].map(async (ask) => {
        const all = standing(slurm(), ask);
        expect(all.of("hpc")).toBeUndefined();
        await all.tryAll();
        all.close();
        return all.of("hpc")?.state ?? null;
      }),
    );
    expect(states).toEqual([null, "silent", "absent", "silent"]);
  });

  it("keeps what a manager said about its nodes, also while it does not answer", async () => {
    const all = standing(slurm(), async () => FINE);
    expect(all.described("hpc")).toBeUndefined();
    await all.tryAll();
    all.heard("hpc", "does not answer");
    all.close();
    expect([all.described("hpc"), all.described("other")]).toEqual([FINE, undefined]);
  });

  it("says once what is wrong, keeps since when, and that it is over", async () => {
    lines.length = 0;
    const all = standing(slurm(), async () => FINE);
    await all.tryAll();
    all.heard("hpc", "does not answer");
    const since = all.of("hpc")?.since;
    all.heard("hpc", "does not answer");
    expect(all.of("hpc")).toMatchObject({ state: "silent", since, cause: "does not answer" });
    all.heard("hpc", null);
    expect(all.of("hpc")).toBeNull();
    all.close();
    expect(lines).toHaveLength(2);
  });

  it("what was absent is tried again for the next submission", async () => {
    const of = slurm({ config: join(root, "slurm.conf") });
    const all = standing(of, async () => FINE);
    const { whyHere } = createFallback(createState(), all, "local");
    await all.tryAll();
    expect(await whyHere(of)).toContain("there is no");
    await writeFile(join(root, "slurm.conf"), "");
    // at once, without a question to the manager; that is asked meanwhile
    expect(await whyHere(of)).toBeUndefined();
    await until("its manager to be heard", () => all.of("hpc") === null);
    all.close();
  });
});

describe("row 001-23: where its tasks go", () => {
  const absent = { bin: "/none" };
  const worked = (): ReturnType<typeof createState> => {
    const state = createState();
    state.pilots.set(1, {
      id: 1,
      cluster: "hpc",
      queue: "q",
      jobName: "j",
      requested: 1,
      state: "DONE",
      nativeId: "1",
      reason: "",
      active: 5,
      ended: 9,
    });
    return state;
  };

  const byHand = (): ReturnType<typeof createState> => {
    const state = createState();
    const agent = { id: 1, uuid: "u", pilot: 0, cluster: "hpc", host: "h", version: "1", joined: 1, resources: {} };
    state.agents.set(1, { ...agent, output: "", seq: 0, ended: 5, reason: "" });
    return state;
  };

  it.each([
    ["absent, but somebody started an agent for it", absent, byHand(), "waits"],
    ["absent, never worked", absent, createState(), "here"],
    ["absent, but a pilot of it was here once", absent, worked(), "waits"],
    ["absent, never worked, fallback: wait", { ...absent, fallback: "wait" }, createState(), "waits"],
    ["absent, worked once, fallback: local", { ...absent, fallback: "local" }, worked(), "here"],
    ["silent", {}, createState(), "waits"],
    ["silent, fallback: local", { fallback: "local" }, createState(), "here"],
  ])("%s", async (_title, keys, state, goes) => {
    const of = slurm(keys);
    const ask = (): Promise<never> => Promise.reject(new Error("does not answer"));
    const standings = createStandings({
      clusters: () => [of],
      clock: () => 1,
      log: () => undefined,
      descriptions: asking(ask),
    });
    await standings.tryAll();
    const fallback = createFallback(state, standings, "local");
    expect((await fallback.whyHere(of)) === undefined ? "waits" : "here").toBe(goes);
    expect(fallback.goTo(of, standings.of("hpc")!)).toBe(goes === "here" ? "local" : "wait");
    standings.close();
  });

  it("a cluster that answers keeps its tasks, whatever fallback says", async () => {
    const of = slurm({ fallback: "local" });
    const descriptions = asking(async () => "ok");
    const standings = createStandings({ clusters: () => [of], clock: () => 1, log: () => undefined, descriptions });
    await standings.tryAll();
    expect(await createFallback(createState(), standings, "local").whyHere(of)).toBeUndefined();
    standings.close();
  });
});
