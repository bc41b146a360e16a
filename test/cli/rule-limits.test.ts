import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdir, open, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RunView, StatusView, TaskView } from "../../src/api/schemas.ts";
import { connect, inBatches } from "../../src/client/index.ts";
import { readEndpoint } from "../../src/protocol/endpoint.ts";
import { until } from "../until.ts";
import { type Outcome, type SlipwayHome, createHome } from "./slipway-process.ts";
import { onSmallDisk } from "./small-disk.ts";

/** Limits: of disks, of memory, of path lengths, of what a client may leave unfinished. */

let slipway: SlipwayHome;

beforeEach(async () => {
  slipway = await createHome();
});

afterEach(() => slipway.cleanup());

const memoryOf = async (pid: number): Promise<number> =>
  Number(/^VmRSS:\s*(\d+) kB/m.exec(await readFile(`/proc/${pid}/status`, "utf8"))![1]) * 1024;

/** Fills the disk again and again while the journal finds room for one more: in its reserve, or in its last page. */
const refusedWhenFull = async (command: readonly string[], block: number): Promise<Outcome> => {
  const filler = await open(join(slipway.home, "filler"), "a");
  try {
    for (let i = 0; ; i += 1) {
      for (const bytes = Buffer.alloc(block); ;)
        if ((await filler.write(bytes).catch(() => undefined)) === undefined) break;
      const outcome = await slipway.run(command);
      if (outcome.status !== 0 || i === 20) return outcome;
    }
  } finally {
    await filler.close();
  }
};

describe("a full disk", () => {
  it("rule 2: submits are refused and say so while the journal's disk is full; with room all goes on", (ctx) =>
    onSmallDisk(ctx, slipway.home, "8m", async () => {
      try {
        await slipway.run(["up"]);
        const task = "echo >> ran; sleep 0.05";
        const { run } = await slipway.json<{ run: number }>(["submit", "--array", "1-100", "--", "sh", "-c", task]);
        // the agent is connected and works before the disk fills up
        await until(
          "tasks run",
          async () => (await readFile(join(slipway.cwd, "ran"), "utf8").catch(() => "")).length > 5,
        );
        const submit = ["submit", "--env", `PAD=${"x".repeat(100_000)}`, "--", "true"];
        // the journal continues in its reserve, until that is full too
        const refused = await refusedWhenFull(submit, 65_536);
        expect(refused.status).toBe(3);
        expect(refused.stderr).toMatch(/the journal cannot be written .*nothing was submitted/);
        expect((await slipway.json<StatusView>(["status"])).server.state).toBe("journal-full");
        await rm(join(slipway.home, "filler"));
        expect((await slipway.run(["wait", String(run)])).status).toBe(0);
        expect((await slipway.json<StatusView>(["status"])).server.state).toBe("running");
        expect((await slipway.run(["run", "--", "true"])).status).toBe(0);
        expect((await slipway.json<RunView>(["show", String(run)])).counts).toEqual({ DONE: 100 });
        expect(await slipway.serverLog()).toContain("the journal continues in the space reserved for it");
        await slipway.run(["down"]);
        expect((await slipway.run(["journal", "verify"])).status).toBe(0);
      } finally {
        await slipway.run(["down", "--now"]);
      }
    }));
});

describe("a disk that fills up with a short run", () => {
  it("rule 7: a run that was committed when the room ended is named, not denied, and begins when there is room", (ctx) =>
    onSmallDisk(ctx, slipway.home, "8m", async () => {
      try {
        await slipway.run(["up"]);
        expect((await slipway.run(["run", "--", "true"])).status).toBe(0);
        const submit = ["submit", "--json", "--env", `PAD=${"x".repeat(3000)}`, "--", "true"];
        const refused = await refusedWhenFull(submit, 4096);
        expect(refused.status).toBe(3);
        const run = /run (\d+) starts once there is/.exec(refused.stderr)?.[1];
        expect(run, refused.stderr).toBeDefined();
        await rm(join(slipway.home, "filler"));
        expect((await slipway.run(["wait", run!])).status).toBe(0);
        expect((await slipway.json<RunView>(["show", run!])).counts).toEqual({ DONE: 1 });
      } finally {
        await slipway.run(["down", "--now"]);
      }
    }));
});

