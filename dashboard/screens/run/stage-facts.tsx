import type { RunView } from "../../../src/api/schemas.ts";
import type { StageView } from "../../../src/api/stages.ts";
import { to } from "../../data/route.ts";
import { count } from "../../format/numbers.ts";
import { duration } from "../../format/time.ts";
import { Facts } from "../../parts/blocks.tsx";

/** What is known of a stage beside its counts. */
export const StageFacts = ({ run, stage }: { run: RunView; stage: StageView }) => (
  <Facts
    of={[
      [
        "tasks",
        stage.first === stage.last ? (
          <a href={to("runs", run.id, "task", stage.first)}>
            {run.id}.{stage.first}
          </a>
        ) : (
          <>
            {count(stage.total)}, <a href={to("runs", run.id, "task", stage.first)}>{`${run.id}.${stage.first}`}</a> to{" "}
            <a href={to("runs", run.id, "task", stage.last)}>{`${run.id}.${stage.last}`}</a>
          </>
        ),
      ],
      ["groups", stage.groups > 1 ? count(stage.groups) : undefined],
      ["took, in the middle", stage.seconds.p50 === null ? undefined : duration(stage.seconds.p50)],
      ["expected of the next", stage.seconds.expected === null ? undefined : duration(stage.seconds.expected)],
    ]}
  />
);
