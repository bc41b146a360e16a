import type { JobDetail, PilotDetail, SaysView } from "../../api/job-details.ts";
import type { Service } from "../../api/service.ts";
import type { OtherJobView } from "../../api/job-schemas.ts";
import { attemptsOf } from "../../core/past-attempts.ts";
import { fromUnits } from "../../core/resources.ts";
import { type Run, groupOf, shapeOfRow } from "../../core/run.ts";
import type { Pilot } from "../../core/state.ts";
import { isFinalPilot } from "../../core/states.ts";
import { agentOf } from "../../core/task-job.ts";
import { SlipwayError } from "../../errors.ts";
import type { Waiting } from "../../managers/waiting-words.ts";
import { readOutput } from "../../pilots/pilot-output.ts";
import { staysOf } from "../../views/stays.ts";
import { type Carrier, carriersOf, nativeIdOf } from "../../views/task-jobs.ts";
import { expandView, isoTime, taskName } from "../../views/views.ts";
import type { ServiceContext } from "./context.ts";
import { readStart } from "./job-files.ts";
import { stateOfPilot } from "./job-service.ts";
import type { PilotService } from "./pilot-service.ts";
import { rowOfTask } from "./run-shelf.ts";

/** One pilot, and one job of a task, with all that is known of them. */

/** What a pilot of an earlier version's snapshot went through, as far as that is known. */
const cameOf = ({ stays, requested, active, ended, state }: Pilot): readonly (readonly [string, number])[] =>
  stays ?? [
    ["PMGR_LAUNCHING_PENDING", requested],
    ...(active > 0 ? [["PMGR_ACTIVE", active] as const] : []),
    ...(ended > 0 ? [[state, ended] as const] : []),
  ];

const saysOf = (waiting: Partial<Waiting> | null): SaysView => ({
  words: waiting?.words ?? waiting?.text ?? null,
  plain: waiting?.meaning ?? null,
  remedy: waiting?.remedy ?? null,
});

const some = (text: string): string | null => (text === "" ? null : text);

export const createDetailService = (
  context: ServiceContext,
  { pilotView }: Pick<PilotService, "pilotView">,
): Pick<Service, "pilot" | "job"> => {
  const { engine, pilots, taskJobs, shelf } = context;
  const { state, clock } = engine;

  const pilotDetail = async (id: number): Promise<PilotDetail> => {
    const { pilot, view } = pilotView(id);
    const files = pilots.files(pilot);
    const isOver = isFinalPilot(pilot.state);
    const printed = files === undefined ? "" : await readOutput(files.directory, files.outputs);
    return {
      ...view,
      jobName: pilot.jobName,
      history: staysOf(cameOf(pilot), clock(), isOver),
      script: files === undefined ? null : await readStart(files.directory, "pilot.sh"),
      says: saysOf(isOver ? null : pilots.waiting(pilot.id)),
      outputTail: some(printed) ?? view.output,
      decision: pilot.why ?? null,
    };
  };

  /** In the words of launches. */
  const stateOfTask = (run: Run, { element }: Carrier): OtherJobView["state"] => {
    if (element.state !== "ended") return element.state === "spent" ? "running" : "pending";
    const last = attemptsOf(run, element.row).at(-1);
    return last?.exit === 0 ? "succeeded" : element.takenBack === true ? "cancelled" : "failed";
  };

  const taskDetail = async (id: string): Promise<JobDetail> => {
    const [runId, index] = id.split(".").map(Number) as [number, number];
    const run = await shelf.whole(runId);
    const row = rowOfTask(run, index);
    const carrier = carriersOf(state.taskJobs.values(), run.id).get(row);
    if (carrier === undefined) throw new SlipwayError("no-such-job", { job: id });
    const { job, element, at } = carrier;
    const directory = taskJobs.directory(job);
    const last = attemptsOf(run, row).at(-1);
    const mine = last !== undefined && last.agent === element.agent && element.agent !== 0 ? last : undefined;
    const agent = mine === undefined ? undefined : agentOf(state, run, mine.agent);
    const isOver = element.state === "ended";
    const group = groupOf(run.groups, row);
    const { resources, ranks } = shapeOfRow(group, row);
    const jobState = stateOfTask(run, carrier);
    const came: [string, number][] = [["pending", job.requested]];
    if (mine !== undefined) came.push(["running", mine.started || mine.assigned]);
    if (isOver && mine !== undefined && mine.finished > 0) came.push([jobState, mine.finished]);
    return {
      kind: "task",
      id,
      name: taskName(run, row),
      state: jobState,
      cluster: job.cluster,
      queue: job.queue,
      nativeId: nativeIdOf(carrier),
      reason: some(element.reason),
      submitted: isoTime(job.requested),
      started: isoTime(mine?.started ?? 0),
      finished: isoTime(isOver ? (mine?.finished ?? 0) : 0),
      hosts: agent === undefined ? [] : [agent.host],
      exitCode: mine === undefined || mine.exit < 0 ? null : mine.exit,
      command: expandView(run, row).command,
      spec: Object.fromEntries([
        ...Object.entries(resources).map(([name, units]) => [name, fromUnits(name, units)]),
        ...(ranks === undefined ? [] : [["ranks", ranks.count]]),
        ...Object.entries(group.spec.job?.keys ?? {}),
      ]) as Record<string, unknown>,
      ranks: ranks === undefined ? [] : [{ host: agent?.host ?? null, ranks: ranks.count }],
      directory,
      jobName: job.jobName,
      history: staysOf(came, clock(), isOver),
      script: await readStart(directory, "job.sh"),
      says: saysOf(isOver ? null : taskJobs.waiting(job.id, at)),
      outputTail: some(await readOutput(directory, ["stdout", "stderr", "agent.log"])),
      decision: `a job of its own (via: job): ${job.elements.length === 1 ? "1 task" : `${job.elements.length} tasks in one array`}`,
    };
  };

  const pilotJob = async (id: number): Promise<JobDetail> => {
    const detail = await pilotDetail(id);
    const { cluster, queue, nativeId, reason, requested, active, ended, agents, jobName } = detail;
    const { history, script, says, outputTail, decision } = detail;
    return {
      kind: "pilot",
      id: `pilot ${id}`,
      name: jobName,
      state: stateOfPilot(detail.state),
      cluster,
      queue,
      nativeId,
      reason,
      submitted: requested,
      started: active,
      finished: ended,
      hosts: agents.map(({ host }) => host),
      exitCode: null,
      command: null,
      spec: {},
      ranks: [],
      directory: pilots.files(state.pilots.get(id)!)?.directory ?? null,
      jobName,
      history,
      script,
      says,
      outputTail,
      decision,
    };
  };

  return {
    pilot: pilotDetail,
    job: (id) => (id.startsWith("pilot ") ? pilotJob(Number(id.slice("pilot ".length))) : taskDetail(id)),
  };
};
