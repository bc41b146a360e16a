import type { LaunchView } from "../../api/launch-schemas.ts";
import type { OtherJobView } from "../../api/job-schemas.ts";
import type { NamedWhy, Service } from "../../api/service.ts";
import type { ClusterView, FleetView, PilotView, WhyView } from "../../api/schemas.ts";
import { suggest } from "../../config/nearest.ts";
import { SlipwayError } from "../../errors.ts";
import { waitingOf } from "../../managers/waiting-words.ts";
import { whyCluster, whyFleet, whyLaunch, whyPilot } from "../../views/why-others.ts";
import type { ServiceContext } from "./context.ts";

/**
 * `why` by whatever people call a thing: `3` is a run, `3.17` a task, `pilot 4`, `launch 2`, `job 1234`, `hpc/cpu` a
 * fleet, `hpc` a cluster. A kind before the name leaves no doubt; without one, a number is a run if there is such a run.
 */

export interface WhyNamesOptions {
  readonly context: ServiceContext;
  readonly why: Service["why"];
  readonly pilots: () => readonly PilotView[];
  readonly fleets: () => readonly FleetView[];
  readonly clusters: () => readonly ClusterView[];
  readonly jobs: Service["jobs"];
}

type Kind = NamedWhy["of"]["kind"];

interface Found {
  readonly kind: Kind;
  readonly id: string;
  readonly answer: () => WhyView | Promise<WhyView>;
}

const KINDS: readonly string[] = ["run", "task", "pilot", "launch", "job", "fleet", "cluster"] satisfies Kind[];

/** The answers about what a name may be. */
const createAnswers = (options: WhyNamesOptions) => {
  const { context } = options;
  const ofPilot = (pilot: PilotView): WhyView =>
    whyPilot(pilot, pilot.ended === null ? context.pilots.waiting(Number(pilot.id)) : null);
  const livePilots = ({ cluster, queue }: FleetView): PilotView[] =>
    options.pilots().filter((pilot) => pilot.ended === null && pilot.cluster === cluster && pilot.queue === queue);
  const ofFleet = (fleet: FleetView): WhyView => whyFleet(fleet, livePilots(fleet).map(ofPilot));
  const ofCluster = (cluster: ClusterView): WhyView =>
    whyCluster(
      cluster,
      options
        .fleets()
        .filter((fleet) => fleet.cluster === cluster.name)
        .map(ofFleet),
    );
  const ofLaunch = (launch: LaunchView): WhyView => {
    const { manager } = context.clusters.clusters.get(launch.cluster) ?? {};
    const waits = launch.state === "pending" && launch.managerState !== null;
    const status = {
      state: "queued" as const,
      raw: launch.managerState ?? "",
      ...(launch.reason === null ? {} : { reason: launch.reason }),
    };
    return whyLaunch(launch, waits ? waitingOf(manager, status) : null);
  };
  return { ofPilot, ofFleet, ofCluster, ofLaunch };
};

