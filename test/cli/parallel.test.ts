import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type SlipwayHome, createHome } from "./slipway-process.ts";

let slipway: SlipwayHome;
beforeEach(async () => {
  slipway = await createHome();
});
afterEach(() => slipway.cleanup());

it("GNU parallel goes on where a run of ours has ended, by the joblog", async (ctx) => {
  if (!existsSync("/usr/bin/parallel")) return ctx.skip("GNU parallel is not installed");
  const own = join(slipway.root, "parallel");
  await mkdir(own);
  await writeFile(join(own, "will-cite"), "");
  const ran = (option: string, log: string): string[] =>
    execFileSync("parallel", ["-k", option, "--joblog", log, "echo", "{}", ":::", "1", "2", "3", "4", "5"], {
      cwd: slipway.cwd,
      env: { ...process.env, PARALLEL_HOME: own },
      encoding: "utf8",
      stdio: ["ignore", "pipe", "inherit"],
    })
      .trim()
      .split("\n");
  // the third is skipped: it is done, and not to be done again
  await writeFile(join(slipway.cwd, "3"), "");
  const command = ["--skip", "present", "--outputs", "{item}", "--", "sh", "-c", "[ {item} != 2 ] && touch {item}"];
  const { status } = await slipway.run(["run", "--quiet", "--joblog", "log.tsv", "--array", "1-4", ...command]);
  expect(status).toBe(1);
  await copyFile(join(slipway.cwd, "log.tsv"), join(slipway.cwd, "again.tsv"));
  expect(ran("--resume", "log.tsv")).toEqual(["5"]);
  expect(ran("--resume-failed", "again.tsv")).toEqual(["2", "5"]);
});
