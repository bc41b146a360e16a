import { appendFileSync, mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { openOutputStream } from "../../../src/agent/output/stream.ts";
import { Ending } from "../../../src/core/events.ts";
import type { GroupSpec } from "../../../src/core/spec.ts";
import type { Run } from "../../../src/core/run.ts";
import type { SlipwayError } from "../../../src/errors.ts";
import { type LogSource, checkAttempt, runOutput, taskOutput } from "../../../src/logs/logs.ts";
import { type Driver, createDriver, group, spec } from "../core/model.ts";

/** Which attempt's output is read, and where it is. */

const directory = mkdtempSync(join(tmpdir(), "slipway-logs-test-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

let streams = 0;
const { signal } = new AbortController();
const query = { stream: "stdout", follow: false, signal } as const;

/** A task that runs again and again; `says` is what each attempt writes. */
const running = async (more: Partial<GroupSpec>, says: readonly string[]): Promise<{ driver: Driver; run: Run }> => {
  const driver = createDriver();
  const run = driver.submit(spec([group("a", 1, { retries: 1000, ...more })], { cwd: directory }));
  const path = join(directory, `stream-${++streams}`);
  const output = await openOutputStream(path);
  const agent = driver.state.nextAgent;
  driver.send({
    type: "agent.joined",
    at: 1,
    agent,
    uuid: "u",
    pilot: 0,
    host: "h",
    version: "1",
    resources: {},
    output: path,
    seq: 0,
  });
  for (const [i, text] of says.entries()) {
    driver.assign(agent, run.id, 0);
    const made = output.begin(run.id, 0, i + 1);
    output.write(made, 1, Buffer.from(text));
    const { lastAt, flushed } = output.end(made);
    await flushed;
    driver.send({
      type: "tasks.ended",
      at: 2000 + i,
      agent,
      seq: i + 1,
      parts: [
        {
          run: run.id,
          rows: Uint32Array.of(0),
          attempt: i + 1,
          ending: Ending.EXIT,
          code: 1,
          started: 1000 + i,
          finished: 1001 + i,
          outAt: lastAt,
          outBytes: text.length,
          errBytes: 0,
          details: [],
        },
      ],
    });
  }
  await output.close();
  return { driver, run };
};

const read = async (driver: Driver, run: Run, attempt?: number, follow = false): Promise<string> => {
  const source: LogSource = { state: driver.state, tailOf: () => -1 };
  const wanted = { ...query, follow, attempt };
  checkAttempt(run, 0, wanted);
  const pieces: Uint8Array[] = [];
  for await (const piece of taskOutput(source, run, 0, wanted)) pieces.push(piece);
  return Buffer.concat(pieces).toString();
};

const refusal = (run: Run, attempt: number): SlipwayError => {
  try {
    checkAttempt(run, 0, { ...query, attempt });
  } catch (error) {
    return error as SlipwayError;
  }
  throw new Error(`attempt ${attempt} was not refused`);
};

describe("a file that tasks share", () => {
  it("is shown once with its run, however many write to it; when followed, at the end", async () => {
    const file = join(directory, "shared.txt");
    writeFileSync(file, "one\ntwo\n");
    const driver = createDriver();
    const run = driver.submit(
      spec(
        [
          group("a", 3, { stdout: "shared.txt", append: true }),
          group("b", 1, { stdout: "{cwd}/shared.txt", append: true }),
          group("c", 2, { stdout: "own-{task}.txt", append: true }),
        ],
        { cwd: directory },
      ),
    );
    for (const row of [4, 5]) writeFileSync(join(directory, `own-${row}.txt`), `${row}\n`);
    const source: LogSource = { state: driver.state, tailOf: () => -1 };
    const all = async (follow: boolean): Promise<(readonly [string, string])[]> => {
      const pieces: (readonly [string, string])[] = [];
      for await (const { task, data } of runOutput(source, run, { ...query, follow }))
        // without data: what was lost of it, which the model makes up
        if (data !== "") pieces.push([task, Buffer.from(data, "base64").toString()]);
      return pieces;
    };
    const agent = driver.join();
    for (let row = 0; row < 6; row += 1) driver.assign(agent, run.id, row);
    driver.end(agent, run.id, [0, 1, 2, 3, 4], 0);
    const followed = all(true);
    appendFileSync(file, "three\n");
    driver.end(agent, run.id, [5], 0);
    const expected = [
      [`${run.id}.0`, "one\ntwo\nthree\n"],
      [`${run.id}.4`, "4\n"],
      [`${run.id}.5`, "5\n"],
    ];
    expect(await followed).toEqual(expected);
    expect(await all(false)).toEqual(expected);
  });
});

describe("output of earlier attempts", () => {
  it("each attempt that is kept has its own, the last unless one is named", async () => {
    const { driver, run } = await running({}, ["first\n", "second\n", "third\n"]);
    expect(await read(driver, run)).toBe("third\n");
    for (const [n, text] of [
      [1, "first\n"],
      [2, "second\n"],
      [3, "third\n"],
    ] as const)
      expect(await read(driver, run, n)).toBe(text);
  });

  it("following an attempt that is over ends with it, though the task goes on", async () => {
    const { driver, run } = await running({}, ["first\n", "second\n"]);
    expect(await read(driver, run, 1, true)).toBe("first\n");
    expect(await read(driver, run, 2, true)).toBe("second\n");
  });

  it("what a lost attempt wrote is found in its agent's stream, also what the agent had not told of", async () => {
    const { driver, run } = await running({}, ["first\n"]);
    const agent = driver.state.nextAgent;
    const path = join(directory, `stream-${++streams}`);
    const joined = { uuid: "v", pilot: 0, host: "h", version: "1", resources: {}, output: path, seq: 0 };
    driver.send({ type: "agent.joined", at: 1, agent, ...joined });
    driver.assign(agent, run.id, 0);
    const output = await openOutputStream(path);
    const [other, mine] = [output.begin(run.id, 1, 2), output.begin(run.id, 0, 2)];
    const write = async (to: typeof mine, text: string): Promise<void> => {
      output.write(to, 1, Buffer.from(text));
      await output.flush();
    };
    await write(other, "of another task\n");
    await write(mine, "told, ");
    const told = output.tail(mine);
    await write(mine, `not told${"!".repeat(200_000)}`);
    await write(other, "of another task\n");
    await write(mine, " at all\n");
    await write(other, "cut off");
    await output.close();
    truncateSync(path, statSync(path).size - 3);
    const started = [{ run: run.id, rows: [0], at: [1500], outAt: [told] }];
    driver.send({ type: "agents.lost", at: 5000, agents: [agent], reason: "gone", started });
    const whole = `told, not told${"!".repeat(200_000)} at all\n`;
    expect(await read(driver, run, 2)).toBe(whole);
    expect(await read(driver, run)).toBe(whole);
    // in an older journal, or when the server was gone as well, nothing was reported
    run.history = new Map(run.history).set(0, [run.history.get(0)![0]!, { ...run.history.get(0)![1]!, outAt: -1 }]);
    expect(await read(driver, run, 2)).toBe(whole);
    rmSync(path);
    run.history = new Map(run.history).set(0, [run.history.get(0)![0]!, { ...run.history.get(0)![1]!, outAt: -1 }]);
    expect(await read(driver, run, 2)).toBe("");
  });

  it("one that was dropped, or never was, is refused and says so", async () => {
    const { driver, run } = await running(
      {},
      Array.from({ length: 12 }, (_, i) => `${i + 1}\n`),
    );
    for (const n of [1, 2, 3, 8, 9, 10, 11, 12]) expect(await read(driver, run, n)).toBe(`${n}\n`);
    for (const n of [4, 7]) {
      const { code, facts } = refusal(run, n);
      expect(code).toBe("no-such-attempt");
      expect(facts["detail"]).toContain("of its 12 attempts the first 3 and the last 5 are kept");
    }
    expect(refusal(run, 13)).toMatchObject({ code: "no-such-attempt", facts: { detail: "; it has had 12" } });
  });

  it("a file of the user's: one for each attempt is read, one that was replaced is refused", async () => {
    const each = await running({ stdout: "each-{attempt}.txt" }, ["", ""]);
    for (const n of [1, 2]) writeFileSync(join(directory, `each-${n}.txt`), `in file ${n}\n`);
    expect(await read(each.driver, each.run, 1)).toBe("in file 1\n");
    const one = await running({ stdout: "one.txt" }, ["", ""]);
    writeFileSync(join(directory, "one.txt"), "the second\n");
    expect(await read(one.driver, one.run, 2)).toBe("the second\n");
    const appending = await running({ stdout: "one.txt", append: true }, ["", ""]);
    expect(await read(appending.driver, appending.run, 1)).toBe("the second\n");
    const ranks = await running({ stdout: "ranks.txt", ranks: { count: 3, by: "agents" } }, [""]);
    for (const rank of [0, 1, 2]) writeFileSync(join(directory, `ranks.txt.${rank}`), `rank ${rank}\n`);
    expect(await read(ranks.driver, ranks.run)).toBe("rank 0\nrank 1\nrank 2\n");
    expect(refusal(one.run, 1)).toMatchObject({
      code: "output-replaced",
      facts: { path: join(directory, "one.txt"), by: 2 },
    });
  });
});
