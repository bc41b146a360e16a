import type { Calls } from "../../calls.ts";
import { chunksOf } from "../../chunks.ts";
import { isOarAnswer, type OarJob, parseOarstat } from "./parse.ts";

/** What OAR is asked: its database has living and ended jobs alike. */
export interface OarAnswers {
  /** Those of these jobs that it knows, and those that it started in their place. */
  find(ids: readonly string[]): Promise<readonly OarJob[]>;
  living(namePrefix: string): Promise<readonly OarJob[]>;
}

const LIVING = ["Waiting", "Hold", "toLaunch", "toError", "toAckReservation", "Launching", "Running"].concat([
  "Suspended",
  "Resuming",
  "Finishing",
]);

/** As many as a command line takes. */
const MOST_IDS = 5000;

export const createOarAnswers = ({ call, unreachable }: Calls): OarAnswers => {
  const jobsWhere = async (condition: string): Promise<OarJob[]> => {
    const result = await call("oarstat", ["-J", "-f", "--sql", condition]);
    const { code, stdout, stderr } = result;
    // no jobs is not an error, but an error must not pass for no jobs
    if (code !== 0 || !isOarAnswer(stdout) || (stdout.trim() === "" && stderr.trim() !== "")) throw unreachable(result);
    return parseOarstat(stdout);
  };

  return {
    find: async (ids) => {
      const jobs: OarJob[] = [];
      for (const chunk of chunksOf(ids, { ids: MOST_IDS })) {
        const some = chunk.join(",");
        jobs.push(...(await jobsWhere(`job_id IN (${some}) OR resubmit_job_id IN (${some})`)));
      }
      return jobs;
    },

    living: async (namePrefix) => {
      const living = `state IN (${LIVING.map((state) => `'${state}'`).join(",")})`;
      // other characters have a meaning of their own to the database
      const named = /^[\w.-]+$/.test(namePrefix) ? ` AND job_name LIKE '${namePrefix.replaceAll("_", "\\_")}%'` : "";
      const jobs = await jobsWhere(living + named);
      return jobs.filter(({ name }) => name.startsWith(namePrefix));
    },
  };
};
