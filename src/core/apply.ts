import { applyAssigned, applyEnded, applyLost, applyReturned, cancelAll } from "./attempts.ts";
import type {
  AgentJoined,
  Event,
  PilotChanged,
  PilotRequested,
  RunCanceled,
  RunCommitted,
  RunItems,
} from "./events.ts";
import { applyRanksEnded } from "./gangs.ts";
import { applyFailed } from "./given-up.ts";
import { PackedItems, evaluateItemResources } from "./items.ts";
import { applyRequests } from "./learned-amounts.ts";
import { cancelRows, cascade, openRun } from "./outcomes.ts";
import { applyLaunchChanged, applyLaunchRemoved, applyLaunchRequested } from "./launch.ts";
import { advancePilot } from "./moves.ts";
import type { RunSpec } from "./spec.ts";
import { applyRetried } from "./retry.ts";
import { hasMoved, newMoved } from "./moved.ts";
import { RowShapeColumns } from "./row-shapes.ts";
import { type GroupInput, createRun, groupOf, isFinishedRun } from "./run.ts";
import type { Apply, Effects, Pilot, State } from "./state.ts";
import { applySeen, applySkipped, skipRows } from "./skipped.ts";
import { applyTaskJobChanged, applyTaskJobRequested } from "./task-job.ts";
import { isFinalPilot } from "./states.ts";

/**
 * State is a fold over events: apply(state, event, effects). It reads no clock and does no I/O; the same events give
 * the same state, live or replayed. What must happen outside goes to `effects`.
 */
export const apply = (state: State, event: Event, effects: Effects): void => {
  switch (event.type) {
    case "server.started":
      state.epoch = event.epoch;
      state.lastStart =
        event.bootId === undefined ? null : { at: event.at, bootId: event.bootId, uptimeMs: event.uptimeMs ?? 0 };
      // submissions that the previous server had not committed never happened
      state.drafts.clear();
      return;
    case "run.opened":
      state.nextRun = Math.max(state.nextRun, event.run + 1);
      state.drafts.set(event.run, {
        opened: event,
        items: new Map(),
        rowShapes: new Map(),
        pairings: new Map(),
      });
      return;
    case "run.items":
      return applyItems(state, event, effects);
    case "run.committed":
      return applyCommitted(state, event, effects);
    case "run.canceled":
      return applyCanceled(state, event, effects);
    case "run.retried":
      return applyRetried(state, event, effects);
    case "run.requests":
      return applyRequests(state, event, effects);
    case "tasks.assigned":
      return applyAssigned(state, event, effects);
    case "tasks.returned":
      return applyReturned(state, event, effects);
    case "tasks.ended":
      return applyEnded(state, event, effects);
    case "ranks.ended":
      return applyRanksEnded(state, event, effects);
    case "tasks.failed":
      return applyFailed(state, event, effects);
    case "tasks.skipped":
      return applySkipped(state, event, effects);
    case "inputs.seen":
      return applySeen(state, event, effects);
    case "agent.joined":
      return applyJoined(state, event, effects);
    case "agents.lost":
      return applyLost(state, event, effects);
    case "losses.judged":
      state.undecided = 0;
      return;
    case "pilot.requested":
      return applyPilotRequested(state, event, effects);
    case "pilot.changed":
      return applyPilotChanged(state, event, effects);
    case "task-job.requested":
      return applyTaskJobRequested(state, event, effects);
    case "task-job.changed":
      return applyTaskJobChanged(state, event, effects);
    case "launch.requested":
      return applyLaunchRequested(state, event, effects);
    case "launch.changed":
      return applyLaunchChanged(state, event, effects);
    case "launch.removed":
      return applyLaunchRemoved(state, event, effects);
  }
};

const applyItems: Apply<RunItems> = (state, event) => {
  const draft = state.drafts.get(event.run);
  if (draft === undefined) return;
  let store = draft.items.get(event.group);
  if (store === undefined) {
    store = new PackedItems(event.json);
    draft.items.set(event.group, store);
  }
  const first = store.length;
  for (const item of event.items) store.add(item);
  const group = draft.opened.spec.groups[event.group];
  if (group?.itemResources === undefined) return;
  // as they come, not all at once when the last has come: that would keep everyone else waiting
  let rowShapes = draft.rowShapes.get(event.group);
  if (rowShapes === undefined) draft.rowShapes.set(event.group, (rowShapes = new RowShapeColumns(group)));
  for (let i = first; i < store.length; i += 1) rowShapes.push(evaluateItemResources(group, store, i));
};

