import type { PbsConfig } from "./config.ts";
import { scriptEnvironment, taskEnvironment } from "./environment.ts";
import { shortDate, vnodesOf, type Job } from "./job.ts";
import type { Moms } from "./moms.ts";
import { bringOutput, makeSpool, removeJobFiles, scriptPath, spoolFiles, writeJobFiles } from "./output.ts";
import { newUsage, neverRuns, occupy, place, vacate, type Place, type Usage } from "./select.ts";
import { startTimeOf } from "./submit.ts";

/**
 * The life of jobs:
 *
 *   W/30 ─► Q/10 ◄─► H/20 (22: waits for another job)
 *            │ ▲ node lost, -r y
 *            ▼ │
 *        R/41 ─► R/42 ─► E/51 ─► F/92 ok, 93 not, 91 deleted
 */
export interface Jobs {
  readonly all: ReadonlyMap<string, Job>;
  /** By its id; without history, jobs that have ended are forgotten. */
  find(id: string): Job | undefined;
  readonly usage: ReadonlyMap<string, Usage>;
  /** By the key `12`, `41[]` or `41[0]`. */
  add(jobs: readonly Job[]): void;
  /** False: it is already ending. */
  remove(job: Job, by: string): boolean;
  hold(job: Job): void;
  release(job: Job): void;
  nodeChanged(name: string, isUp: boolean): void;
  /** What pbs_tmrsh and pbsdsh ask for; returns the exit status, or undefined if the host is not one of the job's. */
  spawn(job: Job, host: string, argv: readonly string[]): Promise<number | undefined>;
  schedule(): void;
}

const SIGNALS: Readonly<Record<string, number>> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGILL: 4,
  SIGTRAP: 5,
  SIGABRT: 6,
  SIGBUS: 7,
  SIGFPE: 8,
  SIGKILL: 9,
  SIGUSR1: 10,
  SIGSEGV: 11,
  SIGUSR2: 12,
  SIGPIPE: 13,
  SIGALRM: 14,
  SIGTERM: 15,
};

export const keyOf = (id: string): string => id.split(".")[0]!;

