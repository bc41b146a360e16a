import { spawnSync } from "node:child_process";
import { mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { until } from "../../until.ts";
import { killClient } from "../clients.ts";
import type { World } from "../world.ts";
import { type Play, type Scenario, expect, fleetOf } from "./scenario.ts";

/** A disk that is full, and then has room again. */

const mayMount = (): boolean => process.getuid?.() === 0 && spawnSync("unshare", ["-m", "true"]).status === 0;

const fillUp = async (world: World): Promise<void> => {
  const filler = await open(join(world.home, "journal", "filler"), "a");
  for (const size of [65_536, 512]) {
    const block = Buffer.alloc(size);
    while ((await filler.write(block).catch(() => undefined)) !== undefined);
  }
  await filler.close();
};

/** Fills it up until the server says so. */
const untilFull = async ({ world, driven }: Play): Promise<void> => {
  await fillUp(world);
  await until("the server to notice", async () => {
    const { state } = await world.client.server();
    if (state === "journal-full") return true;
    // the journal has prepared room for some hundred kilobytes, and then uses its reserve: fill up what it releases, too
    driven.bulks.push(await killClient(world, `bulk-${driven.bulks.length + 1}`, 20_000, 300));
    await fillUp(world);
    return undefined;
  });
};

const makeRoom = (world: World): Promise<void> => rm(join(world.home, "journal", "filler"));

export const diskScenarios: readonly Scenario[] = [
  {
    name: "the journal's disk is full and has room again: nothing is lost, nothing runs twice",
    absent: () => (mayMount() ? undefined : "needs root, to mount a small tmpfs"),
    run: async (stage) => {
      const play = await stage.open({ clusters: fleetOf(2) });
      const { world } = play;
      await mkdir(join(world.home, "journal"), { mode: 0o700 });
      const { status } = spawnSync("mount", ["-t", "tmpfs", "-o", "size=4m", "tmpfs", join(world.home, "journal")]);
      expect(status === 0, "the small tmpfs was not mounted");
      try {
        await world.up();
        await play.submit({ tasks: 300, ms: 10 });
        await until("the work to begin", async () => (await world.executions()) > 10);
        await untilFull(play);
        const refused = await world.cli(["submit", "--", "true"]);
        expect(
          refused.status === 3 && /nothing was submitted/.test(refused.stderr),
          `a submit on a full disk: ${refused.status}: ${refused.stderr}`,
        );
        // it still answers questions
        expect((await world.cli(["status"])).status === 0, "status fails on a full disk");
        await makeRoom(world);
        await play.settle();
        // killed while full, started while full
        await play.submit({ tasks: 300, ms: 10 });
        await untilFull(play);
        await world.killServer();
        const starting = world.up();
        await new Promise((resolve) => void setTimeout(resolve, 1500));
        await makeRoom(world);
        await starting;
        await play.settle();
        await play.submit();
        await play.settle();
        const verified = await world.cli(["journal", "verify"]);
        expect(verified.status === 0, `journal verify: ${verified.stdout}${verified.stderr}`);
        const down = await world.cli(["down"]);
        expect(down.status === 0, `down: ${down.stderr}`);
      } finally {
        await world.killServer();
        spawnSync("umount", ["-l", join(world.home, "journal")]);
      }
    },
  },
];
