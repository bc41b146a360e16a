import { describe, expect, it } from "vitest";
import { isAuthorized, isRunasEntry } from "../../../../src/launch/plan/runas-list.ts";
import { chownWords, sudoersText } from "../../../../src/launch/plan/sudoers.ts";

const alice = { name: "alice", uid: 1002, groups: ["alice", "physics"] };
const root = { name: "root", uid: 0, groups: ["root", "wheel"] };

describe("sudo_authorized", () => {
  it.each([
    [["ALL"], true],
    [["alice"], true],
    [["bob"], false],
    [["%physics"], true],
    [["%chemistry"], false],
    [["#1002"], true],
    [["ALL", "!alice"], false],
    [["!alice", "ALL"], true],
    [["!!alice"], true],
    [["ALL", "!%physics", "alice"], true],
    [[], false],
  ])("%j for alice of physics: %s", (list, expected) => {
    expect(isAuthorized(list, alice)).toBe(expected);
  });

  it("excludes root by name and by number, whatever is written", () => {
    for (const list of [["ALL"], ["root"], ["#0"], ["%wheel"]]) {
      expect(isAuthorized(list, root)).toBe(false);
      expect(isAuthorized(list, { ...root, name: "toor" })).toBe(false);
      expect(isAuthorized(list, { ...root, uid: 7 })).toBe(false);
    }
  });

  it("takes no entry that could say something else in sudoers", () => {
    for (const entry of ["a b", "alice,root", "x\nALL", "(root)", "*", "", "!", "a=b"])
      expect(isRunasEntry(entry)).toBe(false);
  });
});

const input = {
  user: "slipway",
  uid: 990,
  gid: 991,
  chown: "/usr/bin/chown",
  clusters: [
    {
      name: "hpc-1",
      authorized: ["%physics", "!bob"],
      commands: ["/usr/bin/sbatch", "/usr/bin/scancel"],
      storageRoot: "/shared/jobs/",
    },
  ],
};

describe("the sudoers file", () => {
  it("lets the listed users' commands run, never root's, and no directory beside job directories change hands", () => {
    const text = sudoersText(input);
    expect(text).toContain("Runas_Alias SLIPWAY_HPC_1_USERS = %physics, !bob, !root, !#0\n");
    expect(text).toContain("slipway ALL = (SLIPWAY_HPC_1_USERS) NOPASSWD: SLIPWAY_HPC_1_COMMANDS\n");
    expect(text).toContain("Cmnd_Alias SLIPWAY_HPC_1_COMMANDS = /usr/bin/sbatch, /usr/bin/scancel\n");
    expect(text).not.toMatch(/\*/);
    const patterns = [...text.matchAll(/\/usr\/bin\/chown (.*?)(?:, \\)?$/gm)].map(
      ([, words]) => new RegExp(`^${words!.replaceAll("\\:", ":").replaceAll("/", "\\/")}$`),
    );
    const allowed = (owner: number, directory: string): boolean =>
      patterns.some((pattern) => pattern.test(chownWords(owner, input.gid, directory).join(" ")));
    const directory = `/shared/jobs/${"0123456789abcdef".repeat(2)}`;
    for (const uid of [990, 1000, 65_534, 4_294_967_294]) expect(allowed(uid, directory)).toBe(true);
    for (const uid of [0, 1, 999]) expect(allowed(uid, directory)).toBe(false);
    for (const other of [
      "/shared/jobs",
      "/etc/shadow",
      `${directory}/..`,
      `${directory} /etc/shadow`,
      "/shared/jobs/x",
    ])
      expect(allowed(1002, other)).toBe(false);
  });

  it.each([
    [{ ...input, clusters: [{ ...input.clusters[0]!, storageRoot: "/a b" }] }],
    [{ ...input, clusters: [{ ...input.clusters[0]!, storageRoot: "/a/*" }] }],
    [{ ...input, clusters: [{ ...input.clusters[0]!, authorized: ["x, root"] }] }],
    [{ ...input, clusters: [{ ...input.clusters[0]!, commands: ["/x/a,b"] }] }],
    [{ ...input, clusters: [input.clusters[0]!, { ...input.clusters[0]!, name: "hpc_1" }] }],
    [{ ...input, user: "a b" }],
  ])("refuses what has a meaning of its own there (%#)", (given) => {
    expect(() => sudoersText(given)).toThrow(expect.objectContaining({ code: "bad-value" }));
  });
});
