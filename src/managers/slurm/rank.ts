import type { RankDialect } from "../../launch/plan/rank-scripts.ts";

/** srun starts a rank with the environment of the job, and ends all of them. */
export const SLURM_RANK: RankDialect = {
  number: "rank=${SLURM_PROCID:-0}",
  environment: [],
  variables: [],
  functions: [],
  start: [],
  leave: [],
  ended: [
    "# the first to fail says how the job ended: srun would tell of those that are ended for it",
    'if [ "$status" -ne 0 ] && [ -z "$ending" ]; then',
    '  (set -C && printf \'%s\\n\' "$status" >"$job/failed") 2>/dev/null',
    "fi",
  ],
};
