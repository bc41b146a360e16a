// `npm run bench`: one experiment per claim, each beside the machine's own limit and beside peers, in alternating rounds.
import { join, relative } from "node:path";
import { compare, readBaseline, writeBaseline } from "./baseline.mjs";
import { endAll } from "./commands.mjs";
import { writeSection } from "./docs-section.mjs";
import { describeMachine, isBusy, machineText } from "./machine.mjs";
import { readOptions, UsageError } from "./options.mjs";
import { document, printed, tableOf } from "./report.mjs";
import { commitHere, writeResults } from "./results-file.mjs";
import { Skipped } from "./rounds.mjs";
import { closeAll, root, scratch, spawnerHere } from "./slipway.mjs";

/** File and function of each; a file is read only when it is needed, with what it needs itself. */
const EXPERIMENTS = {
  process: ["process", "measureProcesses"],
  "process-cores": ["process-cores", "measureProcessCores"],
  peaks: ["peaks", "measurePeaks"],
  "agent-loop": ["agent-loop", "measureAgentLoop"],
  null: ["null", "measureNull"],
  growth: ["growth", "measureGrowth"],
  agents: ["agents", "measureAgents"],
  "login-node": ["login-node", "measureLoginNode"],
  shapes: ["shapes", "measureShapes"],
  graphs: ["graphs", "measureGraphs"],
  stages: ["stages", "measureStages"],
  prices: ["prices", "measurePrices"],
  latency: ["latency", "measureLatency"],
  viewers: ["viewers", "measureViewers"],
  page: ["page", "measurePage"],
  scheduler: ["scheduler", "measureScheduler"],
  eta: ["eta", "measureEta"],
  pressure: ["pressure", "measurePressure"],
  makespan: ["makespan", "measureMakespan"],
  "makespan-large": ["makespan", "measureLargeMakespan"],
  memory: ["memory", "measureMemory"],
  "learned-memory": ["learned-memory", "measureLearnedMemory"],
  restart: ["restart", "measureRestart"],
  pilots: ["pilots", "measurePilots"],
  "pilots-slurm": ["pilots-slurm", "measurePilotsOnSlurm"],
  "task-job": ["task-jobs", "measureTaskJob"],
  "task-jobs": ["task-jobs", "measureTaskJobs"],
  dask: ["dask", "measureDask"],
};

const experiment = async (name) => {
  const [file, measure] = EXPERIMENTS[name];
  return (await import(`./experiments/${file}.mjs`))[measure];
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

const measureAll = async (options, measured) => {
  const experiments = [];
  const broken = {};
  const skipped = {};
  for (const name of options.only) {
    const begun = performance.now();
    say(`--- ${name}`);
    try {
      const measure = await experiment(name);
      const found = (await measure(options, (text) => say(`${name}: ${text}`))).map((each) => ({
        ...document(each),
        // what is simulated depends on nothing else that the machine does
        measured: {
          ...measured,
          ...(each.simulated === true ? { load: 0, rounds: 1 } : {}),
          at: new Date().toISOString(),
        },
      }));
      experiments.push(...found);
      if (!options.json) for (const each of found) console.log(`\n${tableOf(each)}`);
      say(`${name}: took ${((performance.now() - begun) / 1000).toFixed(0)} s`);
    } catch (error) {
      // Interrupted is not broken; the handler of the signal ends this process.
      if (stopping) return new Promise(() => undefined);
      if (error instanceof Skipped) {
        skipped[name] = error.message;
        say(`skipped: ${name}: ${error.message}`);
        continue;
      }
      // The others continue; the exit status reports it.
      broken[name] = error.message;
      // a stack may contain the whole text of source that was loaded from memory
      say(`BROKEN: ${name}: ${error.stack.replaceAll(/data:[^\s:)]+/g, "data:…")}`);
    }
  }
  return { experiments, broken, skipped };
};

const guard = (results) => {
  const lines = compare(readBaseline(), results);
  for (const { text } of lines) say(`guard: ${text}`);
  if (lines.some(({ worse }) => worse)) process.exitCode = 1;
};

const main = async () => {
  const options = readOptions(process.argv.slice(2), Object.keys(EXPERIMENTS));
  if (options.help) {
    console.log(options.usage);
    return;
  }
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, interrupted);
  const machine = describeMachine({ home: options.dir, scratch, spawner: spawnerHere() });
  say(machineText(machine));
  if (isBusy(machine))
    say(`warning: the machine is not quiet (load ${machine.loadAtStart}): do not quote these numbers`);
  const measured = { commit: commitHere(), rounds: options.rounds, size: options.size, load: machine.loadAtStart };
  const { experiments, broken, skipped } = await measureAll(options, measured);
  const path = options.output ?? join(root, "bench", "results", `${machine.at.replaceAll(/[:.]/g, "-")}.json`);
  const results = writeResults(path, { machine, experiments, broken, skipped }, options.merge);
  say(`all numbers: ${relative(process.cwd(), path)}`);
  if (options.json) console.log(JSON.stringify({ experiments: experiments.map(printed), skipped }));
  else console.log(`\n${machineText(machine)}`);
  if (options.guard) guard({ machine, experiments });
  if (options.writeBaseline && Object.keys(broken).length === 0) writeBaseline({ machine, experiments });
  if (Object.keys(broken).length > 0) process.exitCode = 1;
  else if (options.writeDocs)
    say(
      `wrote ${writeSection(results)
        .map((written) => relative(process.cwd(), written))
        .join(", ")}`,
    );
};

main().catch((error) => {
  if (error instanceof UsageError) {
    console.error(`error: ${error.message}\nnpm run bench -- --help lists the options`);
    process.exitCode = 2;
    return;
  }
  console.error(error);
  process.exitCode = 1;
});