describe("rule 7: submits", () => {
  it("rule 7: a repeated request is the same run", async () => {
    await slipway.run(["up"]);
    const client = connect({ home: slipway.home });
    const document = { uuid: randomUUID(), cwd: slipway.cwd, environment: {}, tasks: [{ run: ["true"] }] };
    const first = await client.submit(document);
    expect(await client.submit(document)).toEqual(first);
    expect(await client.runs()).toHaveLength(1);
    client.close();
  });

  it("rule 7: equal requests at once, and one that repeats what hangs half sent, are one run; another body is refused", async () => {
    await slipway.run(["up"]);
    const endpoint = (await readEndpoint(slipway.home))!;
    const client = connect({ home: slipway.home });
    const each = { array: "1-5000" };
    const base = { cwd: slipway.cwd, environment: {} };
    const equal = { ...base, uuid: randomUUID(), tasks: [{ run: ["true"], each, executor: "null" }] };
    const answers = await Promise.all(Array.from({ length: 8 }, () => client.submit(equal)));
    expect(new Set(answers.map(({ run }) => run)).size).toBe(1);

    const streamed = { ...base, uuid: randomUUID(), tasks: [{ run: ["true"], each: { stream: "lines" } }] };
    const items = Array.from({ length: 5000 }, (_, i) => `item ${i}`);
    const before = await journalBytes();
    const hanging = request({
      socketPath: endpoint.socket,
      path: "/api/v1/runs",
      method: "POST",
      headers: { host: "slipway", "content-type": "application/x-ndjson" },
    });
    const answer = once(hanging, "response") as Promise<[IncomingMessage]>;
    hanging.write(`${JSON.stringify(streamed)}\n${JSON.stringify({ group: 0, items: items.slice(0, 2000) })}\n`);
    await until("the journal has grown", async () => (await journalBytes()) > before);
    const { run } = await client.submit(streamed, [{ group: 0, batches: () => inBatches(items) }]);
    hanging.end(`${JSON.stringify({ group: 0, items: items.slice(2000) })}\n{"end":true}\n`);
    const [response] = await answer;
    expect(await new Response(response as never).json()).toEqual({ run, total: 5000 });
    expect(await client.runs()).toHaveLength(2);

    process.kill(endpoint.pid, "SIGKILL");
    await slipway.run(["up"]);
    expect(await client.submit(equal)).toEqual(answers[0]);
    const other = { ...equal, name: "other" };
    await expect(client.submit(other)).rejects.toMatchObject({ code: "uuid-taken", facts: { run: answers[0]!.run } });
    expect(await client.runs()).toHaveLength(2);
    client.close();
  });

  it("rule 7: a client that dies in the middle of a bulk submit has submitted nothing", async () => {
    await slipway.run(["up"]);
    const endpoint = (await readEndpoint(slipway.home))!;
    const body = request({
      socketPath: endpoint.socket,
      path: "/api/v1/runs",
      method: "POST",
      headers: { host: "slipway", "content-type": "application/x-ndjson" },
    });
    body.on("error", () => undefined);
    body.write(
      `${JSON.stringify({ uuid: randomUUID(), cwd: slipway.cwd, environment: {}, tasks: [{ run: "echo {item}", each: { stream: "lines" } }] })}\n`,
    );
    const line = `${JSON.stringify({ group: 0, items: Array.from({ length: 1000 }, (_, i) => `item ${i}`) })}\n`;
    for (let i = 0; i < 50; i += 1) body.write(line);
    await until(
      "items are in the journal",
      async () => (
        await slipway.serverLog(),
        (await stat(join(slipway.home, "journal"))).isDirectory() && (await journalBytes()) > 400_000
      ),
    );
    body.destroy();
    // what comes after is accepted, and what was cut off is nowhere
    expect(await slipway.json(["run", "--", "true"])).toMatchObject({ state: "DONE" });
    const runs = await slipway.json<RunView[]>(["list"]);
    expect(runs.map(({ total }) => total)).toEqual([1]);
    process.kill(endpoint.pid, "SIGKILL");
    await slipway.run(["up"]);
    expect((await slipway.json<RunView[]>(["list"])).map(({ total }) => total)).toEqual([1]);
  });
});

