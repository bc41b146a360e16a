import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { countMemory } from "../../../src/agent/delegated-cgroup.ts";

let group: string;
beforeEach(() => {
  group = mkdtempSync(join(tmpdir(), "slipway-cgroup-"));
});
afterEach(() => rmSync(group, { recursive: true, force: true }));

/** Files as the kernel shows them; it makes those of a new group by itself. */
const make = (procs: string, controllers = "cpu memory pids", handedOn = ""): void => {
  mkdirSync(join(group, "slipway-agent"));
  const files = { "cgroup.controllers": controllers, "cgroup.subtree_control": handedOn, "cgroup.procs": procs };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(group, name), `${text}\n`);
  writeFileSync(join(group, "slipway-agent", "cgroup.procs"), "");
};

const handedOn = (): string => readFileSync(join(group, "cgroup.subtree_control"), "utf8").trim();
const moved = (): string => readFileSync(join(group, "slipway-agent", "cgroup.procs"), "utf8");

describe("a delegated cgroup counts the memory of its tasks", () => {
  it("when the agent and its parent are alone there: they move out of the way", async () => {
    make("71\n70");
    await countMemory(group, [71, 70]);
    expect([handedOn(), moved()]).toEqual(["+memory", "70"]);
  });

  it("when nobody is there: a group that was made for tasks", async () => {
    make("");
    await countMemory(group, [71, 70]);
    expect([handedOn(), moved()]).toEqual(["+memory", ""]);
  });

  it("but not among others, without the controller, or where it counts already: nothing moves", async () => {
    const cases = [["71\n99"], ["71", "cpu pids"], ["71", "cpu memory", "memory"]] as const;
    for (const files of cases) {
      make(files[0], files[1], files[2]);
      await countMemory(group, [71, 70]);
      expect([handedOn(), moved()]).toEqual([files[2] ?? "", ""]);
      rmSync(join(group, "slipway-agent"), { recursive: true });
    }
  });

  it("and all is as before if the kernel refuses", async () => {
    make("71");
    rmSync(join(group, "slipway-agent", "cgroup.procs"));
    await countMemory(group, [71, 70]);
    expect([handedOn(), existsSync(join(group, "slipway-agent"))]).toEqual(["", false]);
  });

  it("and a directory that is no cgroup stays as it is", async () => {
    await countMemory(join(group, "none"), [71, 70]);
    expect(existsSync(join(group, "none"))).toBe(false);
  });
});
