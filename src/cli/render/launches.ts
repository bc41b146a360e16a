import type { LaunchView } from "../../api/launch-schemas.ts";
import { formatSize } from "../../core/quantities.ts";
import { stateWord } from "../../core/state-words.ts";
import { stateColored, stateColumn, type Style } from "./style.ts";
import { facts, table } from "./table.ts";
import { duration, localTime, plural, printable, secondsBetween, commandLine } from "./text.ts";

const spent = (launch: LaunchView, now: number): string => {
  const seconds = secondsBetween(launch.started, launch.finished ?? now);
  return seconds === undefined ? "-" : duration(seconds);
};

/** One line: what it is and its state. */
export const launchSummary = (launch: LaunchView): string => {
  const job = launch.nativeId === null ? "" : `, job ${launch.nativeId} of ${launch.cluster}`;
  const why = launch.reason === null || launch.state === "running" ? "" : `: ${launch.reason}`;
  return printable(`launch ${launch.id} (${launch.name}) is ${stateWord(launch.state)}${job}${why}`);
};

export const launchesTable = (launches: readonly LaunchView[], style: Style, now: number, width?: number): string =>
  table(
    launches,
    [
      { title: "ID", value: (launch) => String(launch.id), right: true },
      { title: "NAME", value: (launch) => launch.name, shrinksTo: 10 },
      stateColumn(style),
      { title: "USER", drops: 3, value: (launch) => launch.user, shrinksTo: 8 },
      { title: "CLUSTER", drops: 1, value: (launch) => launch.cluster, shrinksTo: 8 },
      { title: "POOL", drops: 2, value: (launch) => launch.pool || "-", shrinksTo: 8 },
      { title: "JOB", value: (launch) => launch.nativeId ?? "-" },
      { title: "SLOTS", drops: 4, value: (launch) => String(launch.slots), right: true },
      { title: "TIME", value: (launch) => spent(launch, now), right: true },
      { title: "REASON", value: (launch) => launch.reason ?? "", shrinksTo: 12 },
    ],
    width,
  );

const indented = (text: string): string =>
  text
    .split("\n")
    .map((line) => `  ${printable(line)}`)
    .join("\n");

export const launchScreen = (launch: LaunchView, style: Style, now: number): string => {
  const { output } = launch;
  const given = (text: string | null): string | undefined =>
    text === null || text === "" ? undefined : printable(text);
  const sections = [
    `${style.bold(`launch ${launch.id}`)}  ${printable(launch.name)}  ${stateColored(launch.state, style)}`,
    facts([
      ["command", printable(commandLine(launch.command))],
      ["image", given(launch.image)],
      ["user", printable(launch.user)],
      ["cluster", printable(launch.cluster)],
      ["pool", given(launch.pool)],
      ["size", `${plural(launch.slots, "slot")}, at most ${plural(launch.nodes, "node")}`],
      ["notes", given(launch.notes.join("; "))],
      ["job", given(launch.nativeId === null ? null : `${launch.nativeId} (${launch.jobName})`)],
      ["manager says", given(launch.managerState)],
      ["reason", given(launch.reason)],
      ["hosts", given(launch.hosts.join(", "))],
      ["exit code", launch.exitCode === null ? undefined : String(launch.exitCode)],
      ["signal", launch.signal === null || launch.signal === 0 ? undefined : String(launch.signal)],
      ["cancelled by", given(launch.cancelledBy)],
      ["submitted", localTime(launch.submitted)],
      ["started", launch.started === null ? undefined : localTime(launch.started)],
      ["finished", launch.finished === null ? undefined : `${localTime(launch.finished)} (${spent(launch, now)})`],
      ["directory", given(launch.directory)],
      ["output", `${formatSize(output.stdout)}, errors ${formatSize(output.stderr)}${output.live ? ", live" : ""}`],
    ]),
  ];
  if (launch.errorLog !== null) sections.push(`from its error log:\n${indented(launch.errorLog)}`);
  return sections.join("\n\n");
};
