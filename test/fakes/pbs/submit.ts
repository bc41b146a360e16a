import { randomBytes } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { STATUS, type PbsConfig } from "./config.ts";
import type { Attribute, Job, Owner } from "./job.ts";
import {
  checkResource,
  directivesOf,
  readRequest,
  readVariables,
  Refusal,
  splitOptions,
  type QsubRequest,
} from "./request.ts";
import { readSelect, toSeconds } from "./select.ts";

/** From the input of qsub to a waiting job. */

export interface Submission {
  readonly argv: readonly string[];
  readonly uid: number;
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly script: string;
  readonly name: string;
}

export const ownerOf = (uid: number): Owner => {
  for (const line of readFileSync("/etc/passwd", "utf8").split("\n")) {
    const [user = "", , id, gid, , home = "/", shell = "/bin/sh"] = line.split(":");
    if (id === String(uid)) return { user, uid, gid: Number(gid), home, shell: shell === "" ? "/bin/sh" : shell };
  }
  throw new Refusal(STATUS.badUser, "qsub: Bad UID for job execution");
};

const customOf = (config: PbsConfig): Set<string> => new Set(config.nodes.flatMap(({ custom }) => Object.keys(custom)));

/** Where output goes: `host:path`, a directory, or beside where qsub was run. */
const pathOf = (written: string | undefined, fallback: string, name: string, cwd: string): string => {
  if (written === undefined) return join(cwd, fallback);
  const path = resolve(cwd, /^[\w.-]*:/.test(written) ? written.slice(written.indexOf(":") + 1) : written);
  return written.endsWith("/") || statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
    ? join(path, name)
    : path;
};

const variablesOf = (config: PbsConfig, request: QsubRequest, given: Submission, owner: Owner): Attribute[] => {
  const env = given.environment;
  const listed = readVariables(request.variables, env);
  const exported = request.allVariables ? Object.entries(env).filter(([name]) => !name.startsWith("PBS_O_")) : [];
  const all = new Map<string, string>([
    ["PBS_O_HOME", env["HOME"] ?? owner.home],
    ["PBS_O_LANG", env["LANG"] ?? "C.UTF-8"],
    ["PBS_O_LOGNAME", owner.user],
    ["PBS_O_PATH", env["PATH"] ?? "/bin:/usr/bin"],
    ["PBS_O_SHELL", owner.shell],
    ["PBS_O_INTERACTIVE_AUTH_METHOD", "resvport"],
    ["PBS_O_INTERACTIVE_ENCRYPT_METHOD", ""],
    ["PBS_O_WORKDIR", given.cwd],
    ["PBS_O_SYSTEM", "Linux"],
    ...exported,
    ...listed,
    ["PBS_O_QUEUE", request.queue ?? config.defaultQueue],
    ["PBS_O_HOST", config.server],
  ]);
  return [...all];
};

const queueOf = (config: PbsConfig, name: string): PbsConfig["queues"][number] => {
  const queue = config.queues.find((one) => one.name === name);
  if (queue === undefined) throw new Refusal(STATUS.unknownQueue, "qsub: Unknown queue");
  if (!queue.enabled) throw new Refusal(184, "qsub: Queue is not enabled");
  return queue;
};

/** `0-4` or `1-9:2`. */
const indicesOf = (array: string): number[] => {
  const [, first, last, step = "1"] = /^(\d+)-(\d+)(?::(\d+))?$/.exec(array) ?? [];
  if (first === undefined) throw new Refusal(1, "qsub: illegal -J value");
  const out: number[] = [];
  for (let index = Number(first); index <= Number(last); index += Number(step)) out.push(index);
  return out;
};

/** Of `[[CC]YY]MMDDhhmm[.SS]`, in local time. */
export const startTimeOf = (text: string): number => {
  const [digits = "", seconds = "0"] = text.split(".");
  const now = new Date();
  const full = `${String(now.getFullYear())}${String(now.getMonth() + 1).padStart(2, "0")}${String(now.getDate()).padStart(2, "0")}`;
  const all = full.slice(0, 12 - digits.length) + digits;
  const part = (from: number, to: number): number => Number(all.slice(from, to));
  return new Date(part(0, 4), part(4, 6) - 1, part(6, 8), part(8, 10), part(10, 12), Number(seconds)).getTime();
};

/** The job, or the array and its jobs. */
export const makeJobs = (config: PbsConfig, sequence: number, given: Submission): Job[] => {
  const { options } = splitOptions(given.argv);
  const mark = options.find(([flag]) => flag === "C")?.[1];
  const custom = customOf(config);
  const request = readRequest([...options, ...directivesOf(given.script, mark)], custom);
  const owner = ownerOf(given.uid);
  if (given.uid === 0 && !config.rootMaySubmit) throw new Refusal(STATUS.badUser, "qsub: Bad UID for job execution");
  const queue = queueOf(config, request.queue ?? config.defaultQueue);
  const { resources } = request;
  const written = resources.get("walltime");
  const walltime = written === undefined ? queue.defaultWalltime : toSeconds(written);
  if (queue.maxWalltime !== undefined && (walltime ?? 0) > queue.maxWalltime)
    throw new Refusal(STATUS.queueLimit, "qsub: Job violates queue and/or server resource limits");

  const plain = ["ncpus", "mem", "ngpus"]
    .filter((one) => resources.has(one))
    .map((one) => `${one}=${resources.get(one)}`);
  const select = resources.get("select") ?? ["1", ...(resources.has("ncpus") ? [] : ["ncpus=1"]), ...plain].join(":");
  const variables = variablesOf(config, request, given, owner) as [string, string][];
  const name = request.name ?? given.name.slice(0, 230);
  const indices = request.array === undefined ? undefined : indicesOf(request.array);

  const make = (tag: string, suffix: string, extra: Partial<Job>): Job => {
    const id = `${sequence}${tag}.${config.server}`;
    return {
      id,
      sequence,
      name,
      owner,
      request,
      queue: queue.name,
      script: given.script,
      cwd: given.cwd,
      chunks: readSelect(select, (key, value) => checkResource(key, value, custom)),
      select: /ncpus=/.test(select) ? select : select.replaceAll(/(^|\+)(\d+)/g, "$1$2:ncpus=1"),
      place: resources.get("place") ?? (resources.has("select") ? "free" : "pack"),
      ...(walltime === undefined ? {} : { walltime }),
      variables,
      stdout: pathOf(request.stdout, `${name}.o${sequence}${suffix}`, `${id}.OU`, given.cwd),
      stderr: pathOf(request.stderr, `${name}.e${sequence}${suffix}`, `${id}.ER`, given.cwd),
      submitArguments: given.argv.join(" "),
      created: new Date(),
      cookie: randomBytes(16).toString("hex"),
      state: "Q",
      substate: 10,
      hold: request.hold ? "u" : "n",
      comment: "",
      runs: 0,
      hosts: [],
      slots: new Map(),
      timers: [],
      ...extra,
    };
  };
  if (indices === undefined) return [make("", "", {})];
  const whole = make("[]", ".^array_index^", { arrayIndices: indices });
  return [whole, ...indices.map((index) => make(`[${index}]`, `.${index}`, { arrayId: whole.id, arrayIndex: index }))];
};
