import { describe, expect, it } from "vitest";
import { combineClusters, clusterNamed, readClustersFile } from "../../../src/config/clusters-file.ts";
import { SlipwayError } from "../../../src/errors.ts";

const queue = (keys: string) =>
  clusterNamed(
    combineClusters([readClustersFile(`clusters: { c: { type: slurm, queues: { q: { ${keys} } } } }`, "c.yaml")]),
    "c",
  ).queues.get("q")!;

const refused = (keys: string): Record<string, unknown> => {
  try {
    queue(keys);
  } catch (error) {
    return (error as SlipwayError).facts as Record<string, unknown>;
  }
  throw new Error(`${keys} was taken`);
};

describe("a fleet at a cluster", () => {
  const fleetsOf = (...texts: string[]) => {
    const config = combineClusters(texts.map((text) => readClustersFile(`clusters: { c: { ${text} } }`, "c.yaml")));
    return Object.fromEntries([...clusterNamed(config, "c").queues].map(([name, { fleet }]) => [name, fleet]));
  };

  it("holds for every queue, key by key behind the queue's own and its template's", () => {
    const fleets = fleetsOf(
      "type: slurm, fleet: { max: 7, idle: 1m, period: 9s }, queues: { a: {}, b: { fleet: { max: 3 } }, c: { template: b, fleet: { idle: 5s } } }",
    );
    expect(fleets).toMatchObject({
      a: { max: 7, idle: 60, period: 9 },
      b: { max: 3, idle: 60, period: 9 },
      c: { max: 3, idle: 5, period: 9 },
    });
    expect(fleetsOf("type: slurm, fleet: { max: 7 }")).toMatchObject({ default: { max: 7, min: 0 } });
    expect(fleetsOf("type: local, fleet: { max: 2 }")).toMatchObject({ default: { max: 2, period: 1 } });
    expect(fleetsOf("type: slurm, fleet: { min: 20 }")).toMatchObject({ default: { min: 20, max: 20 } });
  });

  it("of a stronger file wins key by key over a weaker one's, and not over a queue's", () => {
    const weak = "type: slurm, fleet: { max: 7, idle: 1m }, queues: { a: {}, b: { fleet: { max: 3 } } }";
    expect(fleetsOf(weak, "fleet: { max: 9 }")).toMatchObject({ a: { max: 9, idle: 60 }, b: { max: 3, idle: 60 } });
  });

  it("is refused where it is wrong, at its own place", () => {
    expect(() => fleetsOf("type: slurm, fleet: { mx: 1 }")).toThrow(/unknown key 'mx'; did you mean 'max'/);
    expect(() => fleetsOf("type: slurm, fleet: { min: 5, max: 2 }, queues: { a: {} }")).toThrow(
      /^c\.yaml:1:\d+: clusters\.c\.fleet: needs min ≤ max/,
    );
    expect(() => fleetsOf("type: slurm, fleet: { max: 2 }, queues: { a: { fleet: { min: 5 } } }")).toThrow(
      /clusters\.c\.queues\.a\.fleet: needs min ≤ max/,
    );
  });
});

describe("fleet keys of clusters.yaml", () => {
  it("reads every key, durations in seconds", () => {
    expect(
      queue(
        "fleet: { strategy: adaptive, period: 10s, error-handler: windowed, window: 5, when-gone: fail, " +
          "unknown-task-duration: 30s, target-duration: 5m, wait-count: 2, lifetime: 1h, stagger: 0 }",
      ).fleet,
    ).toMatchObject({
      strategy: "adaptive",
      period: 10,
      errorHandler: "windowed",
      window: 5,
      whenGone: "fail",
      unknownTaskDuration: 30,
      targetDuration: 300,
      waitCount: 2,
      lifetime: 3600,
      stagger: 0,
    });
  });

  it("a signal is named with or without SIG", () => {
    expect(queue("signal: usr1, signal-before: 2m")).toMatchObject({ signal: "SIGUSR1", signalBefore: 120 });
    expect(queue("signal: SIGINT").signal).toBe("SIGINT");
  });

  const wrong: [string, string][] = [
    ["fleet: { period: 0 }", "period"],
    ["fleet: { window: 0 }", "window"],
    ["fleet: { error-handler: panic }", "error-handler"],
    ["fleet: { when-gone: later }", "when-gone"],
    ["fleet: { lifetime: 0 }", "lifetime"],
    ["signal: KILL", "signal"],
    ["signal: BOGUS", "signal"],
  ];
  for (const [keys, key] of wrong) it(`refuses ${keys}`, () => expect(String(refused(keys)["key"])).toContain(key));
});
