import { setTimeout as sleep } from "node:timers/promises";
import type { CheckView, PilotView } from "../api/schemas.ts";
import type { Client } from "../client/index.ts";
import { SlipwayError } from "../errors.ts";
import { resourcesText } from "./render/task.ts";
import { duration } from "./render/text.ts";

/** The round trip of one pilot: requested, started by its manager, its agents connected, and cancelled again. */

type Check = CheckView["checks"][number];

const LOOK_MS = 500;

export const probeQueue = async (
  client: Client,
  cluster: string,
  queue: string,
  timeoutSeconds: number,
): Promise<Check> => {
  const said = (ok: boolean, detail: string, remedy: string | null = null): Check => ({
    what: "probe",
    queue,
    ok,
    detail,
    remedy,
  });
  const begun = performance.now();
  let pilot: PilotView;
  try {
    [pilot] = (await client.addPilots({ cluster, queue, count: 1 })) as [PilotView];
  } catch (error) {
    if (!(error instanceof SlipwayError)) throw error;
    const remedy =
      "`slipway status` says which clusters the server has, and why it did not take over a newer clusters.yaml.";
    return said(false, error.message, remedy);
  }
  const { id } = pilot;
  let agents = 0;
  for (;;) {
    const found = (await client.pilots()).find((each) => each.id === id);
    const seconds = (performance.now() - begun) / 1000;
    const [agent] = found?.agents ?? [];
    if (agent !== undefined) {
      // those of the other nodes are on their way
      if (found!.agents.length > agents) {
        agents = found!.agents.length;
        await sleep(LOOK_MS);
        continue;
      }
      await client.cancelPilot(Number(id), { reason: "it was only a probe" });
      const where = found!.agents.map(({ host }) => host).join(", ");
      return said(true, `${where}: ${resourcesText(agent.resources)}; connected after ${duration(seconds)}`);
    }
    if (found === undefined || found.ended !== null)
      return said(
        false,
        `pilot ${id} ended without an agent: ${found?.reason ?? "for an unknown reason"}`,
        `\`slipway why pilot ${id}\` shows what it printed.`,
      );
    if (seconds > timeoutSeconds) {
      await client.cancelPilot(Number(id), { reason: "the probe took too long" });
      const waits = found.nativeId === null ? "has not been submitted" : `waits as job ${found.nativeId}`;
      return said(
        false,
        `after ${duration(seconds)} pilot ${id} still ${waits}${found.reason === null ? "" : `: ${found.reason}`}`,
        `\`slipway why pilot ${id}\` says what it waits for; --timeout waits longer.`,
      );
    }
    await sleep(LOOK_MS);
  }
};
