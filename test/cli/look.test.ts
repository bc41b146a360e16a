import { appendFile, readFile, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { EventView, RunView } from "../../src/api/schemas.ts";
import { readEndpoint } from "../../src/protocol/endpoint.ts";
import { until } from "../until.ts";
import { type SlipwayHome, createHome } from "./slipway-process.ts";

/** Looking needs no server: the journal answers, and nothing of the home changes. */

const NOTE = /^no server runs for .*: this is what its journal says$/m;
const QUESTIONS = [
  ["list"],
  ["show", "1"],
  ["show", "1.2"],
  ["show", "1", "--efficiency"],
  ["show", "2"],
  ["tasks", "1"],
  ["report", "1", "-o", "-"],
  ["report", "2", "-o", "-"],
  ["logs", "1"],
  ["logs", "1.2", "--stderr"],
  ["why", "1"],
  ["why", "2.1"],
  ["events"],
] as const;

let slipway: SlipwayHome;
/** What the server answered. */
const answered = new Map<string, string>();

const files = async (): Promise<string[]> => {
  const found: string[] = [];
  for (const entry of await readdir(slipway.home, { withFileTypes: true, recursive: true })) {
    const path = join(entry.parentPath, entry.name);
    const { size, mtimeMs, ctimeMs } = await stat(path);
    found.push(`${path} ${entry.isFile() ? size : ""} ${mtimeMs} ${ctimeMs}`);
  }
  return found.toSorted();
};

beforeAll(async () => {
  slipway = await createHome();
});
afterAll(() => slipway.cleanup());

describe("looking at a home without a server", () => {
  it("without a journal there is nothing to look at: exit 3", async () => {
    for (const words of [["list"], ["why", "1"]]) expect((await slipway.run(words)).status).toBe(3);
  });

  it("list, show, logs, why and events answer as the server did, with a note on standard error, and change nothing", async () => {
    await slipway.run(["up"]);
    await slipway.run([
      "run",
      "--array",
      "1-3",
      "--",
      "sh",
      "-c",
      "echo out {item}; echo err {item} >&2; test {item} != 2",
    ]);
    await slipway.run(["submit", "--cpus", "1", "--array", "1-2", "--", "sleep", "1000"]);
    await slipway.run(["cancel", "2"]);
    await slipway.run(["wait", "2"]);
    // folded into a snapshot, with ended runs in files of their own, and more after it
    for (const words of QUESTIONS) answered.set(words.join(" "), (await slipway.run([...words, "--json"])).stdout);
    await slipway.run(["down", "--now"]);
    const before = await files();
    for (const words of QUESTIONS) {
      const { status, stdout, stderr } = await slipway.run([...words, "--json"]);
      expect([words, status, stderr]).toEqual([words, 0, ""]);
      const known = answered.get(words.join(" "))!;
      if (words[0] === "events") {
        const named = (text: string): string[] =>
          text
            .trim()
            .split("\n")
            .map((line) => (JSON.parse(line) as EventView).event);
        expect(named(stdout).slice(0, 1)).toEqual(named(known).slice(0, 1));
        expect(new Set(named(stdout)).has("run.finished")).toBe(true);
      } else expect(stdout, words.join(" ")).toBe(known);
    }
    const people = await slipway.run(["list"]);
    expect([people.status, people.stderr]).toEqual([0, expect.stringMatching(NOTE)]);
    expect(people.stdout).toMatch(/FAILED/);
    expect((await slipway.run(["show", "77"])).status).toBe(2);
    expect(await files()).toEqual(before);
  });

  it("status, wait, cancel, submit, and whatever follows need a server: exit 3", async () => {
    for (const words of [
      ["status"],
      ["wait", "1"],
      ["cancel", "1"],
      ["retry", "1"],
      ["submit", "--", "true"],
      ["events", "--follow"],
      ["logs", "1", "--follow"],
    ]) {
      const { status, stderr } = await slipway.run(words);
      expect([words, status]).toEqual([words, 3]);
      expect(stderr).not.toMatch(NOTE);
    }
  });

  it("a server that was killed: what it had on disk is told, a torn tail is left as it is", async () => {
    await slipway.run(["up"]);
    await slipway.run(["submit", "--", "sleep", "1000"]);
    await until("a task that runs", async () => {
      const [run] = await slipway.json<RunView[]>(["list"]);
      return (run?.counts["AGENT_EXECUTING"] ?? 0) > 0 || undefined;
    });
    const { pid } = (await readEndpoint(slipway.home))!;
    process.kill(pid, "SIGKILL");
    const journal = join(slipway.home, "journal");
    const last = (await readdir(journal))
      .filter((name) => name.endsWith(".log"))
      .toSorted()
      .at(-1)!;
    await appendFile(join(journal, last), Buffer.from([1, 2, 3, 4, 5, 6, 7]));
    const torn = await readFile(join(journal, last));
    const runs = await until("the journal's answer", async () => {
      const looked = await slipway.run(["list", "--json"]);
      return looked.status === 0 ? (JSON.parse(looked.stdout) as RunView[]) : undefined;
    });
    expect(runs.map(({ id, finished, etaReason }) => [id, finished !== null, etaReason])).toEqual([
      [3, false, "no server runs"],
      [2, true, null],
      [1, true, null],
    ]);
    expect((await readFile(join(journal, last))).equals(torn)).toBe(true);
  });

  it("beside a server that starts and one that compacts, every look is answered, and the server gets the home", async () => {
    // where this is tried again, the first try may have left one
    await slipway.run(["down", "--now"]);
    const looks = Promise.all(Array.from({ length: 4 }, () => slipway.run(["list", "--json"])));
    const up = slipway.run(["up"]);
    for (const { status, stdout } of await looks)
      expect([status, (JSON.parse(stdout) as RunView[]).length]).toEqual([0, 3]);
    expect((await up).status).toBe(0);
    await slipway.run(["down", "--now"]);
    const compacting = slipway.run(["journal", "compact"]);
    const beside = await Promise.all(
      [["list"], ["show", "1.2"], ["logs", "1"], ["events"]].map((words) => slipway.run([...words, "--json"])),
    );
    expect((await compacting).status).toBe(0);
    expect(beside.map(({ status }) => status)).toEqual([0, 0, 0, 0]);
    // and what has moved to files of its own is found there
    for (const words of ["show 1", "show 1.2", "logs 1"])
      expect((await slipway.run([...words.split(" "), "--json"])).stdout, words).toBe(answered.get(words));
  });

  it("a home that a server on another host holds is left to that one: exit 3", async () => {
    const lease = JSON.parse(await readFile(join(slipway.home, "lease.json"), "utf8").catch(() => "{}")) as object;
    const other = { host: "login9", bootId: "b", pidNamespace: "p", pid: 7, pidStart: "1", counter: 1, started: "" };
    await writeFile(join(slipway.home, "lease.json"), JSON.stringify({ ...lease, ...other, epoch: 1_000_000 }));
    const { status, stderr } = await slipway.run(["list", "--json"]);
    expect([status, JSON.parse(stderr)]).toMatchObject([
      3,
      { error: { code: "home-held", facts: { host: "login9" } } },
    ]);
    await writeFile(join(slipway.home, "lease.json"), JSON.stringify(lease));
  });
});
