import type { RanksEnded } from "./events.ts";
import { type OutputLost, addLost } from "./output-lost.ts";
import { type Peak, largerPeak, peakPages, raisePeak } from "./peak.ts";
import { attemptsOf } from "./past-attempts.ts";
import { type Run, ownMap } from "./run.ts";
import type { Apply, Effects, State } from "./state.ts";
import { touch } from "./table.ts";
import { setPlace } from "./rank-places.ts";
import { addUsage } from "./usage.ts";
import type { AgentId, Row, RunId } from "./ids.ts";

/**
 * The agents that run the ranks of one attempt together, all of one pilot. The first is its head: the attempt is the
 * head's, like that of any other task, and its one result comes from there. The others hold slots for it; what they
 * report about their ranks is kept here, so that a successor of the server can tell the head.
 *
 *     assigned ──► each member starts its ranks ──► ranks.ended of the others ──► result of the head ──► over
 *                     │ a member is lost, a rank fails, the head gives it back or is lost ───────────────┘
 */
export interface Gang {
  readonly run: RunId;
  readonly row: Row;
  readonly attempt: number;
  /** The head first. */
  readonly agents: readonly number[];
  /** How many ranks each of them has, in the order of agents. */
  readonly ranks: readonly number[];
  /** Members, other than the head, whose ranks have ended. */
  readonly ended: Map<number, RanksEnded>;
}

/** Output of ranks that ran on other agents than the attempt's own. */
export interface RankOutput {
  readonly attempt: number;
  readonly agent: AgentId;
  readonly outAt: number;
  readonly outBytes: number;
  readonly errBytes: number;
  readonly lost?: OutputLost;
}

export const gangKey = (run: RunId, row: Row): string => `${run}.${row}`;

/** CPU time that the ranks of an attempt used on other agents than its head, as far as they have reported. */
export const cpuOfOthers = (state: State, run: Run, row: Row): number => {
  if (state.gangs.size === 0) return 0;
  let units = 0;
  for (const ended of state.gangs.get(gangKey(run.id, row))?.ended.values() ?? []) units += ended.cpu ?? 0;
  return units;
};

/** A row leaves its agent; if a gang ran it, the gang is over. */
export const leave = (state: State, run: Run, row: Row, agent: AgentId, effects: Effects): void => {
  effects.left(run, row, agent);
  if (state.gangs.size === 0) return;
  const gang = state.gangs.get(gangKey(run.id, row));
  if (gang === undefined) return;
  state.gangs.delete(gangKey(run.id, row));
  effects.gangOver(gang);
};

const keepOutput = (run: Run, event: RanksEnded): void => {
  if (event.outAt < 0 && event.lost === undefined) return;
  const list = run.rankOutputs.get(event.row) ?? [];
  if (list.some((part) => part.attempt === event.attempt && part.agent === event.agent)) return;
  const { attempt, agent, outAt, outBytes, errBytes, lost } = event;
  list.push({ attempt, agent, outAt, outBytes, errBytes, ...(lost === undefined ? {} : { lost }) });
  run.rankOutputs = ownMap(run.rankOutputs).set(event.row, list);
  run.outputBytes += outBytes + errBytes;
  if (lost === undefined) return;
  const history = run.history.get(event.row);
  const past = history?.findIndex(({ n }) => n === attempt) ?? -1;
  if (past < 0) return addLost(run, event.row, lost);
  // the attempt is over: this joins what is remembered of it
  const before = history![past]!;
  const { stdout, stderr, reason } = before.outputLost ?? { stdout: 0, stderr: 0, reason: lost.reason };
  const outputLost = { stdout: stdout + lost.stdout, stderr: stderr + lost.stderr, reason };
  history![past] = { ...before, outputLost };
};

/** The attempt's peak is the largest of any rank, also where one reports after its end. */
const keepPeak = (run: Run, { row, attempt }: RanksEnded, peak: Peak): void => {
  const history = run.history.get(row);
  const past = history?.findIndex(({ n }) => n === attempt) ?? -1;
  if (past < 0) return raisePeak(run, row, peakPages(peak.bytes), peak.by);
  const before = history![past]!;
  history![past] = { ...before, peak: largerPeak(before.peak, peak)! };
};

/** Also after the gang is over: what its ranks wrote until then can still be read. A repeated event changes nothing. */
export const applyRanksEnded: Apply<RanksEnded> = (state, event) => {
  const run = state.runs.get(event.run);
  if (run === undefined || event.row >= run.total) return;
  if (attemptsOf(run, event.row).some(({ n }) => n === event.attempt)) {
    keepOutput(run, event);
    if (event.peak !== undefined) keepPeak(run, event, event.peak);
  }
  const gang = state.gangs.get(gangKey(event.run, event.row));
  if (gang === undefined || gang.attempt !== event.attempt || !gang.agents.includes(event.agent)) return;
  if (gang.agents[0] === event.agent || gang.ended.has(event.agent)) return;
  gang.ended.set(event.agent, event);
  const { cpu = 0, system = 0, read = 0, written = 0 } = event;
  addUsage(run, event.row, cpu, system, read, written);
};

/** Records which agents run an attempt together. */
export const formGang = (
  state: State,
  run: Run,
  row: Row,
  { agents, ranks }: { readonly agents: readonly number[]; readonly ranks: readonly number[] },
): void => {
  const attempt = touch(run.table, row).attempt[row % run.table.pageRows]!;
  setPlace(run, row, { agents, ranks });
  state.gangs.set(gangKey(run.id, row), { run: run.id, row, attempt, agents, ranks, ended: new Map() });
};

/** Rows whose gang has lost a member that still had work to do, while the head lives. */
export const gangsWithout = (state: State, gone: ReadonlySet<number>): Gang[] =>
  [...state.gangs.values()].filter((gang) =>
    gang.agents.some((agent, i) => i > 0 && gone.has(agent) && !gang.ended.has(agent)),
  );
