import type { z } from "zod";
import type { ValidateAnswer } from "../../../src/api/validate.ts";
import { amount, count, plural } from "../../format/numbers.ts";
import { commandText } from "../../format/text.ts";
import { duration } from "../../format/time.ts";
import { Card, Facts } from "../../parts/blocks.tsx";

/** What would run: group by group, where, with what, and the first commands. */

type PlanView = NonNullable<z.infer<typeof ValidateAnswer>["plan"]>;

const asksFor = ({ resources, formulas }: PlanView["groups"][number]): string =>
  [
    ...Object.entries(resources).map(([name, value]) => `${name} ${amount(name, value)}`),
    ...Object.entries(formulas).map(([name, text]) => `${name} ${text}`),
  ].join(", ");

export const Plan = ({ plan }: { plan: PlanView }) => (
  <>
    <div class="hint">
      <strong>Nothing is wrong.</strong>{" "}
      {plan.tasks === null
        ? "How many tasks it has is known when its items are read."
        : `${plan.name}: ${plural(plan.tasks, "task")}.`}
    </div>
    {plan.notices.map((notice) => (
      <div key={notice} class="hint">
        {notice}
      </div>
    ))}
    {plan.groups.map((group) => (
      <Card
        key={group.name}
        title={group.name}
        end={<span class="dim">{group.tasks === null ? "" : count(group.tasks)}</span>}
      >
        <div class="pad stack">
          <Facts
            of={[
              ["runs on", `${group.cluster} (${group.queues.join(", ")})${group.via === "job" ? ", a job each" : ""}`],
              ["after", group.after.join(", ")],
              ["asks for", asksFor(group)],
              ["ranks", group.ranks],
              ["time limit", group.timeLimit === null ? undefined : duration(group.timeLimit)],
            ]}
          />
          <pre>{group.first.map(({ command }) => commandText(command)).join("\n")}</pre>
        </div>
      </Card>
    ))}
  </>
);
