import { FRACTION } from "../../core/resources.ts";
import { SlipwayError } from "../../errors.ts";
import { amount, key, readBackend, usageOf, type BackendOption } from "../backend-options.ts";
import type { RefuseOption } from "../launch-dialect.ts";
import type { RefuseKey, TaskAsk, TaskDialect } from "../task-dialect.ts";
import { cutBytes, lookAlike } from "../task-job-name.ts";
import { readTaskKeys } from "../task-keys.ts";
import { chunkResource, isInNames, LONGEST_NAME, pbsLines } from "./directives.ts";
import type { PbsQueue } from "./keys.ts";
import { placeOf } from "./launch-directives.ts";
import { type PbsOptions, readPbsArgs } from "./qsub-options.ts";

/** A task as a job of PBS. Its arrays are of no use: their elements are run again whatever `-r` says. */

const KEYS = ["partition", "select", "place"] as const;

/** `-l select=…`, `-l place=…`, `-l ncpus=4,mem=2gb`: what else it may say is the job's own. */
const resourceList: BackendOption["take"] = (value, out, refuse) => {
  for (const item of value.split(",")) {
    const [name = "", ...rest] = item.split("=");
    const text = rest.join("=");
    if (text === "") refuse(`"${item.slice(0, 60)}" has no value`);
    else if (name === "select" || name === "place") key(name)(text, out, refuse);
    else if (name === "ncpus") amount("cpus")(text, out, refuse);
    else if (name === "mem") amount("mem")(text, out, refuse);
    else refuse(`takes select, place, ncpus and mem, not "${name.slice(0, 60)}"`);
  }
};

const OPTIONS: readonly BackendOption[] = [
  { letter: "l", value: "select=CHUNK", about: "further resources of each chunk", take: resourceList },
  { letter: "l", value: "place=HOW", about: "how chunks are laid over nodes", take: resourceList },
  { letter: "l", value: "ncpus=N,mem=SIZE", about: "instead of the task's own", take: resourceList },
  { letter: "q", value: "QUEUE", about: "queue", take: key("partition") },
];

const PLACE = /^(free|pack|scatter|vscatter|excl|exclhost|shared|group=\w+)(:(excl|exclhost|shared|group=\w+))*$/;

const read = (keys: Readonly<Record<string, string>>, refuse: RefuseKey): Record<string, string> => {
  const isKey = (written: string): string | undefined =>
    (KEYS as readonly string[]).includes(written) ? written : undefined;
  const found = readTaskKeys(keys, isKey, KEYS, "PBS", refuse);
  const { select, place } = found;
  if (select !== undefined)
    selectOf([select], ({ detail, remedy }) => refuse("select", detail || "cannot be read", remedy));
  if (place !== undefined && !PLACE.test(place))
    refuse("place", `"${place.slice(0, 80)}" is not a place`, "Write free, pack or scatter, and :excl or :shared.");
  return found;
};

/** Resources of chunks by name, the last of these texts winning; how many chunks there are follows from the task. */
const selectOf = (texts: readonly string[], refuse: RefuseOption): PbsOptions["chunk"] =>
  new Map(
    texts.flatMap((text) => [...readPbsArgs([`-l "select=${text.replaceAll('"', "'")}"`], "ncpus", refuse).chunk]),
  );

const failed: RefuseOption = ({ detail, remedy }) => {
  throw new SlipwayError("bad-value", { where: "PBS", key: "select", detail, remedy });
};

/** Chunks of equal size, and how many ranks are in each. */
const chunksOf = ({ ranks, nodes }: TaskAsk<PbsQueue>): { readonly count: number; readonly ranks?: number }[] => {
  if (ranks === undefined) return [{ count: nodes }];
  if (ranks.nodes === undefined) return [{ count: ranks.count, ranks: 1 }];
  const [least, more] = [Math.floor(ranks.count / ranks.nodes), ranks.count % ranks.nodes];
  return [
    { count: more, ranks: least + 1 },
    { count: ranks.nodes - more, ranks: least },
  ].filter(({ count }) => count > 0);
};

const directives = (ask: TaskAsk<PbsQueue>): string[] => {
  const { keys, own, constraint } = ask;
  const texts = [constraint === undefined ? undefined : chunkResource(constraint), own.selectOptions, keys["select"]];
  const further = selectOf(
    texts.filter((text) => text !== undefined),
    failed,
  );
  const chunks = chunksOf(ask);
  const select = chunks.map(({ count, ranks }) => {
    const copies = ranks ?? 1;
    const amounts = new Map(further);
    const set = (name: string, value: number | string | undefined): void => {
      if (value !== undefined && value !== 0) amounts.set(name, String(value));
    };
    set("ncpus", ask.cores === undefined ? undefined : Math.max(1, Math.ceil(ask.cores)) * copies);
    set("mem", ask.memory === undefined ? undefined : `${Math.ceil((ask.memory * copies) / 1024)}kb`);
    set("ngpus", ask.gpus === undefined ? undefined : Math.ceil(ask.gpus) * copies);
    set("mpiprocs", ranks);
    return [count, ...[...amounts].map(([name, value]) => `${name}=${value}`)].join(":");
  });
  const sized = { perNode: ask.ranks?.nodes !== undefined || ask.nodes > 1, chunks: ask.ranks?.nodes ?? ask.nodes };
  const place = placeOf({ user: keys["place"], queue: own.place }, ask.exclusive === true, sized, []);
  const others = Object.entries(ask.others).filter(([, units]) => units > 0);
  return pbsLines(ask, {
    select: select.join("+"),
    place,
    queue: keys["partition"] ?? ask.reservation ?? ask.partition,
    // of the whole job: what a node has is asked for in select
    more: others.map(([name, units]) => `-l ${name}=${units / FRACTION}`),
  });
};

export const pbsTask: TaskDialect<PbsQueue> = {
  keys: KEYS,
  read,
  backend: (text, refuse) => ({ ...readBackend(text, OPTIONS, refuse), notices: [] }),
  usage: usageOf("PBS", OPTIONS),
  directives,
  jobName: (text) => cutBytes(lookAlike(text, isInNames).replace(/^(?![A-Za-z0-9_])/, "_"), LONGEST_NAME),
  mostInName: LONGEST_NAME,
  ranks: "mpiexec",
  variables: /^(PBS_|NCPUS$)/,
};
