import {
  chmod,
  chown,
  lchown,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  symlink,
  truncate,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { identify } from "../../../src/process-identity.ts";
import { claimLedger, ledgerPath, readLedger } from "../../../src/wrap/holder/ledger.ts";
import { pickPorts } from "../../../src/wrap/holder/free-ports.ts";
import { cleanLost } from "../../../src/wrap/holder/clean.ts";
import { managerOf } from "../../../src/wrap/holder/managers.ts";
import { listWraps, prepareRegistry, wrapId, writeEntry } from "../../../src/wrap/holder/registry.ts";
import { awaitStatus, realStatusFile, unwritable, updateStatus } from "../../../src/wrap/holder/status-file.ts";
import { parseAssignment } from "../../../src/wrap/plan/assignments.ts";

let directory: string;
let file: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "slw-wrap-"));
  file = join(directory, "status.json");
});
afterEach(() => rm(directory, { recursive: true, force: true }));

describe("the status file", () => {
  it("row 002-16: is waited for, also until it is whole", async () => {
    const waiting = awaitStatus(file);
    await writeFile(file, '{"parameters"');
    await writeFile(file, '{"parameters": {}}');
    expect(await waiting).toEqual({ parameters: {} });
    await expect(awaitStatus(join(directory, "never"), { patienceMs: 50 })).rejects.toThrow(
      "did not appear within 0.05 s",
    );
    await writeFile(file, "[]");
    await expect(awaitStatus(file, { patienceMs: 50 })).rejects.toThrow("JSON dict");
  });

  it("a directory that is not there is told, with what to do", async () => {
    const nowhere = join(directory, "no", "status.json");
    const told = { code: "wrap-failed", facts: { remedy: expect.stringContaining("directory that exists") } };
    await expect(updateStatus(nowhere, {})).rejects.toMatchObject(told);
    await expect(claimLedger(nowhere)).rejects.toMatchObject(told);
    const full = Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
    expect(unwritable(file, full).facts["remedy"]).toContain("Make room");
  });

  it("what is no file of one's own is refused, with what to do", async () => {
    const refused = (path: string, words: RegExp): Promise<void> =>
      expect(awaitStatus(path)).rejects.toMatchObject({ code: "wrap-failed", message: expect.stringMatching(words) });
    await refused(directory, /not a file/);
    await writeFile(file, "{}");
    await chmod(file, 0o666);
    await refused(file, /everybody can write to it/);
    await truncate(file, 2 ** 40);
    await chmod(file, 0o600);
    await refused(file, /more than 16/);
  });

  it.skipIf(process.getuid?.() !== 0)("another user's file, or link, says nothing to us", async () => {
    await writeFile(file, '{"parameters": {}}');
    const link = join(directory, "link");
    await symlink(file, link);
    await lchown(link, 12_345, 12_345);
    await expect(awaitStatus(link)).rejects.toThrow("the link belongs to another user (12345)");
    await chown(file, 12_345, 12_345);
    await expect(awaitStatus(file)).rejects.toThrow("it belongs to another user (12345)");
    await expect(updateStatus(file, { status: "failed" })).rejects.toThrow("another user");
    expect(await readFile(file, "utf8")).toBe('{"parameters": {}}');
  });

  it("a link and what it leads to are one status file", async () => {
    const link = join(directory, "link");
    await symlink(file, link);
    await writeFile(file, "{}");
    expect([await realStatusFile(link), await wrapId(link)]).toEqual([file, await wrapId(file)]);
  });

  it("row 002-54: other keys are kept, and it is replaced whole", async () => {
    await writeFile(file, '{"parameters": {"a": 1}, "mine": true, "problem": "x"}');
    await updateStatus(file, { port: 8700, problem: undefined });
    expect(JSON.parse(await readFile(file, "utf8"))).toEqual({ parameters: { a: 1 }, mine: true, port: 8700 });
    expect(await readdir(directory)).toEqual(["status.json"]);
  });
});

