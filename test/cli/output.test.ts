import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunView, StatusView, TaskView } from "../../src/api/schemas.ts";
import { connect, type ItemStream } from "../../src/client/index.ts";
import { createGate } from "./gate.ts";
import { createHome, ROOT, type SlipwayHome } from "./slipway-process.ts";
import { processesUnder } from "./processes-under.ts";

/** What tasks write arrives exactly, wherever it is kept, while they run and afterwards. */

let slipway: SlipwayHome;

beforeAll(async () => {
  slipway = await createHome();
  await mkdir(slipway.home);
  await writeFile(join(slipway.home, "clusters.yaml"), "clusters: { local: { resources: { cpu: 4 } } }\n");
  await slipway.run(["up"]);
});
afterAll(() => slipway.cleanup());

const write = (name: string, content: string | Uint8Array): Promise<void> =>
  writeFile(join(slipway.cwd, name), content);

/** Standard output of a command as bytes: hash and length, so that nothing large is kept. */
const bytesOf = (args: string[]): Promise<{ sha: string; length: number; data: Buffer }> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(ROOT, "bin/slipway"), "--home", slipway.home, ...args], {
      stdio: ["ignore", "pipe", "inherit"],
      cwd: slipway.cwd,
    });
    const hash = createHash("sha256");
    const kept: Buffer[] = [];
    let length = 0;
    child.stdout.on("data", (chunk: Buffer) => {
      hash.update(chunk);
      if (length < 4 * 2 ** 20) kept.push(chunk);
      length += chunk.length;
    });
    child.once("error", reject);
    child.once("close", () => resolve({ sha: hash.digest("hex"), length, data: Buffer.concat(kept) }));
  });

const sha = (data: Uint8Array): string => createHash("sha256").update(data).digest("hex");

/** A megabyte with every byte value, including NUL and sequences that are not UTF-8; the same on every machine. */
const binary = (): Buffer => {
  const data = Buffer.alloc(1024 * 1024 + 17);
  let seed = 1;
  for (let at = 0; at < data.length; at++) {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    data[at] = seed >>> 16;
  }
  Buffer.from([0, 0xff, 0xfe, 0xc3, 0x28, 0x0d, 0x0a, 0x1b]).copy(data, 100);
  return data;
};

