import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";
import { drawSchedule } from "./draw.ts";
import { FEATURES, type Feature } from "./features.ts";
import { type Numbers, addVerdict, noNumbers, refuseChanges, writeNumbers } from "./numbers.ts";
import { showSchedule } from "./schedule.ts";
import { type Verdict, runSeed } from "./seed.ts";
import { scenarios } from "./scenarios/all.ts";
import { type ScenarioVerdict, runScenario } from "./stage.ts";
import { type Tools, makeTools } from "./tools.ts";
import { destroyAll } from "./world.ts";

/** `npm run test:faults`: random schedules by seed, then the directed scenarios. */

const HELP = `npm run test:faults -- [options]
  --seed N       only this seed, its schedule printed first
  --seeds N      so many seeds (default 20)
  --from N       the first of them (default: random); the others follow it
  --scenarios    only the directed scenarios; --only TEXT those whose name holds TEXT
  --no-scenarios only the seeds
  --short        what npm test runs: four seeds, and the scenarios that do not mostly wait
  --parallel N   so many seeds or scenarios at a time (default 1)
  --features A,B only these besides the plain trouble (default: all; "none" for none):
                 ${FEATURES.join(", ")}
  --write-docs   write the numbers of this run of seeds, and the commit, into docs/faults.md
  --root DIR     where bin/ and dist/ are (default: this repository)
  --list         names of the scenarios`;

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    seeds: { type: "string" },
    from: { type: "string" },
    scenarios: { type: "boolean" },
    "no-scenarios": { type: "boolean" },
    only: { type: "string" },
    short: { type: "boolean" },
    parallel: { type: "string" },
    features: { type: "string" },
    "write-docs": { type: "boolean" },
    root: { type: "string" },
    list: { type: "boolean" },
    help: { type: "boolean", short: "h" },
  },
});

const show = (verdict: Verdict): void => {
  const passed = verdict.problems.length === 0;
  console.log(
    `${passed ? "passed" : "FAILED"} seed ${verdict.seed}: ${verdict.tasks} tasks in ${(verdict.ms / 1000).toFixed(1)} s`,
  );
  if (!passed) console.log(verdict.report);
};

const wantedFeatures = (): readonly Feature[] => {
  if (values.features === undefined || values.features === "all") return FEATURES;
  const names = values.features.split(",").filter((name) => name !== "none" && name !== "");
  for (const name of names)
    if (!FEATURES.includes(name as Feature))
      throw new Error(`there is no feature ${name}; there are ${FEATURES.join(", ")}`);
  return FEATURES.filter((name) => names.includes(name));
};

interface Options {
  readonly tools: Tools;
  readonly features: readonly Feature[];
  readonly binaries?: string;
}

interface Count {
  passed: number;
  failed: number;
  skipped: number;
}

const atATime = Number(values.parallel ?? 1);
let interrupted = false;

const runSeeds = async (options: Options, count: Count): Promise<Numbers> => {
  const one = values.seed === undefined ? undefined : Number(values.seed);
  const many = one === undefined ? Number(values.seeds ?? (values.short === true ? 4 : 20)) : 1;
  const first = one ?? (values.from === undefined ? randomInt(2 ** 31) : Number(values.from));
  if (![many, first].every(Number.isSafeInteger)) throw new Error("a seed is a whole number");
  const numbers = noNumbers(first, first + many - 1, options.features);
  if (one !== undefined) console.log(showSchedule(drawSchedule(one, options.features)));
  else console.log(`seeds ${first} to ${first + many - 1}`);
  let next = first;
  const worker = async (): Promise<void> => {
    while (next < first + many && !interrupted) {
      const verdict = await runSeed(next++, options);
      if (interrupted) return;
      show(verdict);
      addVerdict(numbers, verdict);
      if (verdict.problems.length === 0) count.passed += 1;
      else count.failed += 1;
    }
  };
  await Promise.all(Array.from({ length: atATime }, worker));
  return numbers;
};

const showScenario = ({ name, skipped, problems, report, ms }: ScenarioVerdict, count: Count): void => {
  if (skipped !== undefined) {
    console.log(`skipped scenario: ${name} (${skipped})`);
    count.skipped += 1;
    return;
  }
  const passed = problems.length === 0;
  console.log(`${passed ? "passed" : "FAILED"} scenario: ${name} (${(ms / 1000).toFixed(1)} s)`);
  if (!passed) console.log(report);
  count[passed ? "passed" : "failed"] += 1;
};

/** Scenarios that mostly wait run together; of the others as many as --parallel says. */
const runScenarios = async (options: Options, count: Count): Promise<void> => {
  const wanted = scenarios.filter(
    ({ name, waits }) => name.includes(values.only ?? "") && !(values.short === true && waits === true),
  );
  const play = async (scenario: (typeof wanted)[number]): Promise<void> => {
    if (interrupted) return;
    const verdict = await runScenario(scenario, options);
    if (!interrupted) showScenario(verdict, count);
  };
  const waiting = Promise.all(wanted.filter(({ waits }) => waits === true).map(play));
  const others = wanted.filter(({ waits }) => waits !== true).values();
  const worker = async (): Promise<void> => {
    for (const scenario of others) await play(scenario);
  };
  await Promise.all(Array.from({ length: atATime }, worker));
  await waiting;
};

const main = async (): Promise<number> => {
  if (values.help === true || values.list === true) {
    console.log(values.list === true ? scenarios.map(({ name }) => name).join("\n") : HELP);
    return 0;
  }
  const features = wantedFeatures();
  const writes = values["write-docs"] === true;
  if (writes) await refuseChanges();
  const tools = await makeTools(values.root);
  const options = { tools, features, ...(values.root === undefined ? {} : { binaries: values.root }) };
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.on(name, () => {
      if (interrupted) return;
      interrupted = true;
      console.log("interrupted: ending what was started");
      void destroyAll()
        .then(() => tools.remove())
        .finally(() => process.exit(130));
    });
  const count: Count = { passed: 0, failed: 0, skipped: 0 };
  try {
    if (values.scenarios !== true && values.only === undefined) {
      const numbers = await runSeeds(options, count);
      if (writes && !interrupted) console.log(await writeNumbers(numbers));
    }
    if (values["no-scenarios"] !== true && values.seed === undefined) await runScenarios(options, count);
  } finally {
    // an interrupt cleans everything up by itself
    if (!interrupted) await tools.remove();
  }
  console.log(`${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`);
  return count.failed === 0 ? 0 : 1;
};

main().then(
  (status) => {
    if (!interrupted) process.exit(status);
  },
  (error: unknown) => {
    if (interrupted) return;
    console.error(error);
    process.exit(1);
  },
);