const journalBytes = async (): Promise<number> => {
  let sum = 0;
  for (const name of await readdir(join(slipway.home, "journal")))
    if (name !== "reserve") sum += (await stat(join(slipway.home, "journal", name))).size;
  return sum;
};

describe("rule 8: memory", () => {
  it("rule 8: 1,000,000 waiting array tasks hold little, and ended ones leave memory for the disk", async () => {
    await slipway.run(["up"]);
    const { pid } = (await readEndpoint(slipway.home))!;
    await writeFile(
      join(slipway.cwd, "million.yaml"),
      `tasks:\n  - { name: gate, run: "until [ -e ${slipway.cwd}/go ]; do sleep 0.1; done" }\n  - { name: work, each: { array: 1-1000000 }, after: gate, run: [/bin/true], executor: "null" }\n`,
    );
    const { run } = await slipway.json<{ run: number }>(["submit", "million.yaml"]);
    expect((await slipway.json<RunView>(["show", String(run)])).counts["NEW"]).toBe(1_000_000);
    expect(await memoryOf(pid)).toBeLessThan(400 * 2 ** 20);
    await writeFile(join(slipway.cwd, "go"), "");
    expect((await slipway.run(["wait", String(run)])).status).toBe(0);
    expect(await memoryOf(pid)).toBeLessThan(600 * 2 ** 20);
    await slipway.run(["journal", "compact"]);
    const task = await slipway.json<TaskView>(["show", `${run}.777777`]);
    expect(task).toMatchObject({ state: "DONE", exitCode: 0, attempts: [{ n: 1, exitCode: 0 }] });
    expect(task.attempts[0]!.started).not.toBeNull();
    expect(await journalBytes()).toBeLessThan(100 * 2 ** 20);
  });
});

describe("rule 13: small files", () => {
  it("rule 13: output of many tasks is one stream, not files of their own, and TMPDIRs are elsewhere", async () => {
    await slipway.run(["run", "--array", "1-300", "--", "sh", "-c", "echo $TMPDIR; echo problem {item} >&2"]);
    expect(await readdir(join(slipway.home, "output"))).toHaveLength(1);
    const up = await slipway.run(["up"]);
    expect(up.status).toBe(0);
    const { stdout } = await slipway.run(["logs", "1.17"]);
    expect(stdout.startsWith(`${slipway.tmp}/`)).toBe(true);
    expect((await slipway.run(["logs", "1.17", "--stderr"])).stdout).toBe("problem 17\n");
  });
});

describe("rule 14: text and paths", () => {
  it("rule 14: a home with a very long path works: its socket lies in a short private directory", async () => {
    const long = join(slipway.root, "home", "x".repeat(120), "y".repeat(120));
    await mkdir(long, { recursive: true });
    const env = { SLIPWAY_HOME: long };
    const outcome = await slipway.run(["run", "--", "echo", "hi"], { env });
    expect(outcome.stdout).toContain("hi");
    await slipway.run(["up"], { env });
    const { socket } = (await readEndpoint(long))!;
    expect(Buffer.byteLength(socket)).toBeLessThanOrEqual(107);
    expect((await stat(join(socket, ".."))).mode & 0o777).toBe(0o700);
    await slipway.run(["down"], { env });
  });

  it("rule 16: keys and tokens are readable by their owner alone", async () => {
    await slipway.run(["up"]);
    for (const name of await readdir(join(slipway.home, "keys"), { recursive: true })) {
      const found = await stat(join(slipway.home, "keys", name));
      expect(found.mode & 0o777, name).toBe(found.isDirectory() ? 0o700 : 0o600);
    }
    expect((await stat(slipway.home)).mode & 0o777).toBe(0o700);
  });
});
