// `npm run bench`: one experiment per claim, each beside the machine's own limit and beside peers, in alternating rounds.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { endAll } from "./commands.mjs";
import { writeSection } from "./docs-section.mjs";
import { measureLatency } from "./experiments/latency.mjs";
import { measureMemory } from "./experiments/memory.mjs";
import { measureNull } from "./experiments/null.mjs";
import { measureProcesses } from "./experiments/process.mjs";
import { measureScheduler } from "./experiments/scheduler.mjs";
import { describeMachine, isBusy, machineText } from "./machine.mjs";
import { readOptions, USAGE, UsageError } from "./options.mjs";
import { document, printed, tableOf } from "./report.mjs";
import { closeAll, root, scratch, spawnerHere } from "./slipway.mjs";

const EXPERIMENTS = {
  process: measureProcesses,
  null: measureNull,
  memory: measureMemory,
  latency: measureLatency,
  scheduler: measureScheduler,
};

const say = (text) => console.error(text);

let stopping = false;

const interrupted = async () => {
  stopping = true;
  say("interrupted: stopping what was started");
  endAll();
  await closeAll();
  process.exit(130);
};

const keep = (path, results) => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify(results, null, 2)}\n`);
  say(`all numbers: ${relative(process.cwd(), path)}`);
};

const measureAll = async (options) => {
  const experiments = [];
  const broken = {};
  for (const name of options.only) {
    say(`--- ${name}`);
    try {
      const found = (await EXPERIMENTS[name](options, (text) => say(`${name}: ${text}`))).map(document);
      experiments.push(...found);
      if (!options.json) for (const each of found) console.log(`\n${tableOf(each)}`);
    } catch (error) {
      // What was interrupted is not broken; the handler of the signal ends this process.
      if (stopping) return new Promise(() => undefined);
      // The others go on; the exit status tells.
      broken[name] = error.message;
      say(`BROKEN: ${name}: ${error.stack}`);
    }
  }
  return { experiments, broken };
};

const main = async () => {
  const options = readOptions(process.argv.slice(2), Object.keys(EXPERIMENTS));
  if (options.help) {
    console.log(USAGE);
    return;
  }
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, interrupted);
  const machine = describeMachine({ home: options.dir, scratch, spawner: spawnerHere() });
  say(machineText(machine));
  if (isBusy(machine))
    say(`warning: the machine is not quiet (load ${machine.loadAtStart}): do not quote these numbers`);
  const { experiments, broken } = await measureAll(options);
  const results = { machine, rounds: options.rounds, quick: options.quick, experiments, broken };
  keep(options.output ?? join(root, "bench", "results", `${machine.at.replaceAll(/[:.]/g, "-")}.json`), results);
  if (options.json) console.log(JSON.stringify({ experiments: experiments.map(printed) }));
  else console.log(`\n${machineText(machine)}`);
  if (Object.keys(broken).length > 0) process.exitCode = 1;
  else if (options.writeDocs) say(`wrote ${relative(process.cwd(), writeSection(results))}`);
};

main().catch((error) => {
  if (error instanceof UsageError) {
    console.error(`error: ${error.message}\n\n${USAGE}`);
    process.exitCode = 2;
    return;
  }
  console.error(error);
  process.exitCode = 1;
});
