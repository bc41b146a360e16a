import type { RowRanges } from "../core/events.ts";
import { isJsonItems, itemsOf } from "../core/item-source.ts";
import { type Group, type Run, groupOf } from "../core/run.ts";
import type { State } from "../core/state.ts";
import { encodeFrame } from "../protocol/frames.ts";
import type { Define, GroupTemplate, OutputLimits } from "../protocol/messages.ts";
import { inColumns } from "./alike.ts";
import type { AgentLink } from "./link.ts";

/** What an agent learns of groups: the template of each once per connection, before the first of its tasks. */

/** Fewer tasks than this end within moments, and people may wait for each. */
const MANY = 100;
/** What an agent has for itself: when a task gives it back, no other agent can use it. */
const OWN: ReadonlySet<string> = new Set(["cpus", "gpus", "mem", "tmp"]);

const isPatient = ({ count, dependents, followers, shape }: Group): boolean => {
  if (count < MANY || dependents.length > 0 || followers.length > 0) return false;
  for (const name in shape.resources) if (!OWN.has(name)) return false;
  return true;
};

/** What most groups do not say is left out: a graph has as many templates as tasks. */
const template = (group: Group): GroupTemplate => {
  const { index, first, spec, shape, items } = group;
  const { name, command, env = {}, cwd, stdout, stderr, append, timeLimit, executor, pin, priority, colsep } = spec;
  const { resources } = shape;
  const made: { -readonly [K in keyof GroupTemplate]: GroupTemplate[K] } = {
    index,
    name,
    first,
    command,
    env,
    executor,
    priority,
    resources,
    json: isJsonItems(itemsOf(spec, items)),
  };
  if (cwd !== undefined) made.cwd = cwd;
  if (stdout !== undefined) made.stdout = stdout;
  if (stderr !== undefined) made.stderr = stderr;
  if (append !== undefined) made.append = append;
  if (spec.outputs !== undefined) made.outputs = spec.outputs;
  if (timeLimit !== undefined) made.timeLimit = timeLimit;
  if (pin !== undefined) made.pin = pin;
  if (spec.items.kind === "range") made.range = { from: spec.items.from, step: spec.items.step };
  if (colsep !== undefined) made.colsep = colsep;
  if (isPatient(group)) made.patient = true;
  return made;
};

const defineMessage = (run: Run, groups: readonly Group[]): Define => ({
  t: "define",
  run: run.id,
  runName: run.spec.name,
  cwd: run.spec.cwd,
  env: undefined,
  numbering: run.spec.numbering,
  groups: groups.map(template),
});

interface Definition {
  readonly group: Group;
  readonly first: boolean;
  readonly over: boolean;
  readonly frame: Buffer;
}

/** One encoded definition of each run: agent after agent gets the same one, and it holds an environment. */
const encoded = new WeakMap<Run, Definition>();

const definition = (run: Run, group: Group, first: boolean, output: OutputLimits): Buffer => {
  const known = encoded.get(run);
  if (known?.group === group && known.first === first && known.over === output.over) return known.frame;
  const frame = encodeFrame({ ...defineMessage(run, [group]), ...(first ? { env: run.spec.env, output } : {}) });
  encoded.set(run, { group, first, over: output.over, frame });
  return frame;
};

export const define = (link: AgentLink, run: Run, group: Group): void => {
  let known = link.defined.get(run.id);
  if (known?.has(group.index) === true) return;
  const first = known === undefined;
  if (known === undefined) link.defined.set(run.id, (known = new Set()));
  known.add(group.index);
  link.channel?.sendFrame(definition(run, group, first, link.limitsOf(run)));
};

/** Encodes ahead of time what `define` will send first of these: there is nothing else to do while the disk syncs. */
export const prepareDefinition = ({ runs }: State, link: AgentLink, [part]: readonly RowRanges[]): void => {
  const run = part === undefined ? undefined : runs.get(part.run);
  if (run === undefined) return;
  const group = groupOf(run.groups, part!.ranges[0]!);
  const known = link.defined.get(run.id);
  if (known?.has(group.index) !== true) definition(run, group, known === undefined, link.limitsOf(run));
};

/** In a graph each task may be a group of its own: those that one agent gets together are defined together. */
const MOST_TOGETHER = 1024;
/** Characters of commands and environments that go into one message, but for the last group's. */
const MOST_TEXT = 1_000_000;

const textOf = ({ spec: { command, env } }: Group): number => {
  let length = command.length;
  if (typeof command !== "string") for (const word of command) length += word.length;
  for (const name in env) length += name.length + env[name]!.length;
  return length;
};

/** Where the part of these groups ends that begins at `from`. */
const endOfPart = (groups: readonly Group[], from: number): number => {
  let end = from;
  for (let text = 0; end < groups.length && end - from < MOST_TOGETHER && text < MOST_TEXT; end += 1)
    text += textOf(groups[end]!);
  return end;
};

export const defineAll = (link: AgentLink, run: Run, groups: readonly Group[]): void => {
  const unknown = groups.filter(({ index }) => link.defined.get(run.id)?.has(index) !== true);
  if (unknown.length < 3) return;
  // the run itself with the first of them
  define(link, run, unknown[0]!);
  const known = link.defined.get(run.id)!;
  for (let from = 1, end; from < unknown.length; from = end) {
    end = endOfPart(unknown, from);
    const some = unknown.slice(from, end);
    for (const { index } of some) known.add(index);
    const message = defineMessage(run, link.alike ? [] : some);
    link.channel?.sendFrame(encodeFrame(link.alike ? { ...message, ...inColumns(some, template) } : message));
  }
};

/**
 * Defines what tasks need that an agent gets as soon as that is on disk: it reads that meanwhile. Only of runs that it has heard
 * of: those are on disk, and their templates never change.
 */
export const defineSoon = (state: State, link: AgentLink, parts: readonly RowRanges[]): void => {
  for (const { run: id, ranges } of parts) {
    const run = link.defined.has(id) ? state.runs.get(id) : undefined;
    if (run !== undefined) defineAll(link, run, groupsIn(run, ranges));
  }
};

export const groupsIn = (run: Run, ranges: readonly number[]): Group[] => {
  const found: Group[] = [];
  for (let i = 0; i < ranges.length; i += 2)
    for (let row = ranges[i]!, end = row + ranges[i + 1]!; row < end;) {
      const group = groupOf(run.groups, row);
      if (group !== found.at(-1)) found.push(group);
      row = group.first + group.count;
    }
  return found;
};
