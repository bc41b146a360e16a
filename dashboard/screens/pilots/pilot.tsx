import type { PilotDetail } from "../../../src/api/job-details.ts";
import type { AgentView, PilotView } from "../../../src/api/schemas.ts";
import { send } from "../../data/api.ts";
import { now } from "../../data/clock.ts";
import { useFetched } from "../../data/fetched.ts";
import { role } from "../../data/session.ts";
import { to } from "../../data/route.ts";
import { amount, count } from "../../format/numbers.ts";
import { isFinal } from "../../format/progress.ts";
import { exact, left } from "../../format/time.ts";
import { Card, Empty, Facts, Loaded } from "../../parts/blocks.tsx";
import { confirm } from "../../parts/confirm.tsx";
import { JobParts } from "../../parts/job-parts.tsx";
import { say, sayError } from "../../parts/said.tsx";
import { State } from "../../parts/state.tsx";

/** One pilot: where it stands, why it was asked for, its agents, its script and output. */

const Agents = ({ of }: { of: readonly AgentView[] }) => (
  <Card title="Agents" id="agents">
    {of.length === 0 ? (
      <Empty>None connected.</Empty>
    ) : (
      <div class="table-scroll" tabIndex={0} role="region" aria-labelledby="agents">
        <table class="plain">
          <thead>
            <tr>
              <th>Host</th>
              <th>State</th>
              <th class="num">Running</th>
              <th class="num">Backlog</th>
              <th>Has</th>
            </tr>
          </thead>
          <tbody>
            {of.map((agent) => (
              <tr key={agent.id}>
                <td>{agent.host}</td>
                <td>{agent.state}</td>
                <td class="num">{count(agent.running)}</td>
                <td class="num">{count(agent.queued)}</td>
                <td>
                  {Object.entries(agent.resources)
                    .map(([name, value]) => `${name} ${amount(name, value)}`)
                    .join(", ")}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    )}
  </Card>
);

const act = async (pilot: PilotView, verb: "drain" | "cancel", again: () => void): Promise<void> => {
  const yes = await confirm({
    title: verb === "drain" ? `Drain pilot ${pilot.id}?` : `Cancel pilot ${pilot.id}?`,
    body:
      verb === "drain"
        ? "It takes no new tasks and ends when it is empty."
        : "It ends now. Its tasks run again elsewhere, at no cost to their retries.",
    yes: verb === "drain" ? "Drain it" : "Cancel the pilot",
    danger: verb === "cancel",
  });
  if (!yes) return;
  await send("POST", `pilots/${pilot.id}/${verb}`, {
    reason: `${verb === "drain" ? "drained" : "cancelled"} from the page`,
  });
  say(verb === "drain" ? `Pilot ${pilot.id} drains.` : `Pilot ${pilot.id} is being cancelled.`);
  again();
};

export const Pilot = ({ id }: { id: number }) => {
  const loaded = useFetched<PilotDetail>(`pilots/${id}`, 3000);
  return (
    <Loaded from={loaded}>
      {(pilot) => (
        <div class="stack">
          <div class="row spread">
            <div class="row">
              <h1>Pilot {pilot.id}</h1>
              <State of={pilot.state} {...(pilot.draining ? { note: "(draining)" } : {})} />
            </div>
            {!isFinal(pilot.state) && role.value !== "read" && role.value !== "submit" && (
              <div class="row">
                {!pilot.draining && (
                  <button
                    type="button"
                    class="button"
                    onClick={() => void act(pilot, "drain", loaded.again).catch(sayError)}
                  >
                    Drain
                  </button>
                )}
                <button
                  type="button"
                  class="button danger"
                  onClick={() => void act(pilot, "cancel", loaded.again).catch(sayError)}
                >
                  Cancel
                </button>
              </div>
            )}
          </div>
          <section class="card" aria-label="About the pilot">
            <div class="pad">
              <Facts
                of={[
                  ["fleet", <a href={to("clusters", pilot.cluster)}>{`${pilot.cluster}/${pilot.queue}`}</a>],
                  ["job", pilot.nativeId === null ? undefined : <code>{pilot.nativeId}</code>],
                  ["its name there", <code>{pilot.jobName}</code>],
                  [
                    "ends in",
                    isFinal(pilot.state) || pilot.ends === null ? undefined : (
                      <span title={exact(pilot.ends)}>{left(pilot.ends, now.value)}</span>
                    ),
                  ],
                  ["reason", pilot.reason],
                  ["waits", pilot.waiting],
                ]}
              />
            </div>
          </section>
          <JobParts of={pilot} />
          <Agents of={pilot.agents} />
        </div>
      )}
    </Loaded>
  );
};
