import type { ArrayPlace, JobOutcome, JobStatus, Partition } from "../../provider.ts";

/** Reads what Grid Engine's commands print. Nothing here throws: text that is not understood is left out, or `unknown`. */

export interface SgeRow {
  /** `12`, or `12.3` of an element of an array. */
  readonly id: string;
  readonly name: string;
  readonly owner: string;
  /** Letters such as qw, hqw, r, dr, Eqw, z. */
  readonly state: string;
  readonly host?: string;
  readonly array?: ArrayPlace;
}

/** As it is listed: elements of an array in one state share a row. */
export interface SgeListing extends SgeRow {
  /** Their numbers: `1-10:1`, `9,10`; absent where the job is no array. */
  readonly tasks?: string;
}

const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };

/** Grid Engine writes `%lt;` for `<` in some places. */
const plain = (text: string): string =>
  text.replaceAll(/[&%](lt|gt|amp|quot|apos);/g, (_, name: string) => ENTITIES[name]!);

const element = (text: string, name: string): string | undefined => {
  const start = text.indexOf(`<${name}>`);
  if (start < 0) return undefined;
  const end = text.indexOf(`</${name}>`, start);
  return end < 0 ? undefined : plain(text.slice(start + name.length + 2, end));
};

/** The parts of a text between two marks, in one pass. */
const between = (text: string, open: string, close: string): string[] => {
  const parts: string[] = [];
  for (let at = text.indexOf(open); at >= 0; at = text.indexOf(open, at)) {
    const end = text.indexOf(close, at);
    if (end < 0) break;
    parts.push(text.slice(at + open.length, end));
    at = end;
  }
  return parts;
};

/** Whatever a text claims; arrays of our own are far smaller. */
const MOST_ELEMENTS = 100_000;

/** `1-10:2,15` as numbers. */
const numbersOf = (tasks: string): number[] => {
  const numbers: number[] = [];
  for (const part of tasks.split(",")) {
    const [, low, high, step] = /^\s*(\d{1,9})(?:-(\d{1,9}))?(?::(\d{1,9}))?\s*$/.exec(part) ?? [];
    if (low === undefined) continue;
    const width = Math.max(1, Number(step ?? 1));
    for (let at = Number(low); at <= Number(high ?? low) && numbers.length < MOST_ELEMENTS; at += width)
      numbers.push(at);
  }
  return numbers;
};

/** The first element of an array has the number 1. */
export const elementId = (array: string, element: number): string => `${array}.${element + 1}`;

/** A row for each element that it stands for. */
export const rowsOf = ({ tasks, ...row }: SgeListing): SgeRow[] =>
  tasks === undefined
    ? [row]
    : numbersOf(tasks).map((number) => {
        const array = { nativeId: row.id, element: number - 1 };
        return { ...row, id: elementId(row.id, array.element), array };
      });

/** `qstat -xml`. */
export const parseQstat = (text: string): SgeListing[] => {
  const rows: SgeListing[] = [];
  for (const part of between(text, "<job_list", "</job_list>")) {
    const id = element(part, "JB_job_number");
    if (id === undefined || !/^\d+$/.test(id)) continue;
    const [, host] = (element(part, "queue_name") ?? "").split("@");
    const tasks = element(part, "tasks");
    rows.push({
      id,
      name: element(part, "JB_name") ?? "",
      owner: element(part, "JB_owner") ?? "",
      state: element(part, "state") ?? "",
      ...(host === undefined || host === "" ? {} : { host }),
      ...(tasks === undefined || tasks.trim() === "" ? {} : { tasks }),
    });
  }
  return rows;
};

/** A job that the master lists. `Eqw` waits for a person: it is held. */
export const statusOfRow = ({ state, host }: SgeRow): JobStatus => {
  const is = (): JobStatus["state"] => {
    if (state.includes("z")) return "ended";
    if (/[sST]/.test(state)) return "suspended";
    if (/[rt]/.test(state)) return "active";
    if (/[Eh]/.test(state)) return "held";
    return /[qw]/.test(state) ? "queued" : "unknown";
  };
  return { state: is(), raw: state, ...(host === undefined ? {} : { hosts: [host] }) };
};