export const createWhyNames = (options: WhyNamesOptions): Service["whyNamed"] => {
  const { context } = options;
  const { state } = context.engine;
  const { ofPilot, ofFleet, ofCluster, ofLaunch } = createAnswers(options);

  const pilotFound = (pilot: PilotView): Found => ({ kind: "pilot", id: pilot.id, answer: () => ofPilot(pilot) });
  const launchFound = (launch: LaunchView): Found => ({
    kind: "launch",
    id: String(launch.id),
    answer: () => ofLaunch(launch),
  });
  const taskFound = (run: number, task: number): Found => ({
    kind: "task",
    id: `${run}.${task}`,
    answer: () => options.why(run, task),
  });

  const byNumber = (kind: "pilot" | "launch", name: string, launches: readonly LaunchView[]): Found[] =>
    kind === "pilot"
      ? options
          .pilots()
          .filter(({ id }) => id === name)
          .map(pilotFound)
      : launches.filter(({ id }) => String(id) === name).map(launchFound);

  /** A job by the manager's id of it, or by its name there. */
  const byJob = (name: string, launches: readonly LaunchView[], isAdmin: boolean): Found[] => {
    const isMeant = (job: Pick<OtherJobView, "nativeId" | "jobName">): boolean =>
      job.nativeId === name || job.jobName === name;
    const nativeOf = new Map([...state.pilots.values()].map((pilot) => [String(pilot.id), pilot]));
    const tasks = isAdmin ? options.jobs("task").filter(isMeant) : [];
    return [
      ...(isAdmin
        ? options
            .pilots()
            .filter((pilot) => isMeant({ nativeId: pilot.nativeId, jobName: nativeOf.get(pilot.id)?.jobName ?? "" }))
            .map(pilotFound)
        : []),
      ...tasks.map(({ id }) => taskFound(...(id.split(".").map(Number) as [number, number]))),
      ...launches.filter(isMeant).map(launchFound),
    ];
  };

  const fleetsNamed = (name: string): Found[] =>
    options
      .fleets()
      .filter(({ cluster, queue }) => `${cluster}/${queue}` === name || queue === name)
      .map((fleet) => ({ kind: "fleet", id: `${fleet.cluster}/${fleet.queue}`, answer: () => ofFleet(fleet) }));
  const clustersNamed = (name: string): Found[] =>
    options
      .clusters()
      .filter((cluster) => cluster.name === name)
      .map((cluster) => ({ kind: "cluster", id: name, answer: () => ofCluster(cluster) }));

  const runsNamed = (name: string): Found[] => {
    const [, run, task] = /^(\d{1,15})(?:\.(\d{1,15}))?$/.exec(name) ?? [];
    if (run === undefined) return [];
    if (task !== undefined) return [taskFound(Number(run), Number(task))];
    return context.shelf.has(Number(run))
      ? [{ kind: "run", id: run, answer: () => options.why(Number(run), undefined) }]
      : [];
  };

  const find = (kind: Kind | undefined, name: string, launches: readonly LaunchView[], isAdmin: boolean): Found[] => {
    const mine = (found: () => Found[]): Found[] => (isAdmin ? found() : []);
    switch (kind) {
      case "run":
      case "task":
        return mine(() => runsNamed(name));
      case "pilot":
        return mine(() => byNumber("pilot", name, launches));
      case "launch":
        return byNumber("launch", name, launches);
      case "job":
        return byJob(name, launches, isAdmin);
      case "fleet":
        return mine(() => fleetsNamed(name));
      case "cluster":
        return mine(() => clustersNamed(name));
      default: {
        const runs = mine(() => runsNamed(name));
        if (runs.length > 0) return runs;
        return [
          ...mine(() => [...clustersNamed(name), ...fleetsNamed(name)]),
          ...(/^\d+$/.test(name)
            ? [...mine(() => byNumber("pilot", name, launches)), ...byNumber("launch", name, launches)]
            : []),
          ...byJob(name, launches, isAdmin),
        ];
      }
    }
  };

  const known = (): string[] => [
    ...options.clusters().map(({ name }) => name),
    ...options.fleets().map(({ cluster, queue }) => `${cluster}/${queue}`),
  ];

  return async (text, launches, isAdmin) => {
    const [, word = "", rest = ""] = /^\s*([a-z]+)\s+(\S.*?)\s*$/s.exec(text) ?? [];
    const kind = KINDS.includes(word) ? (word as Kind) : undefined;
    const name = kind === undefined ? text.trim() : rest;
    const found = find(kind, name, launches, isAdmin);
    const [first, ...more] = [...new Map(found.map((each) => [`${each.kind} ${each.id}`, each])).values()];
    if (first === undefined)
      throw new SlipwayError("no-such-thing", { name: text.trim(), suggestion: isAdmin ? suggest(name, known()) : "" });
    if (more.length > 0)
      throw new SlipwayError("ambiguous", {
        name: text.trim(),
        meanings: [first, ...more]
          .slice(0, 8)
          .map((each) => `${each.kind} ${each.id}`)
          .join(", "),
        example: `${first.kind} ${first.id}`,
      });
    return { ...(await first.answer()), of: { kind: first.kind, id: first.id } };
  };
};
