// A manager from outside: task-spooler (Debian's package of that name, command `tsp`), a queue on one machine. Named in
// clusters.yaml by its path; docs/adding-a-manager.md explains it.
import { readFile } from "node:fs/promises";

/** A job's name as its label, which the listing shows in brackets. */
const label = (name) => encodeURIComponent(name);
const nameOf = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

const STATES = { queued: "queued", allocating: "queued", running: "active", finished: "ended", skipped: "ended" };
const LINE = /^(\d+) +(\w+) (.*)$/;
const ENDED = / (-?\d+) +\d+\.\d+\/\d+\.\d+\/\d+\.\d+ /;

/** What `tsp -l` prints, by id. */
export const parseList = (text) => {
  const jobs = new Map();
  for (const line of text.split("\n")) {
    const [, id, word, rest] = LINE.exec(line) ?? [];
    if (id === undefined || word === undefined) continue;
    const exit = ENDED.exec(rest)?.[1];
    const state = Object.hasOwn(STATES, word) ? STATES[word] : "unknown";
    const name = nameOf(/\[([^\]]*)\]/.exec(rest)?.[1] ?? "");
    jobs.set(id, { name, status: { state, raw: word, ...(state === "ended" ? endOf(exit) : {}) } });
  }
  return jobs;
};

/** -1 stands for any signal, which is how a job is cancelled. */
const endOf = (exit) => {
  if (exit === undefined) return { outcome: "start-failed" };
  if (exit === "-1") return { outcome: "cancelled" };
  return { outcome: exit === "0" ? "done" : "failed", exitCode: Number(exit) };
};

const isId = (id) => /^\d{1,9}$/.test(id);
const MOST_REMEMBERED = 1000;

const create = ({ run, programs, errors, units }) => {
  const program = programs.tsp ?? "tsp";
  /** Jobs that were taken out of the queue leave no trace in it. */
  const removed = new Set();

  const tsp = async (words, options) => {
    const result = await run([program, ...words], options);
    if (result.code !== 0 && /server didn't come up|connect|refused/i.test(result.stderr))
      throw errors.unreachable(result.stderr.trim());
    return result;
  };
  const must = async (words) => {
    const { code, stdout, stderr } = await tsp(words);
    if (code !== 0) throw errors.unreachable(stderr.trim() || `tsp ended with ${code}`);
    return stdout;
  };
  const list = async () => parseList(await must(["-l"]));

  return {
    describe: async () => ({
      version: (await must(["-V"])).split(" - ")[0].trim(),
      largest: { cpus: units("cpus", Number((await must(["-S"])).trim()) || 1) },
    }),

    submit: async (job) => {
      // it reads no script: what `directives` wrote there is found again here
      const script = await readFile(job.script, "utf8");
      const directives = [...script.matchAll(/^#TSP (.*)$/gm)].flatMap(([, words]) => words.split(" "));
      const command = ["/bin/sh", "-c", 'exec "$0" >stdout 2>stderr', job.script];
      const words = [...directives, ...(job.options ?? []), "-L", label(job.name), ...command];
      const result = await tsp(words, { once: true, cwd: job.directory, env: { TMPDIR: job.directory } });
      const nativeId = result.stdout.trim().split("\n").at(-1);
      if (result.code !== 0) throw errors.refused(result.stderr.trim() || `tsp ended with ${result.code}`);
      if (!isId(nativeId)) throw errors.lost("tsp printed no id");
      return { nativeId };
    },

    poll: async (nativeIds) => {
      const jobs = nativeIds.some(isId) ? await list() : new Map();
      const gone = (id) => ({ state: "ended", raw: "gone", outcome: removed.has(id) ? "cancelled" : "unknown" });
      return new Map(nativeIds.map((id) => [id, jobs.get(id)?.status ?? gone(id)]));
    },

    cancel: async (nativeIds) => {
      if (!nativeIds.some(isId)) return;
      const jobs = await list();
      for (const id of new Set(nativeIds)) {
        const state = jobs.get(id)?.status.state;
        if (state === "active") await tsp(["-k", id]);
        if (state !== "queued") continue;
        // the first in its list it does not remove, not even one that is too large to run: this is tried again
        await must(["-r", id]);
        removed.add(id);
        if (removed.size > MOST_REMEMBERED) removed.delete(removed.values().next().value);
      }
    },

    list: async (namePrefix) =>
      [...(await list())]
        .filter(([, { name, status }]) => name.startsWith(namePrefix) && status.state !== "ended")
        .map(([nativeId, { name }]) => ({ name, nativeId })),
  };
};

/** One machine has one node: where it runs, and nowhere else. A starter is a function to lines of shell. */
const here = ({ command }) => ({
  start: [`slipway_start ${command.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ")}`],
});

/** @type {import("slipway/provider").SlipwayModule} */
export default {
  contract: 1,
  managers: {
    "task-spooler": {
      title: "task-spooler",
      programs: ["tsp"],
      clusterKeys: { socket: "path" },
      instead: { constraint: "It has one machine.", reservation: "Use options: [-D ID]." },
      problem: ({ nodes, memory, gpus }) => {
        if (nodes > 1) return { key: "nodes", detail: "it has one machine", remedy: "Ask for one node." };
        const key = memory !== undefined ? "memory" : gpus !== undefined ? "gpus" : undefined;
        return key === undefined
          ? undefined
          : {
              key,
              detail: "it counts slots alone",
              remedy: `Leave ${key} out; resources: declares what tasks may count on.`,
            };
      },
      environment: ({ own: { socket } }) => (socket === undefined ? {} : { TS_SOCKET: socket }),
      directives: ({ cores = 1, options, skipOptions }) =>
        [`-N ${cores}`, ...options]
          .filter((option) => !skipOptions.some((text) => text.trim() !== "" && option.includes(text)))
          .map((option) => `#TSP ${option}`),
      starter: "here",
      waiting: [
        [/^(queued|allocating)$/, "the slots before it are in use", "Wait, or allow more at once: `tsp -S NUMBER`."],
      ],
      create,
    },
  },
  starters: { here },
};
