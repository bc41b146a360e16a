// The command line of the benchmarks.
import { homedir } from "node:os";
import { resolve } from "node:path";
import { parseArgs } from "node:util";

const usage = (
  known,
) => `Usage: npm run bench -- [options]      or: node bench/main.mjs [options], slipway bench [options]

Measures Slipway as it is installed here, with its defaults, beside this machine's limits and other programs, in
alternating rounds. Exit status: 0 measured, whatever came out; 1 an experiment is broken; 2 wrong usage.

  --only NAME[,NAME]  some of the experiments: ${known.join(", ")}
  --rounds N          how often each contender is measured (default 5; 9 for a baseline)
  --quick             2 rounds of fewer tasks: to see that it works, not to quote
  --smoke             one round of a handful of tasks: does each experiment still run?
  --json              one JSON document on standard output; the table goes nowhere, progress to standard error
  --venv DIR          a Python virtual environment with peers: Dask distributed, Parsl, RADICAL-Pilot, HyperQueue
  --install           fetch GNU parallel with apt-get if it is missing and this is root
  --dir DIR           where the servers' homes are made, and removed (default: your home directory, as Slipway's own)
  --output FILE       where all numbers of the run are kept (default bench/results/DATE.json)
  --merge             what is measured now takes its place among what --output has already; each keeps its date and commit
  --write-docs        put a summary into docs/performance.md, where what was not measured stays, and curves into
                      docs/growth.svg and docs/process-cores.svg
  --guard             compare with bench/baseline.json: exit status 1 if a median is worse than the baseline's worse quartile.
                      Before a release, on a quiet machine, with at least 9 rounds
  --write-baseline    put what is measured now into bench/baseline.json
  --profile DIR       keep CPU profiles of server and agent there; for reading, since profiling costs time
`;

export class UsageError extends Error {}

const words = {
  only: { type: "string" },
  rounds: { type: "string" },
  quick: { type: "boolean", default: false },
  smoke: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
  venv: { type: "string" },
  install: { type: "boolean", default: false },
  dir: { type: "string", default: homedir() },
  output: { type: "string" },
  merge: { type: "boolean", default: false },
  "write-docs": { type: "boolean", default: false },
  guard: { type: "boolean", default: false },
  "write-baseline": { type: "boolean", default: false },
  profile: { type: "string" },
  help: { type: "boolean", short: "h", default: false },
};

const wholeNumber = (name, text) => {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < 1 || value > 1000) throw new UsageError(`--${name} must be from 1 to 1000`);
  return value;
};

const parse = (argv) => {
  try {
    return parseArgs({ args: argv, options: words }).values;
  } catch (error) {
    throw new UsageError(error.message);
  }
};

const ROUNDS = { full: "5", quick: "2", smoke: "1" };

export const readOptions = (argv, known) => {
  const values = parse(argv);
  const only = values.only?.split(",") ?? known;
  for (const name of only)
    if (!known.includes(name)) throw new UsageError(`no experiment is named ${name}; known: ${known.join(", ")}`);
  if (values.merge && values.output === undefined) throw new UsageError("--merge needs --output FILE");
  if ((values.guard || values["write-baseline"]) && (values.smoke || values.quick))
    throw new UsageError(
      "a baseline needs whole experiments: --guard and --write-baseline go without --quick and --smoke",
    );
  const size = values.smoke ? "smoke" : values.quick ? "quick" : "full";
  return {
    ...values,
    usage: usage(known),
    only,
    size,
    /** One of three sizes of an experiment. */
    sized: (full, quick, smoke) => ({ full, quick, smoke })[size],
    rounds: wholeNumber("rounds", values.rounds ?? (values.guard || values["write-baseline"] ? "9" : ROUNDS[size])),
    dir: resolve(values.dir),
    venv: values.venv === undefined ? undefined : resolve(values.venv),
    output: values.output === undefined ? undefined : resolve(values.output),
    profile: values.profile === undefined ? undefined : resolve(values.profile),
    writeDocs: values["write-docs"],
    writeBaseline: values["write-baseline"],
  };
};
