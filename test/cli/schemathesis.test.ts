import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { schemathesis } from "../../scripts/test-venv.mjs";
import { readEndpoint } from "../../src/protocol/endpoint.ts";
import { ROOT, type SlipwayHome, createHome } from "./slipway-process.ts";

/**
 * schemathesis sends a real server whatever its OpenAPI document allows, and what it does not: the server must never
 * answer with a 5xx, or with an undocumented status, type or shape, nor accept what the document forbids. Nothing that
 * it submits runs: the only cluster's jobs wait for ever.
 */

const CLUSTERS = `
default: lab
clusters:
  lab:
    type: simulated
    simulation: { nodes: 1, queue-wait: 1000h }
`;
const HERE = join(ROOT, "test", "cli");
/** Seconds for both parts together, whatever the machine does meanwhile. */
const BUDGET = { coverage: 22, fuzzing: 8 } as const;

let slipway: SlipwayHome;

beforeAll(async () => {
  slipway = await createHome();
  await mkdir(slipway.home, { mode: 0o700 });
  await writeFile(join(slipway.home, "clusters.yaml"), CLUSTERS);
  await slipway.run(["up"]);
  // two that have ended, and one that never does: schemathesis-hooks.py says why
  for (const run of ["1", "2", "3"]) {
    await slipway.run(["submit", "--", "true"]);
    if (run !== "3") await slipway.run(["cancel", run]);
  }
});

afterAll(() => slipway.cleanup());

const fuzz = async (phase: keyof typeof BUDGET): Promise<{ status: number | null; output: string }> => {
  const { port } = (await readEndpoint(slipway.home))!;
  const token = (await readFile(join(slipway.home, "keys", "client.token"), "utf8")).trim();
  const options = {
    "--header": `Authorization: Bearer ${token}`,
    "--tls-verify": "false",
    "--seed": "1",
    "--phases": phase,
    "--max-time": String(BUDGET[phase]),
    "--request-timeout": "30",
    "--generation-database": "none",
    "--warnings": "off",
  };
  const child = spawn(
    schemathesis,
    [
      "--config-file",
      join(HERE, "schemathesis.toml"),
      "run",
      `https://127.0.0.1:${port}/api/v1/openapi.json`,
      ...Object.entries(options).flat(),
      "--no-color",
      "--continue-on-failure",
    ],
    {
      cwd: slipway.cwd,
      env: { ...process.env, SCHEMATHESIS_HOOKS: "schemathesis-hooks", PYTHONPATH: HERE, PYTHONDONTWRITEBYTECODE: "1" },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
  const status = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  return { status, output };
};

describe("the OpenAPI document against a real server", () => {
  for (const phase of ["coverage", "fuzzing"] as const)
    it(`no 5xx and nothing undocumented: ${phase}`, async (ctx) => {
      if (!existsSync(schemathesis)) return ctx.skip("schemathesis is not installed: pip could not fetch it");
      const { status, output } = await fuzz(phase);
      expect(output).toMatch(/ Selected: (\d+)\/\1\n +Tested: \d/);
      // it repeats bodies of a megabyte
      const lines = output.split("\n").map((line) => line.slice(0, 300));
      expect(status, lines.join("\n").slice(-8000)).toBe(0);
      // it is still the same server, and well
      expect(await slipway.json(["status"])).toMatchObject({ server: { state: "running", epoch: 1 } });
    });
});
