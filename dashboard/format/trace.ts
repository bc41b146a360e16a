import { stateWord } from "../../src/core/state-words.ts";
import type { TimelineView } from "../../src/api/timeline.ts";

/** A timeline as Perfetto (ui.perfetto.dev) and chrome://tracing read it: hosts are processes, slots are threads. */
export const traceOf = (run: number, view: TimelineView, groups: ReadonlyMap<number, string>): object => {
  const hosts = [...new Set(view.lanes.map(({ host }) => host))];
  const pid = new Map(hosts.map((host, i) => [host, i + 1]));
  const names = [
    ...hosts.map((name) => ({ ph: "M", name: "process_name", pid: pid.get(name)!, args: { name } })),
    ...view.lanes.map(({ host, slot }) => ({
      ph: "M",
      name: "thread_name",
      pid: pid.get(host)!,
      tid: slot,
      args: { name: `slot ${slot}` },
    })),
  ];
  const bars = view.lane.map((lane, i) => {
    const { host, slot } = view.lanes[lane]!;
    const end = view.end[i]! < 0 ? view.until : view.end[i]!;
    const many = view.count?.[i] ?? 1;
    return {
      ph: "X",
      name: many > 1 ? `${many} tasks from ${run}.${view.task[i]}` : `${run}.${view.task[i]}`,
      cat: stateWord(view.states[view.state[i]!]!),
      ts: view.start[i]! * 1000,
      dur: Math.max(0, end - view.start[i]!) * 1000,
      pid: pid.get(host)!,
      tid: slot,
      args: {
        state: stateWord(view.states[view.state[i]!]!),
        attempt: view.attempt[i],
        group: groups.get(view.group[i]!) ?? String(view.group[i]),
        ...(view.failed === undefined ? {} : { tasks: many, failed: view.failed[i] }),
      },
    };
  });
  return { displayTimeUnit: "ms", traceEvents: [...names, ...bars] };
};