describe("kept by Slipway", () => {
  it("binary output of a megabyte, on both streams, byte for byte", async () => {
    const [out, err] = [binary(), Buffer.from(binary().toReversed())];
    await write("out.bin", out);
    await write("err.bin", err);
    const { id } = await slipway.json<RunView>(["run", "--", "sh", "-c", "cat out.bin; cat err.bin >&2"]);
    expect(await bytesOf(["logs", `${id}.0`])).toMatchObject({ length: out.length, sha: sha(out) });
    expect(await bytesOf(["logs", `${id}.0`, "--stderr"])).toMatchObject({ length: err.length, sha: sha(err) });
    expect(await slipway.json<TaskView>(["show", `${id}.0`])).toMatchObject({
      stdoutBytes: out.length,
      stderrBytes: err.length,
    });
  });

  it("run prints the result's bytes alone on standard output, what it said beside on standard error", async () => {
    await write("small.bin", binary().subarray(0, 5000));
    const { data } = await bytesOf(["run", "--quiet", "--", "cat", "small.bin"]);
    expect(Buffer.compare(data, binary().subarray(0, 5000))).toBe(0);
    const { stdout, stderr } = await slipway.run(["run", "--", "sh", "-c", "echo out; echo err >&2"]);
    expect(stdout).toBe("out\n");
    expect(stderr).toMatch(/^run \d+: 1 task\nerr\nrun \d+ sh: done/);
  });

  it("many writers at once are never mixed up", async () => {
    const script = 'i=0; while [ $i -lt 200 ]; do echo "{item} line $i"; echo "{item} error $i" >&2; i=$((i+1)); done';
    const { id } = await slipway.json<RunView>(["run", "--array", "1-20", "--", "sh", "-c", script]);
    for (const [flag, word] of [
      [[], "line"],
      [["--stderr"], "error"],
    ] as const) {
      const { stdout } = await slipway.run(["logs", String(id), ...flag]);
      const expected = Array.from({ length: 20 }, (_, t) =>
        Array.from({ length: 200 }, (_, i) => `${id}.${t + 1}: ${t + 1} ${word} ${i}\n`).join(""),
      );
      expect(stdout).toBe(expected.join(""));
    }
  });

  it("a run's lines stand behind their task; a missing last newline is added; a task alone is shown as it is", async () => {
    const { id } = await slipway.json<RunView>(["run", "--array", "3-4", "--", "printf", "a {item}\\nb"]);
    expect((await slipway.run(["logs", String(id)])).stdout).toBe(
      `${id}.3: a 3\n${id}.3: b\n${id}.4: a 4\n${id}.4: b\n`,
    );
    expect((await slipway.run(["logs", `${id}.4`])).stdout).toBe("a 4\nb");
    expect((await slipway.run(["logs", `${id}.4`, "--stderr"])).stdout).toBe("");
  });

  it("the last attempt's output is shown", async () => {
    const { id } = await slipway.json<RunView>([
      "run",
      "--retries",
      "2",
      "--",
      "sh",
      "-c",
      "echo {attempt}; exit $((3 - {attempt}))",
    ]);
    expect((await slipway.run(["logs", `${id}.0`])).stdout).toBe("3\n");
  });

  it("logs -f shows lines of a running task before it ends, and ends with it", async () => {
    const gate = createGate(slipway.cwd, "follow");
    const { run } = await slipway.json<{ run: number }>([
      "submit",
      "--",
      "sh",
      "-c",
      `echo before; echo oops >&2; ${gate.script}; echo after`,
    ]);
    await gate.arrived(1);
    const [follow, errors] = [
      slipway.start(["logs", `${run}.0`, "-f"]),
      slipway.start(["logs", String(run), "-f", "--stderr"]),
    ];
    await follow.saw(/^before\n$/);
    await errors.saw(/oops/);
    // Without -f, what is there now.
    expect((await slipway.run(["logs", `${run}.0`])).stdout).toBe("before\n");
    gate.open();
    expect(await follow.ended).toMatchObject({ status: 0, stdout: "before\nafter\n" });
    expect(await errors.ended).toMatchObject({ status: 0, stdout: "oops\n" });
  });

  it("logs -f of a run shows tasks as they come", async () => {
    const gate = createGate(slipway.cwd, "follow-run");
    const script = `echo hello {item}; if [ {item} = 2 ]; then ${gate.script}; fi`;
    const { run } = await slipway.json<{ run: number }>(["submit", "--array", "1-2", "--", "sh", "-c", script]);
    const follow = slipway.start(["logs", String(run), "-f"]);
    await follow.saw(new RegExp(`${run}\\.1: hello 1\n`));
    gate.open();
    const { status, stdout } = await follow.ended;
    expect(status).toBe(0);
    expect(stdout.split("\n").toSorted()).toEqual(["", `${run}.1: hello 1`, `${run}.2: hello 2`]);
  });

  it("logs of what has not started is empty", async () => {
    const gate = createGate(slipway.cwd, "empty");
    const { run } = await slipway.json<{ run: number }>(["submit", "--cpus", "4", "--", ...gate.command]);
    await gate.arrived(1);
    const later = await slipway.json<{ run: number }>(["submit", "--", "echo", "x"]);
    expect(await slipway.run(["logs", `${later.run}.0`])).toMatchObject({ status: 0, stdout: "" });
    gate.open();
    await slipway.run(["wait", String(run), String(later.run)]);
  });

  it("100 MB of output goes through; neither agent nor server grows with it", async () => {
    const script = "dd if=/dev/zero bs=1M count=100 2>/dev/null | tr '\\000' x";
    const { id } = await slipway.json<RunView>(["run", "--", "sh", "-c", script], { timeoutMs: 110_000 });
    const memory = async (): Promise<Record<string, number>> => {
      const found: Record<string, number> = {};
      for (const { pid, command } of await processesUnder(slipway.root)) {
        const name = /(agent|server)(?:-quick)?\.c?js/.exec(command)?.[1];
        if (name === undefined) continue;
        const status = await readFile(`/proc/${pid}/status`, "utf8");
        found[name] = Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
      }
      return found;
    };
    const expected = Buffer.alloc(100 * 2 ** 20, "x");
    expect(await bytesOf(["logs", `${id}.0`])).toMatchObject({ length: expected.length, sha: sha(expected) });
    const peak = await memory();
    expect(Object.keys(peak).toSorted()).toEqual(["agent", "server"]);
    for (const [name, mb] of Object.entries(peak)) expect(mb, name).toBeLessThan(500);
    expect((await slipway.json<StatusView>(["status"])).server.state).toBe("running");
  });
});