describe("the ledger beside it", () => {
  it("one wrapper holds a status file; two that start at once do not both get it", async () => {
    const claims = await Promise.allSettled([claimLedger(file), claimLedger(file), claimLedger(file)]);
    expect(claims.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected", "rejected"]);
    await expect(claimLedger(file)).rejects.toMatchObject({ code: "wrap-running", facts: { pid: process.pid } });
    const [held] = claims.flatMap((claim) => (claim.status === "fulfilled" ? [claim.value] : []));
    await held!.release();
    expect(await readdir(directory)).toEqual([]);
  });

  it("that of a process that is gone tells the next one of its jobs", async () => {
    const holder = { ...identify(), pid: 2 ** 22 + 1 };
    const jobs = [{ id: "7", cancel: "scancel" }];
    await writeFile(ledgerPath(file), JSON.stringify({ version: 1, holder, manager: "slurm", jobs }));
    const ledger = await claimLedger(file);
    expect(ledger.left).toMatchObject({ manager: "slurm", jobs });
    // still written down, should the next one be killed at once
    expect(await readLedger(file)).toMatchObject({ holder: { pid: process.pid }, manager: "slurm", jobs });
    await ledger.write("slurm", [{ id: "8", cancel: null }]);
    expect(await readLedger(file)).toMatchObject({ holder: { pid: process.pid }, jobs: [{ id: "8" }] });
    await ledger.release();
    expect(await readdir(directory)).toEqual([]);
  });
});

it("a ledger that could not be written once is written the next time", async () => {
  const ledger = await claimLedger(file);
  await rm(ledgerPath(file));
  await mkdir(ledgerPath(file));
  await expect(ledger.write("slurm", [{ id: "1", cancel: null }])).rejects.toThrow();
  await rm(ledgerPath(file), { recursive: true });
  await ledger.write("slurm", [{ id: "2", cancel: null }]);
  expect(await readLedger(file)).toMatchObject({ jobs: [{ id: "2" }] });
});

it("a wrapper that is gone with the directory of its status file can still be taken off the list", async () => {
  const holder = { ...identify(), pid: 2 ** 22 + 1 };
  const statusFile = join(directory, "gone", "s.json");
  const entry = { id: "0a1b2c3d", target: "a::B", statusFile, holder, started: "2026-01-01T00:00:00Z" } as const;
  prepareRegistry(directory);
  await writeEntry(directory, { ...entry, state: "running" });
  const [lost] = await listWraps(directory);
  expect(lost).toMatchObject({ state: "lost" });
  const ended: string[] = [];
  await cleanLost(directory, lost!, async (id) => void ended.push(id));
  expect(ended).toEqual([entry.id]);
  expect(await listWraps(directory)).toEqual([]);
});

it("managers without a driver are told with dask-jobqueue's own command, each job for itself", async () => {
  const told: string[] = [];
  const manager = managerOf("lsf-of-old", (argv) => {
    told.push(argv.join(" "));
    return Promise.reject(new Error("no answer"));
  });
  expect([manager?.poll, managerOf(null), managerOf("local")]).toEqual([undefined, undefined, undefined]);
  await manager!.cancel([
    { id: "7", cancel: "condor_rm " },
    { id: "8", cancel: "condor_rm -name here" },
    { id: "9", cancel: null },
  ]);
  expect(told).toEqual(["condor_rm 7", "condor_rm -name here 8"]);
});

it("row 002-44: two different ports, free and within the range, at random", async () => {
  const seen = new Set<number>();
  for (let round = 0; round < 10; round++) {
    const { scheduler, dashboard } = await pickPorts({ from: 21_000, to: 21_400 });
    expect(scheduler).not.toBe(dashboard);
    for (const port of [scheduler, dashboard]) {
      expect(port >= 21_000 && port <= 21_400).toBe(true);
      seen.add(port);
    }
  }
  expect(seen.size).toBeGreaterThan(4);
  await expect(pickPorts({ from: 21_000, to: 21_000 })).rejects.toMatchObject({ code: "wrap-failed" });
  expect((await pickPorts()).scheduler).toBeGreaterThan(0);
});

it("parameters of a command line keep texts that look like numbers", () => {
  expect(
    ["project=123", "cores=4", "interactive=true", 'dask-resources={"S": 6}', "lifetime_stagger=90"].map(
      parseAssignment,
    ),
  ).toEqual([
    ["project", "123"],
    ["cores", 4],
    ["interactive", true],
    ["dask-resources", { S: 6 }],
    ["lifetime-stagger", "90"],
  ]);
  for (const wrong of ["cores", "core=4", "=4", ""]) expect(() => parseAssignment(wrong)).toThrow(RangeError);
});
