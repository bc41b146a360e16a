import { describe, expect, it } from "vitest";
import { tellFileLimit } from "../../../src/cli/cluster-problems.ts";
import type { ClustersConfig } from "../../../src/config/clusters-file.ts";
import { filesWanted, openFilesFor, parseFileLimit } from "../../../src/server/open-files.ts";

const clustersOf = (...queues: [max: number, nodes: number][]): Pick<ClustersConfig, "clusters"> => {
  const named = new Map(queues.map(([max, nodes], i) => [`q${i}`, { fleet: { max }, nodes }]));
  return { clusters: new Map([["c", { queues: named }]]) } as unknown as Pick<ClustersConfig, "clusters">;
};

describe("files that a server may open", () => {
  it("are as many as the system says", () => {
    expect(
      parseFileLimit("Max file size   unlimited unlimited bytes\nMax open files            1024   4096   files\n"),
    ).toBe(1024);
    expect(parseFileLimit("Max open files            unlimited            unlimited            files")).toBe(Infinity);
    expect(parseFileLimit("nonsense")).toBeUndefined();
    const here = openFilesFor(clustersOf());
    if (here !== undefined) expect(here.limit).toBeGreaterThan(0);
  });

  it("it needs one for each agent that its fleets may bring, and some for itself; too few are told, with what to do", () => {
    const own = filesWanted(clustersOf());
    expect(filesWanted(clustersOf([10, 1], [100, 50])) - own).toBe(5010);
    const notes: string[] = [];
    const note = (text: string): void => void notes.push(text);
    tellFileLimit({ files: { limit: 5266, wanted: 5266 } }, note);
    tellFileLimit({}, note);
    expect(notes).toEqual([]);
    tellFileLimit({ files: { limit: 1024, wanted: 5266 } }, note);
    expect(notes).toEqual([expect.stringMatching(/1024 files.*needs 5266.*`ulimit -n 5266`/)]);
  });
});
