import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { FRACTION } from "../../core/resources.ts";
import type { OwnRanks } from "../../protocol/agent-settings.ts";
import type { Ranks } from "../../protocol/messages.ts";
import { type RankLaunch, rankLaunch, sharedEnvironment } from "./places.ts";

/** Ranks of a task whose job is its own: they have all its nodes, and the manager's launcher starts them there. */

const linesOf = (file: string): string[] => {
  try {
    return readFileSync(file, "utf8").split("\n").filter(Boolean);
  } catch {
    return [];
  }
};

/**
 * How many ranks each host has: what its CPUs allow, in order, where they are known; the rest, and otherwise all,
 * evenly, the first hosts one more.
 */
export const spread = (count: number, room: readonly (number | undefined)[]): number[] => {
  const ranks = room.map(() => 0);
  let left = count;
  if (room.every((most) => most !== undefined))
    for (const [at, most] of room.entries()) {
      ranks[at] = Math.min(most, left);
      left -= ranks[at];
    }
  const each = Math.floor(left / room.length);
  return ranks.map((had, at) => had + each + (at < left % room.length ? 1 : 0));
};

/** The ranks on the hosts of the job, in place of the one host that the server knows. */
export const inOwnJob = (message: Ranks, own: OwnRanks): Ranks => {
  const found = linesOf(own.hostsFile).map((line) => line.trim());
  const names = found.length === 0 ? [hostname()] : found;
  const cpus = new Map(
    linesOf(join(dirname(own.hostsFile), "cpus")).map((line) => line.split(" ") as [string, string]),
  );
  const perRank = Math.max(1, Math.ceil((message.resources["cpus"] ?? 0) / FRACTION));
  const roomOn = (host: string): number | undefined => {
    const count = Number(cpus.get(host) ?? NaN);
    return Number.isInteger(count) && count > 0 ? Math.floor(count / perRank) : undefined;
  };
  const total = message.ranks.reduce((sum, ranks) => sum + ranks, 0);
  const ranks = spread(total, names.map(roomOn));
  const used = names.flatMap((_host, at) => (ranks[at]! > 0 ? [at] : []));
  return {
    ...message,
    node: 0,
    hosts: used.map((at) => names[at]!),
    ranks: used.map((at) => ranks[at]!),
    by: message.by === "agents" ? own.by : message.by,
  };
};

/**
 * The launcher's command line. srun knows the job's nodes, memory and GPUs from the variables that the task has; only
 * the CPUs of a rank it would not take from there.
 */
export const ownLaunch = (
  part: Ranks,
  file: string,
  own: OwnRanks,
  set: Readonly<Record<string, string>>,
  job: Readonly<Record<string, string | undefined>> = process.env,
): RankLaunch => {
  const program = part.by === own.by ? own.program : undefined;
  if (part.by !== "srun") {
    const { argv, env } = rankLaunch(part, file, job, set);
    return { argv: [program ?? argv[0]!, ...argv.slice(1)], env };
  }
  const total = part.ranks.reduce((sum, count) => sum + count, 0);
  const cpus = Math.max(1, Math.ceil((part.resources["cpus"] ?? 0) / FRACTION));
  return {
    argv: [program ?? "srun", "--kill-on-bad-exit=1", `--ntasks=${total}`, `--cpus-per-task=${cpus}`],
    env: [...sharedEnvironment(part), `SLIPWAY_HOST_FILE=${file}`],
  };
};