const applyCommitted: Apply<RunCommitted> = (state, event, effects) => {
  const draft = state.drafts.get(event.run);
  if (draft === undefined) return;
  state.drafts.delete(event.run);
  const { uuid } = draft.opened;
  // the length of a list is known when its last item has come
  const spec: RunSpec = {
    ...draft.opened.spec,
    groups: draft.opened.spec.groups.map((group, index) =>
      group.items.kind === "list"
        ? { ...group, items: { kind: "list", count: draft.items.get(index)?.length ?? 0 } }
        : group,
    ),
  };
  const inputs = new Map<number, GroupInput>();
  for (const [index, group] of spec.groups.entries()) {
    const items = draft.items.get(index);
    if (items !== undefined)
      inputs.set(index, {
        items,
        rowShapes: group.itemResources === undefined ? undefined : draft.rowShapes.get(index),
      });
  }
  const run = createRun(event.run, uuid, spec, event.at, inputs, draft.pairings);
  run.digest = draft.opened.digest ?? "";
  state.runs.set(run.id, run);
  state.live.add(run);
  state.byUuid.set(uuid, run.id);
  if (event.skipped !== undefined) skipRows(state, run, event.skipped, event.at);
  openRun(state, run, event.at, effects);
};

const applyCanceled: Apply<RunCanceled> = (state, event, effects) => {
  const run = state.runs.get(event.run);
  if (run === undefined || isFinishedRun(run)) return;
  if (event.rows === undefined) return cancelAll(state, run, event.reason, event.at, effects);
  const moved = newMoved();
  for (const row of event.rows) {
    if (row >= run.total) continue;
    const group = groupOf(run.groups, row);
    cancelRows(state, run, group, row, row + 1, event.reason, 0, event.at, effects, moved);
  }
  if (hasMoved(moved)) cascade(state, run, moved, event.at, effects);
};

const applyJoined: Apply<AgentJoined> = (state, event) => {
  state.nextAgent = Math.max(state.nextAgent, event.agent + 1);
  state.agentByUuid.set(event.uuid, event.agent);
  state.agents.set(event.agent, {
    id: event.agent,
    uuid: event.uuid,
    pilot: event.pilot,
    ...(event.cluster === undefined ? {} : { cluster: event.cluster }),
    ...(event.queue === undefined ? {} : { queue: event.queue }),
    host: event.host,
    version: event.version,
    joined: event.at,
    resources: event.resources,
    output: event.output,
    ...(event.taskJob === undefined ? {} : { taskJob: event.taskJob }),
    seq: event.seq,
    ended: 0,
    reason: "",
  });
};

const applyPilotRequested: Apply<PilotRequested> = (state, event) => {
  state.nextPilot = Math.max(state.nextPilot, event.pilot + 1);
  state.pilots.set(event.pilot, {
    id: event.pilot,
    cluster: event.cluster,
    queue: event.queue,
    jobName: event.jobName,
    requested: event.at,
    state: "PMGR_LAUNCHING_PENDING",
    nativeId: "",
    reason: "",
    active: 0,
    ended: 0,
    ...(event.why === undefined ? {} : { why: event.why }),
    stays: [["PMGR_LAUNCHING_PENDING", event.at]],
  });
};

/** Only the last few outputs are kept: a queue that fails for weeks must not fill the memory. */
const MOST_OUTPUTS = 20;

const keepOutput = (state: State, pilot: Pilot, output: string): void => {
  pilot.output = output;
  const kept = [...state.pilots.values()].filter((each) => each.output !== undefined);
  for (const each of kept.slice(0, -MOST_OUTPUTS)) delete each.output;
};

const applyPilotChanged: Apply<PilotChanged> = (state, event) => {
  const pilot = state.pilots.get(event.pilot);
  if (pilot === undefined) return;
  if (event.nativeId !== undefined) pilot.nativeId = event.nativeId;
  if (event.reason !== undefined) pilot.reason = event.reason;
  if (event.output !== undefined) keepOutput(state, pilot, event.output);
  if (event.draining !== undefined) pilot.draining = event.draining;
  if (!advancePilot(pilot, event.state)) return;
  pilot.stays?.push([event.state, event.at]);
  if (event.state === "PMGR_ACTIVE") pilot.active = event.at;
  if (isFinalPilot(event.state)) pilot.ended = event.at;
};
