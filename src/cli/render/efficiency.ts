import type { EfficiencyView } from "../../api/schemas.ts";
import { formatDuration, formatSize } from "../../core/quantities.ts";
import { type Column, table } from "./table.ts";
import { count } from "./text.ts";

type Group = EfficiencyView["groups"][number];

const cores = (value: number | null): string => (value === null ? "-" : String(value));
const size = (value: number | null): string => (value === null ? "-" : formatSize(value));
/** As it could be written in a file, to the tenth of a second. */
const time = (value: number | null): string => (value === null ? "-" : formatDuration(Math.round(value * 10) / 10));

/** `1.9 of 4`. */
const compared = (
  title: string,
  key: "cores" | "memory" | "time",
  text: (value: number | null) => string,
): Column<Group>[] => [
  { title, value: ({ [key]: { requested, used } }) => `${text(used)} of ${text(requested)}`, right: true },
  { title: "ENOUGH", value: ({ [key]: { enough } }) => text(enough), right: true },
];

const MOST_NAMES = 5;
/** `a, b and 3 more`. */
const namesOf = (groups: readonly Group[]): string => {
  const more = groups.length - MOST_NAMES;
  const names = groups.slice(0, MOST_NAMES).map(({ name }) => name);
  return `${names.join(", ")}${more > 0 ? ` and ${count(more)} more` : ""}`;
};

/** `show RUN --efficiency`. */
export const efficiencyScreen = ({ run, groups, groupsLeftOut }: EfficiencyView, width?: number): string => {
  const known = groups.filter(({ tasks }) => tasks > 0);
  const none = groups.filter(({ tasks }) => tasks === 0);
  if (known.length === 0) return `no task of run ${run} has ended well yet`;
  const hasRanks = known.some(({ ranks }) => ranks > 1);
  const columns: Column<Group>[] = [
    { title: "GROUP", value: ({ name }) => name, shrinksTo: 12 },
    { title: "TASKS", value: ({ tasks }) => count(tasks), right: true },
    ...(hasRanks ? [{ title: "RANKS", value: ({ ranks }: Group) => count(ranks), right: true }] : []),
    ...compared("CORES", "cores", cores),
    ...compared("MEMORY", "memory", size),
    ...compared("TIME", "time", time),
    ...(known.some(({ killed }) => killed > 0)
      ? [{ title: "KILLED", value: ({ killed }: Group) => count(killed), right: true }]
      : []),
  ];
  const notes = [
    "used of requested, in the mean of tasks that ended well; ENOUGH is the request that would have done for all of them",
    ...(hasRanks ? ["with ranks: CORES are those of all ranks together, MEMORY and ENOUGH are for each rank"] : []),
    ...(none.length > 0 ? [`no task has ended well of ${namesOf(none)}`] : []),
    ...(groupsLeftOut > 0 ? [`${count(groupsLeftOut)} more groups are not shown`] : []),
  ];
  return [table(known, columns, width), "", ...notes].join("\n");
};
