import { existsSync } from "node:fs";
import path from "node:path";
import { Option } from "commander";
import { loadLayers } from "../../config/load-clusters.ts";
import { findProject } from "../../config/find-project.ts";
import { loadProject } from "../../config/load-project.ts";
import { type OneQueue, oneQueue } from "../../config/one-queue.ts";
import { parseDuration } from "../../core/quantities.ts";
import { SlipwayError } from "../../errors.ts";
import { type PortRange, readPortRange } from "../../wrap/plan/values.ts";
import type { Context } from "../context.ts";
import { currentDirectory, searcherOf } from "../submission.ts";
import { defineWrapVerbs } from "../wrap-verbs.ts";
import { type Define, examples } from "../verb.ts";

export interface WrapOptions {
  readonly statusFile?: string;
  readonly portRange?: string;
  readonly host?: string;
  readonly timeout: string;
  readonly python?: string;
  readonly start?: boolean;
  readonly parameter?: readonly string[];
  readonly parameters?: string;
  readonly scheduler: "here" | "pilot";
  readonly interface?: string;
  readonly clusters?: string;
  readonly stage?: string;
}

/** What a wrapper is started with, checked. */
export interface WrapTarget {
  readonly target: string;
  /** Slipway's own path: the queue that its workers come from. */
  readonly chosen?: OneQueue;
  /** Absolute. */
  readonly statusFile: string;
  readonly portRange: PortRange | undefined;
  readonly timeout: number;
}

const usage = (detail: string): never => {
  throw new SlipwayError("usage", { detail });
};

const read = <T>(option: string, parse: () => T): T => {
  try {
    return parse();
  } catch (error) {
    if (error instanceof RangeError) return usage(`${option} ${error.message}`);
    throw error;
  }
};

/** Options that mean something on one path only. */
const OWN_ONLY = ["interface", "clusters", "stage"] as const;

/** CLUSTER[/QUEUE] as the layers of configuration have it from here. */
const chooseQueue = async (context: Context, target: string, options: WrapOptions): Promise<OneQueue> => {
  const [matched, cluster, queue] = /^([^/:\s]+)(?:\/([^/\s]+))?$/.exec(target) ?? [];
  if (matched === undefined)
    usage(`'${target}' must be MODULE::SYMBOL, such as dask_jobqueue::SLURMCluster, or CLUSTER[/QUEUE]`);
  const { files, warnings } = findProject(currentDirectory(), searcherOf(process.env));
  for (const warning of warnings) context.note(`warning: ${warning}`);
  const project = loadProject({ files, stage: options.stage });
  const loaded = await loadLayers({ home: context.home, explicitPath: options.clusters, project });
  return oneQueue(loaded, cluster, queue);
};

const targetOf = async (context: Context, target: string, options: WrapOptions): Promise<WrapTarget> => {
  const { statusFile, portRange, host, timeout } = options;
  const isClass = target.includes("::");
  if (isClass && !/^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*::[A-Za-z_]\w*$/.test(target))
    usage(`'${target}' is not MODULE::SYMBOL, such as dask_jobqueue::SLURMCluster`);
  if (statusFile === undefined) return usage("--status-file is missing");
  if (host !== undefined && !/^[\w.:[\]-]+$/.test(host)) usage(`--host must be a name or an address, not '${host}'`);
  if (options.interface !== undefined && !/^[\w.:@-]{1,40}$/.test(options.interface))
    usage(`--interface must be the name of a network interface, not '${options.interface}'`);
  const strange = OWN_ONLY.find((option) => options[option] !== undefined);
  if (isClass && (strange !== undefined || options.scheduler !== "here"))
    usage(`--${strange ?? "scheduler"} is for CLUSTER[/QUEUE]; ${target} has its own way`);
  return {
    target,
    ...(isClass ? {} : { chosen: await chooseQueue(context, target, options) }),
    statusFile: path.resolve(statusFile),
    portRange: portRange === undefined ? undefined : read("--port-range", () => readPortRange(portRange)),
    timeout: read("--timeout", () => parseDuration(timeout)),
  };
};

