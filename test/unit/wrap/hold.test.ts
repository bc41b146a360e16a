import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { hold, type HoldOptions } from "../../../src/wrap/holder/hold.ts";
import { until } from "../../until.ts";

/** Dask is not here: a script says what a Python would. */
let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "slw-hold-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const path = (name: string): string => join(directory, name);
const script = async (name: string, ...lines: string[]): Promise<string> => {
  await writeFile(path(name), ["#!/bin/sh", ...lines, ""].join("\n"));
  await chmod(path(name), 0o755);
  return path(name);
};
const say = (event: object): string => `echo '${JSON.stringify(event)}'`;
const READY = say({
  event: "ready",
  address: "tcp://127.0.0.1:8700",
  host: "127.0.0.1",
  port: 8700,
  dashboard_port: 8701,
  kind: "Fake",
  manager: "moab",
  log_directory: null,
});
/** A manager without a driver: it is told with the command that the head names. */
const job = async (id: string): Promise<string> =>
  say({
    event: "job",
    name: "w-0",
    id,
    manager: "moab",
    cancel: await script("cancel", `echo "$1" >> ${path("cancelled")}`),
  });
const UNTIL_CLOSED = ["cat > /dev/null", say({ event: "closed" })];
const cancelled = async (): Promise<string> => readFile(path("cancelled"), "utf8").catch(() => "");
const status = async (): Promise<Record<string, unknown>> =>
  JSON.parse(await readFile(path("s.json"), "utf8")) as Record<string, unknown>;

interface Held {
  readonly ended: Promise<void>;
  readonly stop: AbortController;
  readonly kill: AbortController;
  readonly notes: string[];
}
/** Holds what a script says after it has got its order. */
const holding = async (lines: readonly string[], options: Partial<HoldOptions> = {}, body?: object): Promise<Held> => {
  const parameters = { walltime: "01:00:00", cores: 1, memory: "1GB", maximum_jobs: 1 };
  if (body !== undefined) await writeFile(path("s.json"), JSON.stringify({ parameters, ...body }));
  const [stop, kill] = [new AbortController(), new AbortController()];
  const notes: string[] = [];
  const ended = hold({
    home: path("home"),
    target: "fake::Cluster",
    statusFile: path("s.json"),
    timeout: 0,
    python: await script("python", "read -r order", ...lines),
    shim: "shim.py",
    note: (line) => void notes.push(line),
    stop: stop.signal,
    kill: kill.signal,
    ...options,
  });
  ended.catch(() => undefined);
  return { ended, stop, kill, notes };
};
const running = (): Promise<true> => until("it to run", async () => (await status())["status"] === "running");

describe("a head that does not behave", () => {
  it("what Python's start-up files print on standard output is passed on, and disturbs nothing", async () => {
    const noise = ["echo 'module loaded'", "echo null", "echo '{\"a\": 1}'", "printf 'no end'", "echo"];
    const { ended, stop, notes } = await holding([...noise, READY, ...UNTIL_CLOSED], {}, {});
    await running();
    stop.abort();
    await ended;
    expect(notes).toEqual(expect.arrayContaining(["module loaded", "null", '{"a": 1}', "no end"]));
    expect([existsSync(path("s.json")), existsSync(path("s.json.jobs"))]).toEqual([false, false]);
  });

  it("one that hangs before its cluster is up is given up, and told of", async () => {
    const { ended } = await holding(["exec sleep 1000"], { patienceMs: 300 }, {});
    await expect(ended).rejects.toThrow("was not up within 0.3 s");
    expect(await status()).toMatchObject({ status: "failed", reason: expect.stringContaining("hangs") });
  });

  it("one that hangs is ended by a second signal: a normal end", async () => {
    const { ended, stop, kill } = await holding([`touch ${path("began")}`, "exec sleep 1000"], {}, {});
    await until("it to begin", () => existsSync(path("began")));
    stop.abort();
    kill.abort();
    await ended;
    expect(existsSync(path("s.json"))).toBe(false);
  });

  it("jobs of one that dies before its cluster is up are cancelled", async () => {
    const seen = `cp ${path("s.json.jobs")} ${path("ledger")}`;
    const lines = [await job("7"), `until grep -q '"7"' ${path("s.json.jobs")}; do sleep 0.05; done`, seen, "exit 3"];
    const { ended } = await holding(lines, {}, {});
    await expect(ended).rejects.toThrow("ended before the cluster was up");
    expect([await cancelled(), (await status())["status"]]).toEqual(["7\n", "failed"]);
    // it was written down before
    expect(JSON.parse(await readFile(path("ledger"), "utf8"))).toMatchObject({ manager: "moab", jobs: [{ id: "7" }] });
  });

  it("jobs of one that dies later are cancelled too, by id", async () => {
    const { ended } = await holding([READY, await job("8"), "exit 0"], {}, {});
    await expect(ended).rejects.toThrow("died");
    expect([await cancelled(), (await status())["reason"]]).toEqual(["8\n", expect.stringContaining("died")]);
  });

  it("a status file that cannot be written in the end closes the cluster, and leaves no job", async () => {
    const away = `rm ${path("s.json")}; mkdir ${path("s.json")}`;
    const { ended } = await holding([await job("9"), away, READY, ...UNTIL_CLOSED], {}, {});
    await expect(ended).rejects.toThrow("not a file");
    expect([await cancelled(), existsSync(path("s.json.jobs"))]).toEqual(["9\n", false]);
  });
});

describe("the status file of one that was there before", () => {
  it("says nothing of it while the next one starts; other keys are kept", async () => {
    const look = `cp ${path("s.json")} ${path("seen")}`;
    const old = { status: "failed", reason: "x", port: 1, pid: 2, address: "tcp://old", mine: true };
    const { ended, stop } = await holding([look, READY, ...UNTIL_CLOSED], {}, old);
    await running();
    const seen = JSON.parse(await readFile(path("seen"), "utf8")) as object;
    expect(Object.keys(seen)).toEqual(["parameters", "mine"]);
    expect(await status()).toMatchObject({ mine: true, port: 8700, dashboard_port: 8701, pid: process.pid });
    expect(await status()).not.toHaveProperty("reason");
    stop.abort();
    await ended;
  });

  it("is not made anew after its end, nor after somebody has removed it", async () => {
    const refused = say({ event: "refused", name: "w-0", detail: "no" });
    const lines = [READY, "cat > /dev/null", refused, refused, say({ event: "closed" })];
    const { ended, stop } = await holding(lines, {}, {});
    await running();
    await rm(path("s.json"));
    stop.abort();
    await ended;
    expect(existsSync(path("s.json"))).toBe(false);
  });
});

it("a status file that is a pipe is refused: nothing waits for who writes to it", async () => {
  execFileSync("mkfifo", [path("s.json")]);
  const { ended } = await holding(["exit 1"]);
  await expect(ended).rejects.toThrow("it is not a file");
});

it("a signal while the status file is waited for ends it, and nothing is made", async () => {
  const { ended, stop } = await holding(["exit 1"]);
  stop.abort();
  await ended;
  expect(["s.json", "s.json.jobs", "home"].filter((name) => existsSync(path(name)))).toEqual([]);
});
