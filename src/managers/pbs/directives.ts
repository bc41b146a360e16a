import { createHash } from "node:crypto";
import { withoutSkipped, type PilotAsk } from "../manager.ts";
import type { PbsQueue } from "./keys.ts";

/** What a job asks, a pilot's or a task's, as the `#PBS` lines of its script. */

export const LONGEST_NAME = 230;
const NOT_IN_NAMES = /[^A-Za-z0-9._+-]/g;

export const isInNames = (char: string): boolean => char.search(NOT_IN_NAMES) < 0;

/**
 * A name that `-N` accepts. One that had to be changed ends with a mark made of the whole name, so that two different
 * names stay different; one that PBS accepts is left unchanged.
 */
export const pbsName = (name: string): string => {
  const clean = name.replaceAll(NOT_IN_NAMES, "_").replace(/^(?![A-Za-z0-9_])./, "_") || "job";
  if (clean === name && name.length <= LONGEST_NAME) return name;
  const mark = createHash("sha256").update(name).digest("hex").slice(0, 10);
  return `${clean.slice(0, LONGEST_NAME - mark.length - 1)}-${mark}`;
};

const twoDigits = (value: number): string => String(value).padStart(2, "0");

export const pbsDuration = (seconds: number): string => {
  const whole = Math.max(1, Math.ceil(seconds));
  return [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60].map(twoDigits).join(":");
};

/** qsub splits a directive's line as a shell does, as far as quotes go. */
const word = (text: string): string =>
  /^[^\s"'\\#]+$/.test(text) ? text : text.includes('"') ? `'${text}'` : `"${text}"`;

/** A boolean resource by its name, any other as it was written. */
export const chunkResource = (constraint: string): string =>
  constraint.includes("=") ? constraint : `${constraint}=True`;

const selectOf = (ask: PilotAsk<PbsQueue>): string => {
  const { cores, memory, gpus } = ask;
  return [
    String(ask.nodes),
    ...(cores === undefined ? [] : [`ncpus=${cores}`]),
    ...(memory === undefined ? [] : [`mem=${Math.ceil(memory / 1024)}kb`]),
    ...(gpus === undefined || gpus === 0 ? [] : [`ngpus=${gpus}`]),
    ...(ask.constraint === undefined ? [] : [chunkResource(ask.constraint)]),
    ...(ask.own.selectOptions === undefined ? [] : [ask.own.selectOptions]),
  ].join(":");
};

/** One chunk is one node's share: several of them go to nodes of their own. */
const placeOf = (ask: PilotAsk<PbsQueue>): string =>
  ask.own.place ?? `${ask.nodes > 1 ? "scatter" : "pack"}${ask.exclusive === true ? ":excl" : ""}`;

/** What makes a job of one kind different from another's. */
export interface PbsJob {
  readonly select: string;
  readonly place: string | undefined;
  readonly queue: string | undefined;
  /** Options before those of the queue. */
  readonly more?: readonly string[];
}

/** The lines of a job's script. */
export const pbsLines = (ask: PilotAsk<PbsQueue>, { select, place, queue, more = [] }: PbsJob): string[] => {
  const options = [
    `-N ${pbsName(ask.name)}`,
    `-o ${word(ask.stdout)}`,
    `-e ${word(ask.stderr)}`,
    `-l select=${select}`,
    ...(place === undefined ? [] : [`-l place=${place}`]),
    ...(ask.walltime === undefined ? [] : [`-l walltime=${pbsDuration(ask.walltime)}`]),
    ...(queue === undefined ? [] : [`-q ${word(queue)}`]),
    ...(ask.account === undefined ? [] : [`-P ${word(ask.account)}`]),
    // what is lost with its node is replaced by Slipway, not run again under the same name
    "-r n",
    "-W umask=0022",
    ...more,
    ...ask.options,
  ];
  return withoutSkipped(options, ask.skipOptions).map((option) => `#PBS ${option}`);
};

/** A reservation is a queue of its own. */
export const pbsDirectives = (ask: PilotAsk<PbsQueue>): string[] =>
  pbsLines(ask, { select: selectOf(ask), place: placeOf(ask), queue: ask.reservation ?? ask.partition });
