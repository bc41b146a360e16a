import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { removeLeftovers } from "../../../src/agent/leftovers.ts";
import { type Owners, keepOwners, machineId, ownersDirectory } from "../../../src/agent/owners.ts";
import { type ProcessIdentity, identify } from "../../../src/process-identity.ts";

/** What killed agents have left on this node: removed only if their owners are provably dead. */

const UUID = "01234567-89ab-4cde-8f01-23456789abcd";
const NAME = "slipway-01234567-1.0.1";

let home: string;
let scratch: string;
let self: ProcessIdentity;
let machine: string;
/** A process that is over. */
let dead: ProcessIdentity;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "slipway-leftovers-"));
  scratch = join(home, "scratch");
  await mkdir(scratch);
  await mkdir(ownersDirectory(home));
  self = identify();
  machine = await machineId();
  const child = spawn("sleep", ["60"]);
  dead = identify(child.pid);
  child.kill("SIGKILL");
  await once(child, "exit");
});
afterEach(() => rm(home, { recursive: true, force: true }));

const path = (name = NAME): string => join(scratch, name);
const record = (): string => join(ownersDirectory(home), `${encodeURIComponent(hostname())}.${UUID}.json`);
const write = async (change: Partial<Owners> = {}): Promise<void> => {
  await mkdir(join(path(), "deep"), { recursive: true });
  await writeFile(join(path(), "deep", "file"), "x");
  await writeFile(record(), JSON.stringify({ uuid: UUID, scratch, machine, processes: [dead], pipes: [], ...change }));
};
const notes: string[] = [];
const sweep = (): Promise<void> => removeLeftovers(home, (text) => notes.push(text));

describe("what a killed agent left", () => {
  it("is removed when all its processes are dead; what belongs to others is not", async () => {
    await write();
    await writeFile(path("slipway-hosts-01234567-1.0.1"), "a\nb\n");
    for (const other of ["slipway-01234568-1.0.1", "slipway-012345670-1.0.1", "other"]) await mkdir(path(other));
    await sweep();
    expect((await readdir(scratch)).toSorted()).toEqual(["other", "slipway-012345670-1.0.1", "slipway-01234568-1.0.1"]);
    expect(existsSync(record())).toBe(false);
  });

  it("is removed when the pid belongs to another process by now", async () => {
    await write({ processes: [{ ...self, pidStart: "1" }] });
    await sweep();
    expect(existsSync(path())).toBe(false);
  });

  it("is removed when this machine was booted again", async (ctx) => {
    if (machine === "") ctx.skip("this machine has no id");
    await write({ processes: [{ ...self, bootId: "another" }] });
    await sweep();
    expect(existsSync(path())).toBe(false);
  });

  it.each<[string, () => Partial<Owners>]>([
    ["one of its processes lives", () => ({ processes: [dead, self] })],
    ["it was on another host", () => ({ processes: [{ ...dead, host: "another" }] })],
    ["another host has this one's name", () => ({ machine: "another", processes: [{ ...dead, bootId: "another" }] })],
    ["machines have no id", () => ({ machine: "", processes: [{ ...dead, bootId: "another" }] })],
    ["its pids were those of another namespace", () => ({ processes: [{ ...dead, pidNamespace: "pid:[1]" }] })],
    ["its boot is not known", () => ({ processes: [{ ...dead, bootId: "" }] })],
    ["its start is not known", () => ({ processes: [{ ...dead, pidStart: "" }] })],
    ["nobody is named", () => ({ processes: [] })],
    ["the name of the agent is none", () => ({ uuid: "" })],
  ])("stays when %s", async (_, change) => {
    await write(change());
    await sweep();
    expect(existsSync(join(path(), "deep", "file"))).toBe(true);
    expect(existsSync(record())).toBe(true);
  });

  it("stays when the file that names its owners is cut", async () => {
    await write();
    await writeFile(record(), "{");
    await sweep();
    expect(existsSync(path())).toBe(true);
  });

  it.each([NAME, "slipway-01234567-4711"])(
    "%s stays while a process of the task lives, and goes after it",
    async (name) => {
      await write();
      if (name !== NAME) await rename(path(), path(name));
      const env = { ...process.env, SLIPWAY_TOKEN: NAME.slice("slipway-".length) };
      const child = spawn("sleep", ["60"], { env });
      try {
        await once(child, "spawn");
        await sweep();
        expect(existsSync(path(name))).toBe(true);
        expect(existsSync(record())).toBe(true);
      } finally {
        child.kill("SIGKILL");
      }
      await once(child, "exit");
      await sweep();
      expect(existsSync(path(name))).toBe(false);
      expect(existsSync(record())).toBe(false);
    },
  );

  it("a link in its place is not followed, and stays", async () => {
    await write();
    await rm(path(), { recursive: true });
    await mkdir(path("precious"));
    await writeFile(join(path("precious"), "file"), "x");
    await symlink(path("precious"), path());
    await sweep();
    expect(existsSync(join(path("precious"), "file"))).toBe(true);
    expect(existsSync(path())).toBe(true);
  });

  it("an agent's own file names it and its spawners, and goes with it", async () => {
    const owners = await keepOwners(home, UUID, scratch, (text) => notes.push(text));
    await Promise.all([owners.add(dead.pid, ""), owners.add(process.pid, UUID)]);
    await mkdir(path());
    await sweep();
    expect(existsSync(path())).toBe(true);
    expect(existsSync(record())).toBe(true);
    await owners.remove();
    expect(await readdir(ownersDirectory(home))).toEqual([]);
  });
});