/** Starts a server that ends with this process. */
export const boundServer = (root: string) => async (home: string) => {
  const { startServer } = await import("../server-process.ts");
  return startServer({ home, root, bound: true });
};

/** In this process, until nobody needs it or a signal comes; a second signal ends it at once. */
const holdHere = async (context: Context, what: WrapTarget, options: WrapOptions): Promise<number> => {
  const shim = path.join(context.root, "dist", "slipway_dask.py");
  if (!existsSync(shim))
    throw new SlipwayError("internal", { detail: `${shim} is missing; run \`npm ci\` in ${context.root} first` });
  const stop = new AbortController();
  const kill = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    process.removeAllListeners(signal);
    process.on(signal, () => (stop.signal.aborted ? kill : stop).abort());
  }
  const { chosen, ...rest } = what;
  const common = {
    ...rest,
    home: context.home,
    host: options.host,
    python: options.python,
    shim,
    stop: stop.signal,
    kill: kill.signal,
    note: (line: string) => context.err.line(line),
  };
  if (chosen === undefined) await (await import("../../wrap/holder/hold.ts")).hold(common);
  else {
    const { holdPoolFor } = await import("../../wrap/pool/hold-pool.ts");
    const { scheduler, interface: name } = options;
    await holdPoolFor({ ...common, chosen, scheduler, interface: name, startServer: boundServer(context.root) });
  }
  return 0;
};

export const define: Define = (command, { act }) => {
  command
    .argument(
      "<CLUSTER>",
      "CLUSTER[/QUEUE] of clusters.yaml, whose pilots run the workers; or MODULE::SYMBOL: a Dask cluster, a class of Dask clusters, or a function that returns one",
    )
    .option("--status-file <file>", "holds `parameters`, and says where the cluster is")
    .option("--port-range <a-b>", "ports of the scheduler, the dashboard, workers and nannies (default: any)")
    .option("--host <host>", "the address that the scheduler listens on (default: Dask's choice)")
    .addOption(new Option("--timeout <time>", "end after this long without work and clients; 0: never").default("600"))
    .option("--python <path>", "the Python that has Dask, here and in the jobs (default: python)")
    .addOption(
      new Option("--scheduler <where>", "CLUSTER: in this process, or in the first pilot")
        .choices(["here", "pilot"])
        .default("here"),
    )
    .option("--interface <name>", "CLUSTER: the network interface that workers use (default: Dask's choice)")
    .option("--stage <name>", "CLUSTER: a stage of slipway.yaml")
    .option("--clusters <file>", "CLUSTER: a clusters.yaml besides the home's own")
    .option("--start", "write the status file, start the wrapper in the background, wait, print the address")
    .option("--parameter <key=value...>", "with --start: a parameter; may be repeated")
    .option("--parameters <file>", "with --start: a YAML or JSON file of parameters")
    .description(
      "Hold a Dask cluster: read parameters from a status file, turn them into Dask's configuration, make the cluster, scale it to its work, say where it is, and end it when nobody uses it. Needs no server. See docs/dask.md.",
    )
    .addHelpText(
      "after",
      examples([
        "slipway wrap hpc/cpu --status-file dask.json --start --parameter maximum_jobs=10",
        "slipway wrap dask_jobqueue::SLURMCluster --status-file dask.json --port-range 8700-8799",
        "slipway wrap dask_jobqueue::SLURMCluster --status-file dask.json --start \\",
        "    --parameter walltime=01:00:00 cores=4 memory=8GB maximum_jobs=10",
        "slipway wrap distributed::LocalCluster --status-file dask.json --python venv/bin/python",
        "slipway wrap list",
        "slipway wrap scale dask.json 2-8",
        "slipway wrap down dask.json",
      ]),
    )
    .action(
      act(async (context, [target], given) => {
        const options = given.opts<WrapOptions>();
        const what = await targetOf(context, target!, options);
        if (options.start === true) return (await import("../wrap-start.ts")).startWrap(context, what, options);
        if (options.parameter !== undefined || options.parameters !== undefined)
          usage("--parameter and --parameters are for --start; otherwise the status file holds `parameters`");
        return holdHere(context, what, options);
      }),
    );
  defineWrapVerbs(command, act);
};