export const createJobs = (config: PbsConfig, moms: Moms): Jobs => {
  const all = new Map<string, Job>();
  const usage = new Map(config.nodes.map(({ name }) => [name, newUsage()]));
  let tasks = 1;
  let scheduled = false;

  const soon = (): void => {
    if (scheduled) return;
    scheduled = true;
    setTimeout(() => {
      scheduled = false;
      schedule();
    }, 20);
  };

  const nodesFor = (queue: string): PbsConfig["nodes"] => {
    const bound = config.nodes.filter((node) => node.queue === queue);
    return bound.length > 0 ? bound : config.nodes.filter((node) => node.queue === undefined);
  };

  const isExclusive = (job: Job): boolean => /excl/.test(job.place);

  const chunksOn = (job: Job, host: string): Job["chunks"] => job.chunks.filter((_, at) => job.hosts[at] === host);

  const free = (job: Job): void => {
    for (const host of new Set(job.hosts)) vacate(usage.get(host)!, chunksOn(job, host), job.slots.get(host) ?? 0);
    for (const timer of job.timers.splice(0)) clearTimeout(timer);
    delete job.ending;
  };

  const later = (job: Job, ms: number, act: () => void): void => {
    job.timers.push(setTimeout(act, ms));
  };

  const signal = (job: Job, hosts: readonly string[], signal: "SIGTERM" | "SIGKILL"): void => {
    for (const host of new Set(hosts)) moms.tell(host, { do: "signal", job: job.id, signal });
  };

  const finish = (job: Job, substate: number): void => {
    job.state = "F";
    job.substate = substate;
    job.ended = new Date();
    removeJobFiles(config.root, job);
    for (const waiting of all.values()) if (waiting.substate === 22) consider(waiting);
    if (job.arrayId !== undefined) considerArray(job.arrayId);
    soon();
  };

  const considerArray = (id: string): void => {
    const whole = all.get(keyOf(id))!;
    const parts = [...all.values()].filter((job) => job.arrayId === id);
    if (!parts.every(({ state }) => state === "F") || whole.state === "F") return;
    const failed = parts.some(({ exit }) => exit !== 0);
    whole.exit = 0;
    whole.comment = `Job Array Began at ${shortDate(whole.created)} and ${failed ? "failed" : "finished"}`;
    finish(whole, failed ? 93 : 92);
  };

  /** Checks whether what it depends on has ended as it should. */
  const consider = (job: Job): void => {
    const [how = "", ...ids] = (job.request.depend ?? "").split(":");
    const others = ids.map((id) => all.get(keyOf(id)));
    if (others.some((other) => other !== undefined && other.state !== "F")) return;
    const wrong = others.some((other) =>
      how === "afterok" ? other?.exit !== 0 : how === "afternotok" ? other?.exit === 0 : false,
    );
    if (wrong) {
      job.hold = "s";
      finish(job, 92);
    } else {
      job.hold = "n";
      [job.state, job.substate] = ["Q", 10];
      soon();
    }
  };

  /** Its processes are gone: copies the output back, which may take long, and ends it. */
  const complete = (job: Job, exit: number, substate: number, comment: string): void => {
    job.exit = exit;
    [job.state, job.substate] = ["E", 51];
    for (const host of new Set(job.hosts)) moms.tell(host, { do: "forget", job: job.id });
    const start = Date.now() + config.stageMs;
    const bring = (): void => {
      if (!bringOutput(config.root, job) && Date.now() - start < config.copyMs) return later(job, 100, bring);
      job.comment += comment;
      free(job);
      finish(job, substate);
    };
    later(job, config.stageMs, bring);
  };

  const mainEnded = (job: Job, code: number | null, signal: string | null): void => {
    if (job.state !== "R") return;
    if (job.ending !== undefined) {
      const { exit, substate, comment, until } = job.ending;
      later(job, Math.max(0, until - Date.now()), () => {
        // a script that ends well in spite of it keeps its 0
        if (job.state === "R") complete(job, code === 0 && exit > 0 ? 0 : exit, substate, comment);
      });
      return;
    }
    const exit = signal === null ? (code ?? 0) : 256 + (SIGNALS[signal] ?? 0);
    complete(job, exit, exit === 0 ? 92 : 93, ` and ${exit === 0 ? "finished" : "failed"}`);
  };

  /**
   * TERM at once, KILL later; it stays R until then, whatever its script does meanwhile. Only the first node's mom does
   * that: processes on the others get no signal before they are killed, later still.
   */
  const end = (job: Job, exit: number, substate: number, comment: string): void => {
    if (job.ending !== undefined) return;
    const first = job.hosts.slice(0, 1);
    const others = job.hosts.filter((host) => host !== job.hosts[0]);
    const sistersMs = config.killMs + (others.length > 0 ? config.sistersMs : 0);
    job.ending = { exit, substate, comment, until: Date.now() + sistersMs };
    signal(job, first, "SIGTERM");
    later(job, config.killMs, () => signal(job, first, "SIGKILL"));
    later(job, sistersMs, () => signal(job, others, "SIGKILL"));
  };

  const run = async (job: Job, places: readonly Place[]): Promise<void> => {
    job.hosts = places.map(({ node }) => node.name);
    const slots = new Map<string, number>();
    for (const host of new Set(job.hosts))
      slots.set(host, occupy(usage.get(host)!, chunksOn(job, host), isExclusive(job)));
    job.slots = slots;
    [job.state, job.substate] = ["R", 41];
    job.started = new Date();
    job.runs += 1;
    job.comment = `Job run at ${shortDate(job.started)} on ${vnodesOf(job)}`;
    const whole = job.arrayId === undefined ? undefined : all.get(keyOf(job.arrayId));
    if (whole?.state === "Q") whole.state = "B";
    const { root } = config;
    writeJobFiles(root, job);
    const files = makeSpool(root, job);
    later(job, 300, () => {
      if (job.state === "R") job.substate = 42;
    });
    if (job.walltime !== undefined)
      later(job, job.walltime * 1000 + config.lateMs, () => end(job, -29, 93, " and exceeded resource walltime"));
    const shell = job.request.shell?.split("@")[0] ?? job.owner.shell;
    const runs = job.runs;
    const ended = await moms.start(job.hosts[0]!, {
      job: job.id,
      cookie: job.cookie,
      argv: [shell],
      // the shell reads the script's path, so that the script's own first line counts, and outlives it
      input: `trap : TERM\numask ${job.request.umask ?? "077"}\n${scriptPath(root, job)}\n`,
      env: scriptEnvironment(config, job),
      cwd: job.owner.home,
      uid: job.owner.uid,
      gid: job.owner.gid,
      ...files,
    });
    if (ended !== undefined && job.runs === runs) mainEnded(job, ended.code, ended.signal);
  };

  const schedule = (): void => {
    for (const job of all.values()) {
      if (job.state !== "Q" || job.arrayIndices !== undefined) continue;
      const queue = config.queues.find(({ name }) => name === job.queue)!;
      const nodes = nodesFor(job.queue);
      const never = neverRuns(job.chunks, job.place, nodes);
      const places = nodes.map((node) => ({ node, usage: usage.get(node.name)!, isUp: moms.isUp(node.name) }));
      const found = never === undefined && queue.started ? place(job.chunks, job.place, places) : undefined;
      if (found !== undefined) void run(job, found);
      else if (!queue.started) job.comment = "Not Running: Queue not started.";
      else job.comment = never ?? "Not Running: Insufficient amount of resource: ncpus ";
    }
  };

  const nodeLost = (name: string): void => {
    for (const job of all.values()) {
      if ((job.state !== "R" && job.state !== "E") || !job.hosts.includes(name)) continue;
      for (const host of new Set(job.hosts)) moms.tell(host, { do: "forget", job: job.id });
      free(job);
      job.exit = -20;
      if (job.request.rerunable) {
        job.hosts = [];
        [job.state, job.substate] = ["Q", 10];
        removeJobFiles(config.root, job);
      } else {
        bringOutput(config.root, job);
        job.comment += " and failed";
        finish(job, 93);
      }
    }
    soon();
  };

  return {
    all,
    find: (id) => {
      const job = all.get(keyOf(id));
      return job?.state === "F" && !config.history ? undefined : job;
    },
    usage,
    add: (jobs) => {
      for (const job of jobs) {
        all.set(keyOf(job.id), job);
        const { after, depend } = job.request;
        const at = after === undefined ? 0 : startTimeOf(after);
        if (job.hold === "u") [job.state, job.substate] = ["H", 20];
        else if (depend !== undefined) {
          [job.state, job.substate, job.hold] = ["H", 22, "s"];
          consider(job);
        } else if (at > Date.now()) {
          [job.state, job.substate] = ["W", 30];
          later(job, Math.min(at - Date.now(), 2 ** 31 - 1), () => {
            [job.state, job.substate] = ["Q", 10];
            soon();
          });
        }
      }
      soon();
    },
    remove: (job, by) => {
      if (job.state === "E" || job.ending !== undefined) return false;
      if (job.state === "R") {
        job.comment += ` and terminated by ${by}`;
        end(job, 271, 91, "");
        return true;
      }
      for (const part of all.values())
        if (part.arrayId === job.id && part.state === "R") end(part, 271, 91, ` and terminated by ${by}`);
        else if (part.arrayId === job.id && part.state !== "F") finish(part, 91);
      if (job.state === "B") return true;
      job.comment = `${job.comment} and terminated`.trim();
      for (const timer of job.timers.splice(0)) clearTimeout(timer);
      finish(job, 91);
      return true;
    },
    hold: (job) => {
      if (job.state !== "Q" && job.state !== "W") return;
      [job.state, job.substate, job.hold] = ["H", 20, "u"];
    },
    release: (job) => {
      if (job.state !== "H" || job.hold !== "u") return;
      [job.state, job.substate, job.hold] = ["Q", 10, "n"];
      soon();
    },
    nodeChanged: (name, isUp) => {
      if (isUp) soon();
      else setTimeout(() => nodeLost(name), config.nodeFailMs);
    },
    spawn: async (job, host, argv) => {
      const node = [...new Set(job.hosts)].indexOf(host);
      if (job.state !== "R" || job.ending !== undefined || node < 0 || !moms.isUp(host)) return undefined;
      tasks += 1;
      const ended = await moms.start(host, {
        job: job.id,
        cookie: job.cookie,
        argv,
        input: "",
        env: taskEnvironment(config, job, node, tasks),
        cwd: job.owner.home,
        uid: job.owner.uid,
        gid: job.owner.gid,
        ...spoolFiles(config.root, job),
      });
      if (ended === undefined) return undefined;
      return ended.signal === null ? (ended.code ?? 0) : (SIGNALS[ended.signal] ?? 1);
    },
    schedule,
  };
};
