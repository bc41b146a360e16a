import type { QueueConfig } from "../../config/clusters-file.ts";
import type { LaunchAsk, LaunchDirectives } from "../launch-dialect.ts";
import { chunkResource, pbsDuration } from "./directives.ts";
import type { PbsQueue } from "./keys.ts";
import { pbsWord, readPbsArgs } from "./qsub-options.ts";
import type { PbsSizing } from "./sizing.ts";

export interface PbsLaunchDirectives extends LaunchDirectives {
  /** Lines of the node file for each chunk. */
  readonly linesPerChunk: number;
  /** Each chunk is on a node of its own. */
  readonly isScattered: boolean;
}

const ARRANGEMENTS = ["free", "pack", "scatter", "vscatter"];

/** `pack:excl` as the arrangement of chunks and what else is said: who may share the nodes, which nodes belong together. */
const placeParts = (place = ""): { readonly arrangement: string | undefined; readonly rest: readonly string[] } => {
  const parts = place.split(":").filter((part) => part !== "");
  const arrangement = parts.find((part) => ARRANGEMENTS.includes(part));
  return { arrangement, rest: parts.filter((part) => part !== arrangement) };
};

/**
 * How chunks are laid over nodes. What the user writes comes first; slots_per_node then means a node for each chunk,
 * whatever the queue, whose place was written for pilots, says of that.
 */
export const placeOf = (
  { user, queue }: { readonly user: string | undefined; readonly queue: string | undefined },
  exclusive: boolean,
  sized: Pick<PbsSizing, "perNode" | "chunks">,
  notes: string[],
): string | undefined => {
  const [theirs, pools] = [placeParts(user), placeParts(queue)];
  const own = sized.perNode && sized.chunks > 1 ? "scatter" : undefined;
  const arrangement = theirs.arrangement ?? own ?? pools.arrangement;
  if (own !== undefined && theirs.arrangement !== undefined && theirs.arrangement !== own)
    notes.push(`place=${user} is asked for: nodes may get more slots than slots_per_node says`);
  else if (own !== undefined && pools.arrangement !== undefined && arrangement !== pools.arrangement)
    notes.push(`left out of the queue's place: ${pools.arrangement}, since slots_per_node decides it`);
  const shared = exclusive ? ["excl"] : [];
  const rest = [theirs.rest, pools.rest, shared].find((parts) => parts.length > 0) ?? [];
  return arrangement === undefined && rest.length === 0 ? undefined : [arrangement ?? "free", ...rest].join(":");
};

/** What the queue asks of each chunk and of the job, as options. */
const queueArgs = (queue: QueueConfig<PbsQueue> | undefined): string[] => [
  ...(queue?.options ?? []),
  ...(queue?.constraint === undefined ? [] : [`-l select=1:${chunkResource(queue.constraint)}`]),
  ...(queue?.own.selectOptions === undefined ? [] : [`-l select=1:${queue.own.selectOptions}`]),
];

export const pbsLaunchDirectives = (input: LaunchAsk<PbsQueue>, sized: PbsSizing): PbsLaunchDirectives => {
  const { spec, pool, refuse } = input;
  const counted = sized.counted ?? (sized.sizing.slotType === "cpu" ? "ncpus" : "ngpus");
  const user = readPbsArgs(spec.pbs.args, counted, refuse);
  const notes = user.ignored.map((what) => `left out of pbsbatch_args: ${what}`);
  // an administrator's options of a queue were written for pilots: what a launch decides itself is left out
  const queue = readPbsArgs(queueArgs(pool.queue), counted, ({ option, detail }) => {
    notes.push(`left out of the queue's options: ${option ?? detail}`);
  });
  const job = new Map([...queue.job, ...user.job]);
  const chunk = new Map([...queue.chunk, ...user.chunk]);
  if (user.job.has("walltime") && spec.walltime !== undefined) {
    refuse({ entry: 0, option: "-l walltime", detail: " beside walltime", remedy: "Keep one of them." });
  }
  const walltime = job.has("walltime") ? undefined : (spec.walltime ?? pool.queue?.walltime);
  if (walltime !== undefined) job.set("walltime", pbsDuration(walltime));

  const own = sized.counted === undefined ? [] : [`${sized.counted}=${sized.each}`];
  const select = [String(sized.chunks), ...own, ...[...chunk].map(([name, value]) => `${name}=${value}`)].join(":");
  const options: [letter: string, value?: string][] = [["N", input.jobName]];
  // a reservation is a queue of its own
  const target = pool.queue?.reservation ?? pool.partition;
  if (target !== undefined) options.push(["q", target]);
  options.push(["o", input.stdout], ["e", input.stderr], ["V"], ["r", "n"], ["W", "umask=0022"]);
  const project = input.project ?? pool.queue?.account;
  if (project !== undefined) options.push(["P", project]);
  const place = placeOf(
    { user: user.place, queue: pool.queue?.own.place ?? queue.place },
    pool.queue?.exclusive === true,
    sized,
    notes,
  );
  options.push(["l", `select=${select}`]);
  if (place !== undefined) options.push(["l", `place=${place}`]);
  for (const [name, value] of job) options.push(["l", `${name}=${value}`]);
  for (const { letter, value } of [...queue.options, ...user.options])
    options.push(value === "" ? [letter] : [letter, value]);
  return {
    lines: options.map(([letter, value]) =>
      value === undefined ? `#PBS -${letter}` : `#PBS -${letter} ${pbsWord(value)}`,
    ),
    ...(walltime === undefined ? {} : { walltime }),
    linesPerChunk: Math.max(1, Number(chunk.get("mpiprocs") ?? 1) || 1),
    isScattered: place !== undefined && placeParts(place).arrangement === "scatter",
    notes,
  };
};
