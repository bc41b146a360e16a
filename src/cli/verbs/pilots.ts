import type { Command } from "commander";
import type { PilotView } from "../../api/schemas.ts";
import { SlipwayError } from "../../errors.ts";
import { pilotsTable } from "../render/status.ts";
import { plural } from "../render/text.ts";
import { wrapPilotsTable } from "../render/wraps.ts";
import { type Define, examples, subcommand, widthFor } from "../verb.ts";
import { askServer, pilotsOfWraps, wrapsHere } from "../wraps-here.ts";

const MOST = 1000;
/** Ended pilots in the table. */
const ENDED = 20;

/** The living and the last that ended. */
const recent = (pilots: readonly PilotView[]): PilotView[] => {
  const ended = pilots.filter((pilot) => pilot.ended !== null);
  const old = new Set(ended.slice(0, -ENDED));
  return pilots.filter((pilot) => !old.has(pilot));
};

const pilotId = (text: string): number => {
  const [, wrap] = /^([0-9a-f]{8})\/./.exec(text) ?? [];
  if (wrap !== undefined)
    throw new SlipwayError("usage", {
      detail: `'${text}' belongs to a Dask cluster: \`slipway wrap scale ${wrap}\` and \`slipway wrap down ${wrap}\` are for those`,
    });
  const id = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(id) || id === 0)
    throw new SlipwayError("usage", { detail: `'${text}' is not a pilot: they are numbered 1, 2, 3…` });
  return id;
};

const countOf = (text: string): number => {
  const count = Number(text);
  if (!/^\d+$/.test(text) || count < 1 || count > MOST)
    throw new SlipwayError("usage", { detail: `--count must be a whole number from 1 to ${MOST}, not '${text}'` });
  return count;
};

const withReason = (command: Command): Command =>
  command.argument("<ID...>", "pilots, as `pilots list` numbers them").option("--reason <text>", "kept with the pilot");

export const define: Define = (command, { act }) => {
  command.addHelpText(
    "after",
    examples([
      "slipway pilots list",
      "slipway pilots add --cluster hpc --queue cpu --count 4",
      "slipway pilots drain 3",
      "slipway pilots cancel 3",
    ]),
  );
  subcommand(command, "list", "pilots, with their agents, and those of Dask clusters")
    .option("--all", `also those that ended before the last ${ENDED}; --json prints all`)
    .option("--wide", "all columns, also where the terminal is too narrow for them")
    .action(
      act(async (context, _args, given) => {
        const { client, answer, style } = context;
        const width = widthFor(context, given);
        const wraps = await wrapsHere(context.home);
        const held = pilotsOfWraps(wraps);
        const pilots = (await askServer(context, wraps, () => client.pilots())) ?? [];
        const shown = given.opts<{ all?: boolean }>().all === true ? pilots : recent(pilots);
        answer([...pilots, ...held], () =>
          [
            ...(pilots.length === 0 && held.length > 0
              ? []
              : [pilots.length === 0 ? "no pilots" : pilotsTable(shown, style, client.now(), width)]),
            ...(held.length === 0 ? [] : [wrapPilotsTable(held, style, width)]),
          ].join("\n\n"),
        );
      }),
    );
  subcommand(command, "add", "start pilots by hand, whatever the fleet's strategy")
    .option("--cluster <name>", "the cluster (default: the default cluster)")
    .option("--queue <name>", "its queue (default: its first)")
    .option("--count <n>", "how many", "1")
    .action(
      act(async ({ client, answer }, _args, given) => {
        const { cluster, queue, count } = given.opts<{ cluster?: string; queue?: string; count: string }>();
        const pilots = await client.addPilots({
          count: countOf(count),
          ...(cluster === undefined ? {} : { cluster }),
          ...(queue === undefined ? {} : { queue }),
        });
        const [first] = pilots as [PilotView];
        answer(
          pilots,
          () =>
            `${plural(pilots.length, "pilot")} requested from ${first.cluster}/${first.queue}: ${pilots.map(({ id }) => id).join(", ")}`,
        );
      }),
    );
  withReason(subcommand(command, "drain", "let a pilot finish what it runs, then end it")).action(
    act(async ({ client, answer }, ids, given) => {
      for (const id of ids.map(pilotId)) {
        const pilot = await client.drainPilot(id, given.opts<{ reason?: string }>());
        answer(pilot, () =>
          pilot.ended === null ? `pilot ${id} takes no new tasks` : `pilot ${id} had already ended`,
        );
      }
    }),
  );
  withReason(subcommand(command, "cancel", "end a pilot now; its tasks run again at no cost")).action(
    act(async ({ client, answer }, ids, given) => {
      for (const id of ids.map(pilotId)) {
        const pilot = await client.cancelPilot(id, given.opts<{ reason?: string }>());
        answer(pilot, () => (pilot.ended === null ? `pilot ${id} is being cancelled` : `pilot ${id} has ended`));
      }
    }),
  );
};
