import { type IncomingHttpHeaders, request as httpRequest } from "node:http";
import { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LiveEvent, LiveNext } from "../../src/api/live.ts";
import { SeriesView } from "../../src/api/series.ts";
import { FailuresView } from "../../src/api/failures.ts";
import { JobDetail, PilotDetail } from "../../src/api/job-details.ts";
import { TimelineView } from "../../src/api/timeline.ts";
import { connect } from "../../src/client/index.ts";
import { RunView, ServerView, StatusView, TaskView } from "../../src/api/schemas.ts";
import { readEndpoint } from "../../src/protocol/endpoint.ts";
import { type SlipwayHome, createHome } from "./slipway-process.ts";

/** The REST API as curl would see it, over the unix socket. */

let slipway: SlipwayHome;
let socket: string;

beforeAll(async () => {
  slipway = await createHome();
  await slipway.run(["up"]);
  socket = (await readEndpoint(slipway.home))!.socket;
});

afterAll(() => slipway.cleanup());

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
  readonly headers: IncomingHttpHeaders;
}

const ask = (
  method: string,
  path: string,
  body?: string | Iterable<string>,
  type = "application/json",
  more: Readonly<Record<string, string>> = {},
): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const sent = httpRequest(
      {
        socketPath: socket,
        path: `/api/v1${path}`,
        method,
        headers: { host: "slipway", ...more, ...(type === "" ? {} : { "content-type": type }) },
      },
      (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        answer.on("end", () =>
          resolve({
            status: answer.statusCode ?? 0,
            type: answer.headers["content-type"] ?? "",
            text,
            headers: answer.headers,
          }),
        );
      },
    );
    sent.on("error", reject);
    if (body === undefined || typeof body === "string") sent.end(body);
    else Readable.from(body).pipe(sent);
  });

/** Status and code of a refusal. */
const codeOf = async (...words: Parameters<typeof ask>): Promise<string> => {
  const { status, text } = await ask(...words);
  return `${status} ${(JSON.parse(text) as { error?: { code: string } }).error?.code ?? ""}`;
};

const json = async (method: string, path: string, body?: unknown): Promise<{ status: number; body: unknown }> => {
  const answer = await ask(method, path, body === undefined ? undefined : JSON.stringify(body));
  return { status: answer.status, body: JSON.parse(answer.text) as unknown };
};

const untilEnded = async (run: number): Promise<RunView> => {
  const { text } = await ask("GET", `/runs/${run}/watch`);
  return RunView.parse(JSON.parse(text.trim().split("\n").at(-1)!));
};

