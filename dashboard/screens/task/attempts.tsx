import type { AttemptView, TaskView } from "../../../src/api/schemas.ts";
import { now } from "../../data/clock.ts";
import { to } from "../../data/route.ts";
import { bytes, plural } from "../../format/numbers.ts";
import { duration, exact, moment, secondsBetween } from "../../format/time.ts";
import { Card, Empty } from "../../parts/blocks.tsx";
import { State } from "../../parts/state.tsx";

/** Each time a task was started: where, how long, what it used, how it ended. */

const took = ({ wall, started, finished }: AttemptView): number | undefined =>
  wall ?? secondsBetween(started, finished ?? now.value);

export const Attempts = ({ task }: { task: TaskView }) => (
  <Card title="Attempts" id="attempts">
    {task.attempts.length === 0 ? (
      <Empty>Not started yet.</Empty>
    ) : (
      <div class="table-scroll" tabIndex={0} role="region" aria-labelledby="attempts">
        <table class="plain">
          <thead>
            <tr>
              <th class="num">No.</th>
              <th>State</th>
              <th>Exit</th>
              <th>Where</th>
              <th class="num">Started</th>
              <th class="num">Took</th>
              <th class="num">CPU time</th>
              <th class="num">Peak memory</th>
              <th>Reason</th>
            </tr>
          </thead>
          <tbody>
            {task.attempts.map((attempt) => (
              <tr key={attempt.n}>
                <td class="num">{attempt.n}</td>
                <td>
                  <State of={attempt.state} />
                </td>
                <td>{attempt.signal ?? attempt.exitCode ?? ""}</td>
                <td>
                  {attempt.host ?? ""}{" "}
                  {attempt.pilot !== null && <a href={to("pilots", attempt.pilot)}>pilot {attempt.pilot}</a>}
                  {attempt.job != null && <span class="dim">job {attempt.job}</span>}
                </td>
                <td class="num" title={exact(attempt.started)}>
                  {moment(attempt.started, now.value)}
                </td>
                <td class="num">{duration(took(attempt))}</td>
                <td class="num">{attempt.cpu == null ? "–" : duration(attempt.cpu.user + attempt.cpu.system)}</td>
                <td class="num" title={attempt.mem === null ? undefined : `of ${bytes(attempt.mem)}`}>
                  {bytes(attempt.peakMemory?.bytes)}
                </td>
                <td>{attempt.lost ? `lost: ${attempt.reason ?? ""}` : (attempt.reason ?? "")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    )}
    {task.attemptsDropped > 0 && <p class="pad dim">{plural(task.attemptsDropped, "other attempt")} are not kept.</p>}
  </Card>
);
