import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { TaskView } from "../../src/api/schemas.ts";
import { until } from "../until.ts";
import { createHome } from "./slipway-process.ts";

it("a task that ends well when its pilot is told to end is done; one that does not is run again at no cost", async () => {
  const slipway = await createHome();
  try {
    await slipway.run(["up"]);
    const script =
      'if [ $SLIPWAY_ATTEMPT -gt 1 ]; then exit 0; fi; trap "exit {item}" TERM; : > here.{item}; while :; do sleep 0.05; done';
    const words = ["submit", "--array", "0-1", "--cpus", "0.1", "--", "sh", "-c", script];
    const { run } = await slipway.json<{ run: number }>(words);
    for (const code of [0, 1])
      await until(`task ${code} to run`, () => existsSync(join(slipway.cwd, `here.${code}`)) || undefined);
    await slipway.run(["down", "--now"]);
    await slipway.run(["up"]);
    await slipway.run(["wait", String(run)]);
    const [well, early] = await Promise.all([0, 1].map((index) => slipway.json<TaskView>(["show", `${run}.${index}`])));
    expect([well!.state, well!.attempts.length]).toEqual(["DONE", 1]);
    expect([early!.state, early!.attempts.map(({ lost }) => lost)]).toEqual(["DONE", [true, false]]);
  } finally {
    await slipway.cleanup();
  }
});
