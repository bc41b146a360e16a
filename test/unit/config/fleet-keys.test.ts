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
