import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { PilotView, type StatusView, WrapView } from "../../src/api/schemas.ts";
import { connect } from "../../src/client/index.ts";
import { identify } from "../../src/process-identity.ts";
import { createHome, type SlipwayHome } from "./slipway-process.ts";

const ID = "0123abcd";

let home: SlipwayHome;
beforeEach(async () => {
  home = await createHome();
});
afterEach(() => home.cleanup());

/** What a wrapper that holds a cluster of dask-jobqueue writes; this process stands for it. */
const held = async (id: string, changes: object = {}): Promise<void> => {
  const entry = {
    id,
    target: "dask_jobqueue::SLURMCluster",
    statusFile: join(home.cwd, "dask.json"),
    holder: identify(),
    started: new Date().toISOString(),
    state: "running",
    head: { address: "tcp://10.0.0.1:8786", host: "10.0.0.1", port: 8786, dashboard_port: 8787, kind: "SLURMCluster" },
    minimum: 0,
    maximum: 4,
    wanted: 2,
    work: 12,
    tasks: { processing: 4, queued: 8 },
    clients: 1,
    workers: [{ name: "w-0", address: "tcp://10.0.0.2:1", threads: 4, memory: 1024 ** 3, used: 100 * 1024 ** 2 }],
    jobs: [
      { id: "7", connected: true },
      { id: "8", connected: false, reason: "queued: PENDING (Priority), jobs with a higher priority are ahead of it" },
    ],
    ...changes,
  };
  await mkdir(join(home.home, "wraps"), { recursive: true, mode: 0o700 });
  await writeFile(join(home.home, "wraps", `${id}.json`), JSON.stringify(entry));
};

it("status, pilots list and why show Dask clusters without a server, and with one beside its own", async () => {
  for (const verb of [["status"], ["pilots", "list"]]) expect((await home.run(verb)).status).toBe(3);
  await held(ID);

  const bare = await home.run(["status"]);
  expect([bare.status, bare.stderr]).toEqual([0, expect.stringContaining("no server runs")]);
  expect(bare.stdout).toMatch(/^0123abcd .* 1 of 2 +4 +100M of 1G +12 +1 +http:\/\/10\.0\.0\.1:8787\/status$/m);
  const status = await home.json<Omit<StatusView, "server"> & { server: null }>(["status"]);
  expect(status).toMatchObject({ server: null, fleets: [], pilots: [], runs: [] });
  const [wrap] = status.wraps!;
  expect(WrapView.parse(wrap)).toMatchObject({ id: ID, state: "running", why: { cause: "pilot-queued" } });

  const listed = await home.run(["pilots", "list"]);
  expect([listed.status, listed.stdout]).toEqual([0, expect.stringMatching(/^0123abcd\/8 .*\(Priority\)/m)]);
  const pilots = await home.json<PilotView[]>(["pilots", "list"]);
  for (const pilot of pilots) PilotView.parse(pilot);
  expect(pilots).toMatchObject([
    { id: `${ID}/7`, wrap: ID, state: "PMGR_ACTIVE", workers: 1, waiting: null },
    { id: `${ID}/8`, wrap: ID, state: "PMGR_ACTIVE_PENDING", workers: 0, waiting: expect.stringContaining("Priority") },
  ]);
  const drained = await home.run(["pilots", "drain", `${ID}/7`]);
  expect([drained.status, drained.stderr]).toEqual([2, expect.stringContaining(`wrap scale ${ID}`)]);

  for (const name of [ID, "0123a"]) {
    const { stdout } = await home.run(["why", name]);
    expect(stdout).toMatch(
      /^pilot-queued\n {2}1 of 2 workers connected, for 12 tasks; .*8: queued: PENDING \(Priority\)/,
    );
  }
  // what it could be the name of, only a server knows
  const unknown = await home.run(["why", "dask.json"]);
  expect([unknown.status, unknown.stderr]).toEqual([3, expect.stringContaining("no server runs")]);

  expect((await home.run(["up"])).status).toBe(0);
  const client = connect({ home: home.home });
  expect((await client.status()).wraps).toEqual(await client.wraps());
  expect(await client.wraps()).toEqual([wrap]);
  client.close();
  const both = await home.run(["status"]);
  expect(both.stdout).toMatch(/^server +running/m);
  expect(both.stdout).toMatch(/^0123abcd /m);
  expect((await home.run(["pilots", "list"])).stdout).toMatch(/^no pilots\n\n|^PILOT/);
});

it("a number is a run, unless it is the whole id of a Dask cluster", async () => {
  await held("12345678", { work: 0, workers: [], jobs: [], wanted: 0 });
  expect(await home.json(["why", "12345678"])).toMatchObject({ cause: "idle" });
  const run = await home.run(["why", "1234"]);
  expect([run.status, run.stderr]).toEqual([3, expect.stringContaining("no server runs")]);
  await held("12345678", { holder: { ...identify(), pid: 2 ** 22 + 1 } });
  expect(await home.json(["why", "12345678"])).toMatchObject({ cause: "wrapper-lost" });
});
