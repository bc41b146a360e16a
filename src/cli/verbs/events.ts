import type { EventsQuery } from "../../client/index.ts";
import { parseDuration } from "../../core/quantities.ts";
import { SlipwayError } from "../../errors.ts";
import type { Context } from "../context.ts";
import { eventLine } from "../render/events.ts";
import { parseRun, parseWhole } from "../targets.ts";
import { type Define, examples } from "../verb.ts";

const DATE = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?$/;

/** A duration before now, or a time: in this time zone unless it says which. Throws if it is neither. */
export const timeOf = (text: string, now: number): Date => {
  // without a zone, a day alone would be taken for UTC
  const date = DATE.test(text) ? new Date(text.length === 10 ? `${text}T00:00` : text.replace(" ", "T")) : undefined;
  if (date !== undefined && !Number.isNaN(date.getTime())) return date;
  if (date !== undefined) throw new RangeError(`there is no such time: ${text}`);
  return new Date(now - parseDuration(text) * 1000);
};

/** Whole numbers count events, as they always have; everything else is a time. */
const sinceOf = async (
  { client }: Pick<Context, "client">,
  text: string | undefined,
): Promise<Pick<EventsQuery, "since" | "time">> => {
  if (text === undefined) return {};
  const [, number] = /^#?(\d+)$/.exec(text) ?? [];
  if (number !== undefined) return { since: parseWhole("--since", number, 0, Number.MAX_SAFE_INTEGER) };
  // its clock need not be this machine's, and is known with its first answer
  await client.server();
  try {
    return { time: timeOf(text, client.now()) };
  } catch (error) {
    throw new SlipwayError(
      "usage",
      {
        detail: `--since: '${text}' is no duration (10m, 1h30m), no time (2026-11-18T04:00) and no number of an event`,
      },
      error,
    );
  }
};

export const define: Define = (command, { act }) =>
  void command
    .option("-f, --follow", "print events as they happen, from now on (or --since), until interrupted")
    .option("--run <RUN>", "only events of this run")
    .option("--since <when>", "only events since then: a duration (10m), a time (2026-11-18T04:00), or a number (#812)")
    .addHelpText(
      "after",
      examples([
        "slipway events --run 3",
        "slipway events --since 10m",
        "slipway events --since 2026-11-18T04:00",
        "slipway events --follow --json",
      ]),
    )
    .action(
      act(async (context, _args, command) => {
        const options = command.opts<{ follow?: boolean; run?: string; since?: string }>();
        // only a server says what happens next
        const client = options.follow === true ? context.client : context.reader;
        const events = client.events({
          follow: options.follow === true,
          run: options.run === undefined ? undefined : parseRun(options.run),
          ...(await sinceOf(context, options.since)),
          signal: context.out.closed,
          onLost: () => context.note("the connection to the server was lost; trying again"),
        });
        for await (const event of events) {
          if (context.out.closed.aborted) break;
          await context.out.bytes(Buffer.from(`${context.json ? JSON.stringify(event) : eventLine(event)}\n`));
        }
      }),
    );
