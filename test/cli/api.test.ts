import { request as httpRequest } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
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
}

const ask = (method: string, path: string, body?: string, type = "application/json"): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const sent = httpRequest(
      { socketPath: socket, path: `/api/v1${path}`, method, headers: { "content-type": type } },
      (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        answer.on("end", () =>
          resolve({ status: answer.statusCode ?? 0, type: answer.headers["content-type"] ?? "", text }),
        );
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });

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

  it("API: answers what is wrong with code, message and hint, and the right status", async () => {
    const cases: [string, string, unknown, number, string][] = [
      ["GET", "/runs/99", undefined, 404, "no-such-run"],
      ["GET", "/runs/x", undefined, 400, "bad-request"],
      ["GET", "/nothing", undefined, 404, "not-found"],
      ["GET", "/runs?limit=-1", undefined, 400, "bad-request"],
      ["GET", "/clusters/none", undefined, 400, "no-such-cluster"],
      ["POST", "/runs", { cwd: "/", environment: {}, tasks: [{ run: ["true"], cpus: "many" }] }, 400, "bad-value"],
      ["POST", "/runs", { cwd: "/", environment: {}, tasks: [{ run: ["true"], cpu: 1 }] }, 400, "unknown-key"],
      ["POST", "/runs", { cwd: "/", environment: {}, tasks: [{ run: ["true"], cpus: 5000 }] }, 422, "cannot-fit"],
      ["POST", "/runs", { cwd: "/", environment: {}, tasks: [{ run: ["true"], after: "run:77" }] }, 404, "no-such-run"],
      ["POST", "/runs", [], 400, "bad-value"],
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
