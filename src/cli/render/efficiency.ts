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

/** `show RUN --efficiency`. */
export const efficiencyScreen = ({ run, groups }: EfficiencyView, width?: number): string => {
  const known = groups.filter(({ tasks }) => tasks > 0);
  if (known.length === 0) return `no task of run ${run} has ended well yet`;
  const columns: Column<Group>[] = [
    { title: "GROUP", value: ({ name }) => name, shrinksTo: 12 },
    { title: "TASKS", value: ({ tasks }) => count(tasks), right: true },
    ...(known.some(({ ranks }) => ranks > 1)
      ? [{ title: "RANKS", value: ({ ranks }: Group) => count(ranks), right: true }]
      : []),
    ...compared("CORES", "cores", cores),
    ...compared("MEMORY", "memory", size),
    ...compared("TIME", "time", time),
    ...(known.some(({ killed }) => killed > 0)
      ? [{ title: "KILLED", value: ({ killed }: Group) => count(killed), right: true }]
      : []),
  ];
  return [
    table(known, columns, width),
    "",
    "used of requested, in the mean of tasks that ended well; ENOUGH is the request that would have done for all of them",
  ].join("\n");
};