describe("the REST API", () => {
  it("API: describes itself: openapi lists every path with its schemas", async () => {
    const { body } = await json("GET", "/openapi.json");
    const { openapi, paths } = body as {
      openapi: string;
      paths: Record<string, Record<string, { summary: string; parameters?: { name: string; required: boolean }[] }>>;
    };
    expect(openapi).toBe("3.1.0");
    expect(Object.keys(paths)).toEqual(
      expect.arrayContaining([
        "/api/v1/runs",
        "/api/v1/runs/{run}",
        "/api/v1/runs/{run}/tasks/{task}",
        "/api/v1/events",
        "/api/v1/pilots",
        "/api/v1/status",
      ]),
    );
    for (const [path, methods] of Object.entries(paths))
      for (const route of Object.values(methods)) {
        expect(route.summary).not.toBe("");
        for (const name of path.matchAll(/\{(\w+)\}/g))
          expect(route.parameters).toContainEqual(expect.objectContaining({ name: name[1], required: true }));
      }
  });

  it("API: takes a run as one JSON document, runs it and shows it in the documented shapes", async () => {
    const document = {
      name: "api",
      cwd: slipway.cwd,
      environment: { PATH: "/usr/bin:/bin" },
      tasks: [{ name: "a", run: "echo {item}", each: { values: ["x", "y"] } }],
    };
    const { status, body } = await json("POST", "/runs", document);
    expect(status).toBe(200);
    const { run, total } = body as { run: number; total: number };
    expect(total).toBe(2);
    expect(await untilEnded(run)).toMatchObject({ state: "DONE", counts: { DONE: 2 } });
    expect(TaskView.parse((await json("GET", `/runs/${run}/tasks/1`)).body)).toMatchObject({
      id: `${run}.1`,
      item: "y",
      exitCode: 0,
    });
    expect((await ask("GET", `/runs/${run}/tasks/1/logs`)).text).toBe("y\n");
    expect((await json("GET", `/runs/${run}/tasks?state=DONE&limit=1&offset=1`)).body).toMatchObject([
      { id: `${run}.1` },
    ]);
    StatusView.parse((await json("GET", "/status")).body);
    ServerView.parse((await json("GET", "/server")).body);
  });

  it("API: a submission with watch=true is answered with the run's id, then with the run until it has ended", async () => {
    const document = { cwd: slipway.cwd, environment: {}, tasks: [{ run: ["/bin/true"], each: { array: "1-3" } }] };
    const { status, type, text } = await ask("POST", "/runs?watch=true", JSON.stringify(document));
    expect(status).toBe(200);
    expect(type).toBe("application/x-ndjson");
    const [first, ...views] = text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown);
    const { run } = first as { run: number };
    expect(first).toEqual({ run, total: 3 });
    for (const view of views) expect(RunView.parse(view)).toMatchObject({ id: run });
    expect(views.at(-1)).toMatchObject({ state: "DONE", counts: { DONE: 3 } });
    expect(await ask("POST", "/runs?watch=maybe", JSON.stringify(document))).toMatchObject({ status: 400 });
    const refused = await ask("POST", "/runs?watch=true", JSON.stringify({ ...document, tasks: [] }));
    expect(refused).toMatchObject({ status: 400, type: "application/problem+json" });
  });

  it("API: live tells a run from its beginning to its end, goes on after an id, and answers those who ask again", async () => {
    const client = connect({ home: slipway.home });
    const { run } = await client.submit({
      cwd: slipway.cwd,
      environment: { PATH: "/usr/bin:/bin" },
      tasks: [
        { name: "first", run: "exit {item}", each: { values: ["0", "3"] } },
        { name: "last", run: "true", after: { first: "any" } },
      ],
    });
    const stop = new AbortController();
    const told: LiveEvent[] = [];
    for await (const each of client.live({ run, signal: stop.signal })) {
      told.push(each);
      if (each.event === "run" && each.data.run.finished !== null) break;
    }
    client.close();
    expect(told.slice(0, 2).map(({ event }) => event)).toEqual(["overview", "run"]);
    for (const each of told) LiveEvent.parse(each);
    expect(told.at(-1)).toMatchObject({
      data: {
        stages: [
          { counts: { DONE: 1, FAILED: 1 }, level: 1 },
          { counts: { DONE: 1 }, after: [0], level: 2 },
        ],
      },
    });
    const stream = await ask("GET", "/live?seconds=0");
    expect([stream.status, stream.type, stream.headers["x-accel-buffering"]]).toEqual([200, "text/event-stream", "no"]);
    const ids = [...stream.text.matchAll(/^id: (.*)$/gm)].map(([, id]) => id!);
    const { body } = await json("GET", "/live/next");
    expect(LiveNext.parse(body).events.map(({ event }) => event)).toEqual(["overview"]);
    // what was told before the first of its events is told again, and nothing else
    const [epoch] = ids[0]!.split("-");
    const all = await ask("GET", `/live?seconds=0&after=${epoch}-0-0`);
    const seqs = [...all.text.matchAll(/"seq":(\d+)/g)].map(([, seq]) => Number(seq));
    expect(seqs.length).toBeGreaterThan(3);
    // failures are told, successes only counted
    const ended = [...all.text.matchAll(/"event":"task.ended","run":(\d+),"task":"([\d.]+)"/g)];
    expect(ended.filter(([, of]) => Number(of) === run).map(([, , task]) => task)).toEqual([`${run}.1`]);
    expect(seqs).toEqual([...new Set(seqs)].toSorted((a, b) => a - b));
    const more = await ask("GET", "/live?seconds=0", undefined, "", {
      "last-event-id": all.text.match(/id: (.*)/)![1]!,
    });
    expect([...more.text.matchAll(/"seq":(\d+)/g)].map(([, seq]) => Number(seq))).toEqual(seqs.slice(1));
    expect((await ask("GET", "/live?seconds=0&after=9-1-1")).text).toContain("event: reset\n");
    expect((await ask("HEAD", "/live")).status).toBe(200);
    expect(await codeOf("GET", "/live?run=99")).toBe("404 no-such-run");
    expect(await codeOf("GET", "/live?after=x")).toBe("400 bad-request");
    const series = SeriesView.parse((await json("GET", "/series?span=10m")).body);
    expect(series.failed.reduce((sum, each) => sum + each, 0)).toBeGreaterThanOrEqual(1);
    expect(series.time.length).toBe(series.coresTotal.length);
  });

  it("API: a run by timeline and failures, its table from any place, its pilot with states, script and decision", async () => {
    const client = connect({ home: slipway.home });
    const name = "<script>alert(1)</script>";
    const { run } = await client.submit({
      name,
      cwd: slipway.cwd,
      environment: { PATH: "/usr/bin:/bin" },
      tasks: [
        { name: "bad", run: "echo 'no file {item} <b>' >&2; exit 3", each: { array: "1-4" } },
        { name: "killed", run: "kill -9 $$" },
        { name: "good", run: "true", each: { array: "1-5" } },
      ],
    });
    expect(await untilEnded(run)).toMatchObject({ name, state: "FAILED" });
    const timeline = TimelineView.parse(await client.timeline(run));
    expect([timeline.bars, timeline.folded, timeline.lane.length]).toEqual([10, false, 10]);
    expect(timeline.lanes[0]).toMatchObject({ slot: 0, of: 1 });
    const failures = FailuresView.parse(await client.failures(run));
    expect(failures).toMatchObject({
      failed: 5,
      groups: [
        { exitCode: 3, lastLine: "no file 1 <b>", count: 4, read: true, tasks: [{ id: `${run}.0` }, {}, {}, {}] },
        { exitCode: null, signal: "SIGKILL", count: 1, lastLine: null },
      ],
      more: { groups: 0, tasks: 0 },
    });
    expect(failures.groups[0]!.why).toEqual(await client.why(run, 0));
    const page = await client.taskPage(run, { states: ["DONE"], sort: "duration", offset: 3, limit: 10 });
    expect([page.total, page.rows.length]).toEqual([5, 2]);
    expect((await client.taskPage(run, { offset: 10 ** 12, limit: 5 })).rows).toEqual([]);
    expect(await codeOf("GET", `/runs/${run}/task-table?offset=-1`)).toBe("400 bad-request");
    expect(await codeOf("GET", `/runs/${run}/timeline?from=-5`)).toBe("400 bad-request");
    expect(await codeOf("GET", `/runs/${run}/timeline?most=1000000`)).toBe("400 bad-request");

    const [first] = await client.pilots();
    const pilot = PilotDetail.parse(await client.pilot(Number(first!.id)));
    expect(pilot.history.map(({ state }) => state)).toEqual([
      "PMGR_LAUNCHING_PENDING",
      "PMGR_LAUNCHING",
      "PMGR_ACTIVE_PENDING",
      "PMGR_ACTIVE",
    ]);
    expect(pilot.history.every(({ seconds }) => seconds !== null && seconds >= 0)).toBe(true);
    expect(pilot.decision).toMatch(/^\d+ tasks? waits? for \d+ cores?; .*1 pilot.* requested; limit \d+$/);
    const job = JobDetail.parse(await client.job(`pilot ${pilot.id}`));
    expect(job).toMatchObject({ kind: "pilot", state: "running", jobName: pilot.jobName, decision: pilot.decision });
    const { fleets } = await client.status();
    expect(fleets[0]!.decision).toMatch(/limit \d+$/);
    client.close();
    expect(await codeOf("GET", "/pilots/999")).toBe("404 no-such-pilot");
    expect(await codeOf("GET", `/jobs/${run}.0`)).toBe("404 no-such-job");
    expect(await codeOf("GET", "/jobs/77")).toBe("404 no-such-launch");
    expect(await codeOf("GET", "/jobs/x;y")).toBe("400 bad-request");
  });

  it("API: answers what is wrong with code, message and hint, and the right status", async () => {
    const cases: [string, string, unknown, number, string][] = [
      ["GET", "/runs/99", undefined, 404, "no-such-run"],
      ["GET", "/runs/x", undefined, 400, "bad-request"],
      ["GET", "/nothing", undefined, 404, "not-found"],
      ["GET", "/runs?limit=-1", undefined, 400, "bad-request"],
      ["GET", "/clusters/none", undefined, 404, "no-such-cluster"],
      ["POST", "/runs", { cwd: "/", environment: {}, tasks: [{ run: ["true"], cpus: "many" }] }, 400, "bad-value"],
      ["POST", "/runs", { cwd: "/", environment: {}, tasks: [{ run: ["true"], cpu: 1 }] }, 400, "unknown-key"],
      ["POST", "/runs", { cwd: "/", environment: {}, tasks: [{ run: ["true"], cpus: 5000 }] }, 422, "cannot-fit"],
      ["POST", "/runs", { cwd: "/", environment: {}, tasks: [{ run: ["true"], after: "run:77" }] }, 404, "no-such-run"],
      ["POST", "/runs", [], 400, "bad-value"],
      ["GET", "/runs?limit=", undefined, 400, "bad-request"],
      ["GET", "/runs?limit=0x10", undefined, 400, "bad-request"],
      ["GET", "/runs/1/tasks?state=none", undefined, 400, "bad-request"],
      ["GET", "/runs/", undefined, 404, "not-found"],
      ["PUT", "/runs", {}, 405, "wrong-method"],
      ["DELETE", "/server/stop", undefined, 405, "wrong-method"],
      ["PATCH", "/nothing", {}, 404, "not-found"],
      ["POST", "/pilots", { count: 0 }, 400, "bad-request"],
      ["POST", "/tokens", undefined, 400, "bad-request"],
      ["POST", "/runs/1/retry", { which: "some" }, 400, "bad-request"],
      ["POST", "/runs/1/cancel", { tasks: ["x"] }, 400, "bad-request"],
    ];
    for (const [method, path, body, status, code] of cases) {
      const answer = await json(method, path, body);
      expect([path, answer.status, (answer.body as { error: { code: string } }).error.code]).toEqual([
        path,
        status,
        code,
      ]);
      expect((answer.body as { error: { hint: string } }).error.hint).not.toBe("");
    }
  });

  it("API: malformed JSON is a 400, another type of body a 415, another method a 405 that says which", async () => {
    const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
    const takers = ["/runs", "/launches", "/pilots", "/tokens", "/server/stop", "/runs/1/cancel", "/pilots/1/drain"];
    for (const path of takers) {
      for (const body of ["{", "nothing", "\u0000", `{"tasks": ${deep}}`, `{"reason": ${deep}`, `"${deep}`, "[1,"])
        expect([path, body.slice(0, 20), await codeOf("POST", path, body)]).toEqual([
          path,
          body.slice(0, 20),
          "400 bad-request",
        ]);
      for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""])
        expect([path, type, await codeOf("POST", path, "{}", type)]).toEqual([path, type, "415 media-type"]);
    }
    const nested = `${"[".repeat(150)}${"]".repeat(150)}`;
    const items = `{"cwd": "/", "environment": {}, "tasks": [{"run": "true", "each": {"values": [${nested}]}}]}`;
    expect(await codeOf("POST", "/runs", items)).toBe("400 bad-value");
    const answer = await ask("PUT", "/launches", "{}");
    expect([answer.status, answer.headers.allow]).toEqual([405, "POST, GET, HEAD"]);
    expect((await ask("POST", "/server", "{}")).headers.allow).toBe("GET, HEAD");
    expect((await ask("GET", "/server/stop")).headers.allow).toBe("POST");
  });

  it("API: errors are problems (RFC 9457) with the member `error` of v1, also at the door", async () => {
    const { status, type, text } = await ask("GET", "/runs/99999");
    expect([status, type]).toEqual([404, "application/problem+json"]);
    expect(JSON.parse(text)).toMatchObject({
      type: "urn:slipway:error:no-such-run",
      title: "no such run",
      status: 404,
      detail: "there is no run 99999",
      code: "no-such-run",
      facts: { run: 99999 },
      error: { code: "no-such-run", message: "there is no run 99999" },
    });
    const noise = await ask("GET", "/runs", undefined, "", { "x-long": "x".repeat(9000) });
    expect([noise.status, noise.type]).toEqual([400, "application/problem+json"]);
  });

  it("API: Idempotency-Key: equal requests create one thing, other ones with the same key are refused", async () => {
    const document = (command: string) => JSON.stringify({ cwd: "/", environment: {}, tasks: [{ run: command }] });
    const send = (path: string, body: string, key: string) =>
      ask("POST", path, body, "application/json", { "idempotency-key": key });
    const key = "7c0e8d0e-3f83-4b57-9a52-6a3b3f3b9d01";
    const both = await Promise.all([send("/runs", document("true"), key), send("/runs", document("true"), key)]);
    expect(both.map(({ status }) => status)).toEqual([200, 200]);
    expect(both[0]!.text).toBe(both[1]!.text);
    expect((await send("/runs", document("false"), key)).status).toBe(409);
    const pilots = await Promise.all([send("/pilots", '{"count":1}', key), send("/pilots", '{"count":1}', key)]);
    expect(pilots.map(({ status }) => status)).toEqual([200, 200]);
    expect(pilots[0]!.text).toBe(pilots[1]!.text);
    expect(JSON.parse((await send("/pilots", '{"count":2}', key)).text)).toMatchObject({ code: "key-reused" });
    const token = await send("/tokens", '{"user":"ci","role":"read"}', key);
    expect((await send("/tokens", '{"user":"ci","role":"read"}', key)).text).toBe(token.text);
    expect((await send("/runs", document("true"), "7")).status).toBe(400);
  });

  it("API: lists come page by page with filters; logs by range", async () => {
    for (const word of ["one", "two", "three"])
      await ask(
        "POST",
        "/runs",
        JSON.stringify({ name: "paged", cwd: "/", environment: {}, tasks: [{ run: `echo ${word}` }] }),
      );
    const all = JSON.parse((await ask("GET", "/runs?name=paged")).text) as RunView[];
    expect(all.map(({ name }) => name)).toEqual(["paged", "paged", "paged"]);
    const seen: number[] = [];
    for (let cursor = ""; ;) {
      const page = await ask("GET", `/runs?name=paged&limit=1${cursor}`);
      seen.push(...(JSON.parse(page.text) as RunView[]).map(({ id }) => id));
      if (page.headers["slipway-next"] === undefined) break;
      cursor = `&cursor=${String(page.headers["slipway-next"])}`;
    }
    expect(seen).toEqual(all.map(({ id }) => id));
    await slipway.run(["wait", ...all.map(({ id }) => String(id))]);
    expect(JSON.parse((await ask("GET", "/runs?name=paged&state=DONE")).text)).toHaveLength(3);
    expect(JSON.parse((await ask("GET", "/runs?name=paged&state=FAILED")).text)).toEqual([]);
    const log = (query: string): Promise<string> =>
      ask("GET", `/runs/${all[0]!.id}/tasks/0/logs?${query}`).then(({ text }) => text);
    expect([await log(""), await log("from=1&bytes=3"), await log("from=4"), await log("from=99")]).toEqual([
      "three\n",
      "hre",
      "e\n",
      "",
    ]);
    const first = await ask("GET", "/events?limit=2");
    expect(first.text.trim().split("\n")).toHaveLength(2);
    expect((await ask("GET", "/pilots?state=DONE&cluster=nowhere")).text).toBe("[]");
    expect((await ask("GET", "/jobs?limit=1")).status).toBe(200);
    for (const query of ["cursor=x", "state=odd", "limit=0"])
      expect((await ask("GET", `/runs?${query}`)).status, query).toBe(400);
  });

  it("API: bodies are bounded: a launch of 300 MB is refused while it comes, and so is a line of 65 MB", async () => {
    const piece = "x".repeat(1_000_000);
    const long = function* (pieces: number): Generator<string> {
      yield '{"command": "';
      for (let i = 0; i < pieces; i += 1) yield piece;
      yield '"}';
    };
    for (const [path, type, pieces] of [
      ["/launches", "application/json", 300],
      ["/pilots", "application/json", 2],
      ["/runs", "application/json", 68],
      ["/runs", "application/x-ndjson", 68],
    ] as const)
      expect([path, type, await codeOf("POST", path, long(pieces), type)]).toEqual([path, type, "413 too-large"]);
  });

  it("API: refuses what is no JSON, is cut short, or lies about its items; nothing of it is submitted", async () => {
    const before = ((await json("GET", "/runs")).body as unknown[]).length;
    const head = JSON.stringify({
      cwd: "/",
      environment: {},
      tasks: [{ run: "echo {item}", each: { stream: "lines" } }],
    });
    for (const body of [
      "",
      "{",
      "\u0000",
      `${head}\n`,
      `${head}\n{"group":0,"items":["a"]}\n`,
      `${head}\n{"group":1,"items":["a"]}\n{"end":true}\n`,
      `${head}\n{"group":0,"items":[1]}\n{"end":true}\n`,
      `${head}\n{"group":0,"items":["a\\u0000b"]}\n{"end":true}\n`,
      `${head}\n{"end":true}\n`,
    ]) {
      const answer = await ask("POST", "/runs", body, "application/x-ndjson");
      expect([body.slice(-40), answer.status]).toEqual([body.slice(-40), 400]);
    }
    expect(((await json("GET", "/runs")).body as unknown[]).length).toBe(before);
    expect(
      (await ask("POST", "/runs", `${head}\n{"group":0,"items":["a","b"]}\n{"end":true}\n`, "application/x-ndjson"))
        .status,
    ).toBe(200);
  });
});
