import type { ClusterView, FleetView, PilotView, ServerView, StatusView } from "../../api/schemas.ts";
import type { TaskJobsView } from "../../api/job-schemas.ts";
import { stateWord } from "../../core/state-words.ts";
import { clustersFileNote } from "./reload.ts";
import { runsTable } from "./runs.ts";
import { stateColored, type Style } from "./style.ts";
import { facts, table } from "./table.ts";
import { resourcesText } from "./task.ts";
import { count, duration, localTime, printable, secondsBetween } from "./text.ts";
import { wrapFleets } from "./wraps.ts";

export const pilotsTable = (pilots: readonly PilotView[], style: Style, now: number, width?: number): string =>
  table(
    pilots,
    [
      { title: "PILOT", value: (pilot) => pilot.id },
      { title: "CLUSTER", value: (pilot) => pilot.cluster, shrinksTo: 10 },
      { title: "QUEUE", value: (pilot) => pilot.queue, shrinksTo: 8 },
      {
        title: "STATE",
        value: (pilot) => `${stateWord(pilot.state)}${pilot.draining && pilot.ended === null ? " draining" : ""}`,
        paint: (text, pilot) => text.replace(stateWord(pilot.state), stateColored(pilot.state, style)),
      },
      { title: "JOB", drops: 4, value: (pilot) => pilot.nativeId ?? "-" },
      { title: "AGENTS", drops: 5, value: (pilot) => String(pilot.agents.length), right: true },
      {
        title: "RUNNING",
        drops: 1,
        value: (pilot) => count(pilot.agents.reduce((sum, agent) => sum + agent.running, 0)),
        right: true,
      },
      {
        title: "AGE",
        drops: 2,
        value: (pilot) => {
          const seconds = secondsBetween(pilot.active ?? pilot.requested, pilot.ended ?? now);
          return seconds === undefined ? "-" : duration(seconds);
        },
        right: true,
      },
      {
        title: "LEFT",
        drops: 3,
        value: (pilot) => {
          if (pilot.ends === null || pilot.ended !== null) return "-";
          return duration(Math.max(0, (Date.parse(pilot.ends) - now) / 1000));
        },
        right: true,
      },
      { title: "REASON", value: (pilot) => pilot.waiting ?? pilot.reason ?? "", shrinksTo: 12 },
    ],
    width,
  );

const fleetsTable = (fleets: readonly FleetView[], width?: number): string =>
  table(
    fleets,
    [
      { title: "CLUSTER", value: (fleet) => fleet.cluster, shrinksTo: 10 },
      { title: "QUEUE", value: (fleet) => fleet.queue, shrinksTo: 8 },
      { title: "STRATEGY", drops: 3, value: (fleet) => fleet.strategy },
      { title: "PILOTS", value: (fleet) => String(fleet.pilots), right: true },
      { title: "ACTIVE", drops: 1, value: (fleet) => String(fleet.active), right: true },
      { title: "MAX", drops: 2, value: (fleet) => String(fleet.max), right: true },
      { title: "WAITING", value: (fleet) => count(fleet.waiting), right: true },
      { title: "PROBLEM", value: (fleet) => fleet.problem ?? fleet.failure ?? "", shrinksTo: 12 },
    ],
    width,
  );

/** Tasks that are jobs of their own, by queue. */
const taskJobsTable = (queues: readonly TaskJobsView[], width?: number): string =>
  table(
    queues,
    [
      { title: "TASKS AS JOBS", value: ({ cluster, queue }) => `${cluster}/${queue}`, shrinksTo: 13 },
      { title: "WAITING HERE", value: ({ waiting }) => count(waiting), right: true },
      { title: "QUEUED THERE", value: ({ queued }) => count(queued), right: true },
      { title: "RUNNING", value: ({ running }) => count(running), right: true },
      { title: "PROBLEM", value: ({ problem }) => problem ?? "", shrinksTo: 12 },
    ],
    width,
  );

/** Where the port is open, and why. */
export const listeningText = ({ host, reason }: NonNullable<ServerView["listens"]>): string => `${host}: ${reason}`;

export const statusScreen = (status: StatusView, style: Style, now: number, width?: number): string => {
  const { server } = status;
  const up = secondsBetween(server.started, now);
  const state = server.state === "running" ? style.green(server.state) : style.red(server.state);
  const sections = [
    facts(
      [
        ["server", `${state}${server.detail === null ? "" : ` (${printable(server.detail)})`}`],
        ["address", printable(server.url)],
        ["listens", server.listens && `on ${printable(listeningText(server.listens))}`],
        ["process", `${server.pid} on ${printable(server.host)}`],
        ["home", printable(server.home)],
        ["version", printable(server.version)],
        ["started", `${localTime(server.started)}${up === undefined ? "" : ` (${duration(up)} ago)`}`],
      ],
      width,
    ),
  ];
  const note = clustersFileNote(server, style);
  if (note !== undefined) sections.push(note);
  if (status.fleets.length > 0) sections.push(fleetsTable(status.fleets, width));
  if (status.taskJobs !== undefined && status.taskJobs.length > 0) sections.push(taskJobsTable(status.taskJobs, width));
  if (status.wraps !== undefined && status.wraps.length > 0) sections.push(wrapFleets(status.wraps, style, width));
  sections.push(status.pilots.length > 0 ? pilotsTable(status.pilots, style, now, width) : "no pilots");
  sections.push(status.runs.length > 0 ? runsTable(status.runs, style, now, width) : "no runs");
  return sections.join("\n\n");
};

export const clustersTable = (clusters: readonly ClusterView[], width?: number): string =>
  table(
    clusters,
    [
      { title: "CLUSTER", value: (cluster) => cluster.name, shrinksTo: 12 },
      { title: "TYPE", value: (cluster) => cluster.type },
      { title: "DEFAULT", drops: 1, value: (cluster) => (cluster.default ? "yes" : "") },
      { title: "QUEUES", value: (cluster) => cluster.queues.join(", "), shrinksTo: 12 },
      { title: "RESOURCES", value: (cluster) => resourcesText(cluster.resources), shrinksTo: 16 },
    ],
    width,
  );

export const clusterScreen = (cluster: ClusterView, style: Style): string =>
  [
    `${style.bold(printable(cluster.name))}  ${printable(cluster.type)}${cluster.default ? "  (default)" : ""}`,
    facts([
      ["queues", printable(cluster.queues.join(", ")) || "none"],
      ["resources", resourcesText(cluster.resources) || undefined],
      ["cannot be used", cluster.problem == null ? undefined : printable(cluster.problem.cause)],
    ]),
  ].join("\n");
