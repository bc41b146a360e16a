import type { JobView } from "../../api/job-schemas.ts";
import { stateColumn, type Style } from "./style.ts";
import { table } from "./table.ts";
import { duration, secondsBetween } from "./text.ts";

const ageOf = ({ since }: JobView, now: number): string => {
  const seconds = secondsBetween(since, now);
  return seconds === undefined ? "-" : duration(seconds);
};

/** Everything that managers have of a home. */
export const jobsTable = (jobs: readonly JobView[], style: Style, now: number, width?: number): string =>
  table(
    jobs,
    [
      { title: "KIND", value: (job) => job.kind },
      { title: "ID", value: (job) => String(job.id) },
      { title: "NAME", value: (job) => (job.kind === "pilot" ? "-" : job.name), shrinksTo: 10 },
      stateColumn(style),
      { title: "SINCE", drops: 2, value: (job) => ageOf(job, now), right: true },
      { title: "CLUSTER", drops: 1, value: (job) => job.cluster, shrinksTo: 8 },
      { title: "QUEUE", drops: 3, value: (job) => (job.kind === "launch" ? job.pool : job.queue) || "-", shrinksTo: 8 },
      { title: "JOB", value: (job) => job.nativeId ?? "-" },
      { title: "NAME THERE", drops: 4, value: (job) => job.jobName, shrinksTo: 12 },
      { title: "REASON", value: (job) => job.reason ?? "", shrinksTo: 12 },
    ],
    width,
  );