describe("files of the user", () => {
  it("--stdout and --stderr with placeholders; missing directories are made; relative to where it was typed", async () => {
    const options = ["--stdout", "made/{run}/{task}.out", "--stderr", "made/{run}/{name}-{item}.err"];
    const run = await slipway.json<RunView>([
      "run",
      "--name",
      "n",
      "--array",
      "1-2",
      ...options,
      "--",
      "sh",
      "-c",
      "echo out {item}; echo err {item} >&2",
    ]);
    for (const item of [1, 2]) {
      const at = (name: string): string => join(slipway.cwd, "made", String(run.id), name);
      expect(await readFile(at(`${item}.out`), "utf8")).toBe(`out ${item}\n`);
      expect(await readFile(at(`n-${item}.err`), "utf8")).toBe(`err ${item}\n`);
    }
    expect((await slipway.run(["logs", String(run.id)])).stdout).toBe(`${run.id}.1: out 1\n${run.id}.2: out 2\n`);
    expect((await slipway.run(["show", `${run.id}.1`])).stdout).toContain(`made/${run.id}/1.out`);
  });

  it("both streams in one file, in the order they were written; an old file is replaced", async () => {
    await write("both.txt", "old and longer than what comes\n".repeat(10));
    const script = "echo 1; echo 2 >&2; echo 3; echo 4 >&2";
    const paths = ["--stdout", "both.txt", "--stderr", "both.txt"];
    expect((await slipway.run(["run", "--quiet", ...paths, "--", "sh", "-c", script])).status).toBe(0);
    expect(await readFile(join(slipway.cwd, "both.txt"), "utf8")).toBe("1\n2\n3\n4\n");
  });

  it("one file for many tasks is refused with the remedy; with --append every line of all of them is in it, whole", async () => {
    const args = ["--array", "1-60", "--stdout", "many.txt", "--stderr", "many.txt"];
    const script = "printf '%01000d\\n' {item}; printf '%01000d\\n' {item} >&2";
    const refused = await slipway.run(["run", ...args, "--", "sh", "-c", script]);
    expect(refused.status).toBe(2);
    expect(refused.stderr).toMatch(/--stdout: all tasks of 'sh' would write to many\.txt/);
    expect(refused.stderr).toMatch(/\{task\} or \{item\}.*--append/);
    expect(existsSync(join(slipway.cwd, "many.txt"))).toBe(false);
    await write("many.txt", "what was there\n");
    const run = await slipway.json<RunView>(["run", ...args, "--append", "--", "sh", "-c", script]);
    expect(run.counts).toEqual({ DONE: 60 });
    const lines = (await readFile(join(slipway.cwd, "many.txt"), "utf8")).split("\n");
    const items = Array.from({ length: 60 }, (_, i) => String(i + 1).padStart(1000, "0"));
    expect(lines.toSorted()).toEqual(["", "what was there", ...items, ...items].toSorted());
    // the first of them shows the file, the others do not repeat it
    const shown = (await slipway.run(["logs", String(run.id)])).stdout.split("\n");
    expect(shown).toHaveLength(122);
    expect(shown[0]).toBe(`${run.id}.1: what was there`);
  });

  it("the server refuses one file for many tasks too, however the items come", async () => {
    const client = connect({ home: slipway.home });
    const submit = (task: object, items?: ItemStream[]): Promise<unknown> =>
      client.submit({ cwd: slipway.cwd, environment: {}, tasks: [{ run: ["true"], ...task }] }, items);
    async function* values(): AsyncGenerator<string[]> {
      yield ["a", "b"];
    }
    const before = (await client.runs()).length;
    try {
      const refusal = { code: "bad-value", facts: { key: "stdout" } };
      await expect(submit({ stdout: "x", each: { array: "1-2" } })).rejects.toMatchObject(refusal);
      const stream = { group: 0, once: true, batches: values };
      await expect(submit({ stdout: "x", each: { stream: "lines" } }, [stream])).rejects.toMatchObject(refusal);
      expect(await client.runs()).toHaveLength(before);
    } finally {
      client.close();
    }
  });

  it("a directory taken away between tasks is made again", async () => {
    const args = ["run", "--quiet", "--stdout", "again/x.txt", "--", "echo", "here"];
    expect((await slipway.run(args)).status).toBe(0);
    await rm(join(slipway.cwd, "again"), { recursive: true });
    expect((await slipway.run(args)).status).toBe(0);
    expect(await readFile(join(slipway.cwd, "again/x.txt"), "utf8")).toBe("here\n");
  });

  it("a path that cannot be written: the task fails and says which and why, the command never ran", async () => {
    await write("occupied", "");
    const { id } = await slipway.json<RunView>(["run", "--stdout", "occupied/x.txt", "--", "touch", "it-ran"], {
      statuses: [1],
    });
    const task = await slipway.json<TaskView>(["show", `${id}.0`]);
    expect(task.state).toBe("FAILED");
    expect(task.reason).toContain(join(slipway.cwd, "occupied/x.txt"));
    expect((await slipway.run(["why", `${id}.0`])).stdout).toContain("occupied/x.txt");
    expect(existsSync(join(slipway.cwd, "it-ran"))).toBe(false);
  });
});
