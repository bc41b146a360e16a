import { useState } from "preact/hooks";
import type { TaskView, WhyView } from "../../../src/api/schemas.ts";
import { useFetched } from "../../data/fetched.ts";
import { taskPieces, useOutput } from "../../data/logs.ts";
import { to } from "../../data/route.ts";
import { amount, bytes } from "../../format/numbers.ts";
import { isFinal } from "../../format/progress.ts";
import { commandText } from "../../format/text.ts";
import { duration } from "../../format/time.ts";
import { Card, Facts, Loaded, Segments, Why } from "../../parts/blocks.tsx";
import { LogView } from "../../parts/log-view.tsx";
import { State } from "../../parts/state.tsx";
import { Attempts } from "./attempts.tsx";
import { TaskActions } from "./task-actions.tsx";

/** A task: what it is, why it is as it is, its attempts, and what it wrote. */

const STREAMS = ["stdout", "stderr"] as const;

const TaskFacts = ({ task }: { task: TaskView }) => (
  <Facts
    of={[
      ["command", <code>{commandText(task.command)}</code>],
      ["item", task.item === null ? undefined : <code>{task.item}</code>],
      ["directory", <code>{task.cwd}</code>],
      [
        "asks for",
        Object.entries(task.resources)
          .map(([name, value]) => `${name} ${amount(name, value)}`)
          .join(", "),
      ],
      ["ranks", task.ranks == null ? undefined : `${task.ranks.count} on ${task.ranks.places.length} nodes`],
      [
        "used",
        [
          task.wall == null ? "" : duration(task.wall),
          task.cpu == null ? "" : `${duration(task.cpu.user + task.cpu.system)} of CPU time`,
          task.peakMemory === null ? "" : `${bytes(task.peakMemory.bytes)} of memory at most`,
          task.io == null ? "" : `${bytes(task.io.readBytes)} read, ${bytes(task.io.writtenBytes)} written`,
        ]
          .filter((part) => part !== "")
          .join(", "),
      ],
      ["exit", task.signal ?? task.exitCode],
      ["reason", task.reason],
      ["stdout goes to", task.stdout === null ? undefined : <code>{task.stdout}</code>],
      ["stderr goes to", task.stderr === null ? undefined : <code>{task.stderr}</code>],
      [
        "job",
        task.job == null ? undefined : (
          <>
            <a href={to("jobs", task.id)}>{task.job.nativeId ?? task.job.name}</a> on {task.job.cluster}/
            {task.job.queue}
            {task.job.says !== null && `: ${task.job.says}`}
          </>
        ),
      ],
      [
        "output lost",
        task.outputLost === null ? undefined : `${bytes(task.outputLost.bytes)}: ${task.outputLost.reason}`,
      ],
    ]}
  />
);

const Output = ({ run, task }: { run: number; task: TaskView }) => {
  const last = task.attempts.at(-1)?.n;
  const [stream, setStream] = useState<(typeof STREAMS)[number]>("stdout");
  const [chosen, choose] = useState<number | undefined>(undefined);
  const attempt = chosen ?? last;
  const follow = !isFinal(task.state) && attempt === last;
  const output = useOutput(
    `${task.id} ${stream} ${attempt}`,
    taskPieces(run, task.index, stream, chosen, follow),
    follow,
  );
  return (
    <Card
      title="Output"
      end={
        <div class="row">
          {follow && output.state !== "ended" && (
            <span class="state" data-state="running">
              follows
            </span>
          )}
          {task.attempts.length > 1 && (
            <select
              aria-label="Attempt"
              value={String(attempt)}
              onChange={(event) => choose(Number(event.currentTarget.value))}
            >
              {task.attempts.map(({ n }) => (
                <option key={n} value={String(n)}>
                  attempt {n}
                </option>
              ))}
            </select>
          )}
          <Segments label="Stream" options={STREAMS} value={stream} onChange={setStream} />
        </div>
      }
    >
      <LogView label={`${stream} of task ${task.id}`} output={output} />
    </Card>
  );
};

export const Task = ({ run, index }: { run: number; index: number }) => {
  const [ended, setEnded] = useState(false);
  const loaded = useFetched<TaskView>(`runs/${run}/tasks/${index}`, ended ? 10_000 : 1500);
  const why = useFetched<WhyView>(
    loaded.value === undefined || loaded.value.state === "DONE" ? undefined : `runs/${run}/tasks/${index}/why`,
    ended ? undefined : 5000,
  );
  if (loaded.value !== undefined && isFinal(loaded.value.state) !== ended) setEnded(!ended);
  return (
    <Loaded from={loaded}>
      {(task) => (
        <div class="stack">
          <div class="row spread">
            <div class="row">
              <h1>
                <span class="dim">
                  <a href={to("runs", run)}>Run {run}</a> · Task {task.id}
                </span>{" "}
                {task.name}
              </h1>
              <State of={task.state} />
            </div>
            <TaskActions run={run} task={task} onDone={loaded.again} />
          </div>
          {why.value !== undefined && <Why why={why.value} bad={task.state === "FAILED"} />}
          <section class="card" aria-label="About the task">
            <div class="pad">
              <TaskFacts task={task} />
            </div>
          </section>
          <Attempts task={task} />
          <Output run={run} task={task} />
        </div>
      )}
    </Loaded>
  );
};
