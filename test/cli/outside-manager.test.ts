import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createHome, ROOT, type SlipwayHome } from "./slipway-process.ts";

/** Rows 003-17 and 003-23: a manager and a starter that do not come with Slipway, from clusters.yaml to finished tasks. */

const TSP = "/usr/bin/tsp";

let slipway: SlipwayHome;
let socket: string;
beforeEach(async () => {
  slipway = await createHome();
  socket = join(slipway.root, "ts-socket");
});
afterEach(async () => {
  if (existsSync(socket)) execFileSync(TSP, ["-K"], { env: { ...process.env, TS_SOCKET: socket } });
  await slipway.cleanup();
});

const CLUSTERS = (module: string): string =>
  JSON.stringify({
    modules: [module],
    clusters: {
      desk: { type: "task-spooler", socket, cores: 1, launcher: "here", fleet: { max: 1, period: 0.5 } },
    },
  });

describe.skipIf(!existsSync(TSP))(
  `a manager from outside${existsSync(TSP) ? "" : " (skipped: task-spooler is not installed)"}`,
  () => {
    it.each(["home", "--clusters"])(
      "rows 003-17, 003-23: runs tasks in jobs of its own, named by %s",
      async (where) => {
        const module = join(slipway.home, "task-spooler.mjs");
        await mkdir(slipway.home, { recursive: true, mode: 0o700 });
        await copyFile(join(ROOT, "examples", "managers", "task-spooler.mjs"), module);
        await slipway.own(module);
        const file = join(where === "home" ? slipway.home : slipway.cwd, "clusters.yaml");
        await writeFile(file, CLUSTERS(module));
        await slipway.own(file);
        const named = where === "home" ? [] : ["--clusters", "clusters.yaml"];
        const ran = await slipway.run(["run", ...named, "--cluster", "desk", "--array", "1-3", "--", "echo", "{item}"]);
        expect([ran.status, ran.stderr]).toEqual([0, expect.anything()]);
        expect(ran.stdout).toMatch(/: done, 3 done/);
        const list = execFileSync(TSP, ["-l"], { env: { ...process.env, TS_SOCKET: socket }, encoding: "utf8" });
        expect(list).toMatch(/\[slipway-[0-9a-f]+-1\]/);
      },
    );
  },
);

it("a module that a file beside a run names is not loaded", async () => {
  const work = join(slipway.cwd, "work");
  await mkdir(work);
  const ran = join(slipway.root, "ran");
  await writeFile(join(work, "evil.mjs"), `import { writeFileSync } from "node:fs"; writeFileSync("${ran}", "");`);
  await writeFile(join(work, "clusters.yaml"), CLUSTERS(join(work, "evil.mjs")));
  await writeFile(join(work, "run.yaml"), "tasks: [{ run: echo x }]\n");
  const { status, stderr } = await slipway.run(["run", join(work, "run.yaml")]);
  expect(status).toBe(2);
  expect(stderr).toMatch(/work\/clusters\.yaml:1:\d+: modules: is not read from a file beside a run/);
  expect(existsSync(ran)).toBe(false);
});