/** Why jobs wait or are in error, from `qstat -j 1,2,3`. */
export const parseReasons = (text: string): Map<string, string> => {
  const reasons = new Map<string, string>();
  for (const block of text.split(/^=+$/m)) {
    const id = /^job_number:\s*(\d+)/m.exec(block)?.[1];
    if (id === undefined) continue;
    const error = /^error reason\s+\d+:\s*(?:\d\S*\s+\S+\s+\[[^\]]*\]:\s*)?(.*)$/m.exec(block)?.[1];
    const [, first = "", more = ""] = /^scheduling info:[ \t]*(.*)((?:\n[ \t]+.*)*)/m.exec(block) ?? [];
    const others = more.split("\n").filter((line) => line.trim() !== "").length;
    const waits = first.trim() + (others > 0 ? ` (and ${others} more)` : "");
    const reason = (error ?? waits).trim();
    if (reason !== "") reasons.set(id, reason.slice(0, 500));
  }
  return reasons;
};

export interface SgeRecord {
  readonly id: string;
  readonly failed: number;
  /** The words after `failed`. */
  readonly what: string;
  readonly exitStatus: number;
  readonly host?: string;
  /** Seconds. */
  readonly wallclock: number;
  /** The job's requests: `-l h_rt=60,h_vmem=1G -pe smp 2`. */
  readonly category: string;
}

/** `qacct -j`: one record per job, or element of one. The parts of a parallel job come before the job's own, which is the last. */
export const parseQacct = (text: string): Map<string, SgeRecord> => {
  const records = new Map<string, SgeRecord>();
  for (const block of text.split(/^=+$/m)) {
    const field = (name: string): string => new RegExp(`^${name}[ \\t]+(.*)$`, "m").exec(block)?.[1]?.trim() ?? "";
    const [job, task] = [field("jobnumber"), field("taskid")];
    if (!/^\d+$/.test(job)) continue;
    // `undefined` where it is no element
    const id = /^\d+$/.test(task) && task !== "0" ? `${job}.${task}` : job;
    const [, failed = "0", what = ""] = /^(\d+)\s*(?::\s*(.*))?$/.exec(field("failed")) ?? [];
    const host = field("hostname");
    records.set(id, {
      id,
      failed: Number(failed),
      what,
      exitStatus: Number.parseInt(field("exit_status"), 10) || 0,
      wallclock: Number.parseFloat(field("ru_wallclock")) || 0,
      category: field("category"),
      ...(host === "" ? {} : { host }),
    });
  }
  return records;
};

const seconds = (text: string): number =>
  text.split(":").reduce((sum, part) => sum * 60 + (Number.parseFloat(part) || 0), 0);

/** A limit of the master's was reached; the record shows which only through what was asked. */
const limitReached = ({ category, wallclock }: SgeRecord): JobOutcome => {
  const asked = /\bh_rt=([\d:.]+)/.exec(category)?.[1];
  const inTime = asked === undefined || wallclock < seconds(asked);
  return inTime && /\bh_(vmem|rss|data)=/.test(category) ? "out-of-memory" : "timeout";
};

const KILLED = 137;
/** Grid Engine's numbers for what went wrong before the job's first command. */
const isBeforeJob = (failed: number): boolean =>
  (failed >= 1 && failed <= 11) || failed === 21 || (failed >= 26 && failed <= 36) || failed === 38;

/** `dying`: it was being deleted when last seen. `qdel -f` of an administrator leaves a record that looks like success. */
export const statusOfRecord = (record: SgeRecord, dying: boolean): JobStatus => {
  const { failed, exitStatus } = record;
  const outcome = (): JobOutcome => {
    if (isBeforeJob(failed)) return "start-failed";
    if (failed === 37) return limitReached(record);
    if (failed === 19) return "lost";
    if (failed === 0 && !dying) return exitStatus === 0 ? "done" : "failed";
    return dying || (failed === 100 && exitStatus === KILLED) ? "cancelled" : "failed";
  };
  const bySignal = failed !== 0 && exitStatus > 128 && exitStatus < 192;
  const words = failed === 0 ? "" : record.what === "" ? `failed ${failed}` : record.what;
  return {
    state: "ended",
    raw: `failed ${failed}, exit_status ${exitStatus}`,
    outcome: outcome(),
    ...(words === "" ? {} : { reason: words }),
    ...(bySignal ? { signal: exitStatus - 128 } : isBeforeJob(failed) ? {} : { exitCode: exitStatus }),
    ...(record.host === undefined ? {} : { hosts: [record.host] }),
  };
};

/** `qsub -terse`: the id, and what else was said. */
export const parseSubmitted = (text: string): { nativeId: string; note: string } | undefined => {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const at = lines.findLastIndex((line) => /^\d+(\.\d+-\d+:\d+)?$/.test(line.trim()));
  if (at < 0) return undefined;
  return { nativeId: lines[at]!.trim().split(".")[0]!, note: lines.toSpliced(at, 1).join(" ").trim() };
};

