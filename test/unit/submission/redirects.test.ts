import { describe, expect, it } from "vitest";
import { combineClusters, readClustersFile } from "../../../src/config/clusters-file.ts";
import type { GroupSpec } from "../../../src/core/spec.ts";
import { createRedirects, redirectedOf } from "../../../src/submission/redirects.ts";
import { group, spec } from "../core/model.ts";

const clusters = combineClusters([
  readClustersFile(
    "default: lost\nclusters: { lost: { type: slurm, queues: { q: {} } }, good: { type: slurm } }",
    "c.yaml",
  ),
]);
const here = { cpus: 20_000 };
const redirects = createRedirects({
  clusters,
  here,
  whyHere: async ({ name }) => (name === "lost" ? "not here" : undefined),
});

const sent = async (...groups: GroupSpec[]): Promise<readonly GroupSpec[]> =>
  (await redirects.now(groups.map(({ cluster }) => cluster)))(spec(groups)).groups;

describe("redirects", () => {
  it("row 001-30: tasks of a cluster that cannot be used, or of the default one, go here; queue and nodes fall away", async () => {
    const ranks = { count: 4, nodes: 2, by: "agents" } as const;
    const [named, unnamed, other] = await sent(
      group("a", 1, { cluster: "lost", queue: "q", ranks }),
      group("b", 1),
      group("c", 1, { cluster: "good" }),
    );
    const redirect = { from: "lost", cause: "not here", here };
    expect(named).toEqual({ ...group("a", 1), cluster: "local", redirect, ranks: { count: 4, by: "agents" } });
    expect(unnamed).toEqual({ ...group("b", 1), cluster: "local", redirect });
    expect(other).toEqual(group("c", 1, { cluster: "good" }));
  });

  it("a queue that does not exist is refused, not redirected", async () => {
    const wrong = group("a", 1, { cluster: "lost", queue: "nope" });
    expect(await sent(wrong)).toEqual([wrong]);
  });

  it("row 001-29: local: true does the same on purpose", async () => {
    const [on] = await sent(group("a", 1, { cluster: "local", redirect: { here: {} } }));
    expect(on).toEqual({ ...group("a", 1), cluster: "local", redirect: { here } });
  });

  it("are counted by the cluster they were meant for", () => {
    const redirect = { from: "lost", cause: "why", here };
    const groups = [
      { spec: group("a", 1, { redirect }), count: 3 },
      { spec: group("b", 1, { redirect }), count: 4 },
      { spec: group("c", 1, { redirect: { here } }), count: 5 },
      { spec: group("d", 1), count: 6 },
    ];
    expect(redirectedOf(groups)).toEqual([{ cluster: "lost", tasks: 7, cause: "why" }]);
  });
});