/** The words of a refusal without what every refusal says. */
export const refusalOf = (stderr: string, stdout: string): string => {
  const lines = `${stderr}\n${stdout}`.split("\n").map((line) => line.trim());
  const telling = lines.filter((line) => line !== "" && line !== "Exiting.");
  return (
    telling
      .map((line) => line.replace(/^Unable to run job: /, ""))
      .join("; ")
      .slice(0, 1000) || "no reason given"
  );
};

export interface SgeHost {
  readonly name: string;
  readonly cpus: number;
  /** Bytes. */
  readonly memory: number;
  readonly gpus: number;
  readonly queues: readonly { readonly name: string; readonly slots: number; readonly state: string }[];
}

const UNITS: Readonly<Record<string, number>> = { K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 };
const bytes = (text: string): number => {
  const [, amount = "0", unit = ""] = /^([\d.]+)([KMGT]?)/i.exec(text.trim()) ?? [];
  return Math.floor((Number.parseFloat(amount) || 0) * (UNITS[unit.toUpperCase()] ?? 1));
};

/** `qhost -F -q -xml`. Hosts that do not report are left out: nothing is known of them. */
export const parseHosts = (text: string): SgeHost[] => {
  const hosts: SgeHost[] = [];
  for (const part of between(text, "<host ", "</host>")) {
    const name = /^name='([^']*)'/.exec(part)?.[1];
    if (name === undefined || name === "global") continue;
    const value = (which: string): string =>
      new RegExp(`<(?:hostvalue|resourcevalue) name='${which}'[^>]*>([^<]*)<`).exec(part)?.[1] ?? "";
    const cpus = Number.parseInt(value("num_proc"), 10) || 0;
    if (cpus === 0) continue;
    const queues = between(part, "<queue name=", "</queue>").map((queue) => {
      const of = (which: string): string => new RegExp(`name='${which}'>([^<]*)<`).exec(queue)?.[1] ?? "";
      return {
        name: plain(/^'([^']*)'/.exec(queue)?.[1] ?? ""),
        slots: Number.parseInt(of("slots"), 10) || 0,
        state: of("state_string"),
      };
    });
    const gpus = Math.floor(Number.parseFloat(value("n?gpus?")) || 0);
    hosts.push({ name: plain(name), cpus, memory: bytes(value("mem_total")), gpus, queues });
  }
  return hosts;
};

/** The most elements of an array, from `qconf -sconf`; 0 there is no limit. */
export const parseMostInArray = (text: string): number | undefined => {
  const most = Number(/^max_aj_tasks\s+(\d{1,9})\s*$/m.exec(text)?.[1] ?? 0);
  return most === 0 ? undefined : most;
};

/** Hard limits of wall-clock time from `qconf -sq NAMES`: seconds by queue. */
export const parseQueueLimits = (text: string): Map<string, number> => {
  const limits = new Map<string, number>();
  let name = "";
  for (const line of text.split("\n")) {
    const [key, value = ""] = line.trim().split(/\s+/, 2);
    if (key === "qname") name = value;
    else if (key === "h_rt" && /^[\d:]+$/.test(value)) limits.set(name, seconds(value));
  }
  return limits;
};

/** Queues over hosts. One that is disabled, in error or unreachable on a host takes no jobs there. */
export const partitionsOf = (hosts: readonly SgeHost[], limits: ReadonlyMap<string, number>): Partition[] => {
  const byName = new Map<string, { host: SgeHost; slots: number; up: boolean }[]>();
  for (const host of hosts)
    for (const { name, slots, state } of host.queues)
      byName.set(name, [...(byName.get(name) ?? []), { host, slots, up: !/[dDuEsSCo]/.test(state) }]);
  return [...byName].map(([name, instances]) => {
    const maxWalltime = limits.get(name);
    return {
      name,
      isDefault: false,
      isUp: instances.some(({ up }) => up),
      nodes: instances.length,
      cpusPerNode: Math.max(...instances.map(({ slots }) => slots)),
      memoryPerNode: Math.max(...instances.map(({ host }) => host.memory)),
      gpusPerNode: Math.max(...instances.map(({ host }) => host.gpus)),
      gpuTypes: [],
      ...(maxWalltime === undefined ? {} : { maxWalltime }),
    };
  });
};
