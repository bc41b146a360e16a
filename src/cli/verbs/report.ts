import { writeFile } from "node:fs/promises";
import path from "node:path";
import { SlipwayError } from "../../errors.ts";
import { reportPage } from "../render/report/report.ts";
import { parseRun } from "../targets.ts";
import { type Define, examples } from "../verb.ts";

/** Bars of the timeline: more than a screen has points. */
const MOST_BARS = 4000;

const write = async (file: string, text: string): Promise<void> => {
  try {
    await writeFile(file, text);
  } catch (error) {
    throw new SlipwayError("usage", { detail: `--output: ${(error as Error).message}` }, error);
  }
};

export const define: Define = (command, { act }) =>
  void command
    .argument("<RUN>", "a run")
    .description(
      "Write a run as one HTML file to mail or keep: its graph by stages, timeline, failures, and what was asked for beside " +
        "what was used. The file loads nothing and needs no server.",
    )
    .option("-o, --output <file>", "where to write it; - is standard output", "run-N.html")
    .addHelpText(
      "after",
      examples(["slipway report 3", "slipway report 3 -o dock.html", "slipway report 3 -o - | gzip > 3.html.gz"]),
    )
    .action(
      act(async ({ reader: client, answer, out }, [target], given) => {
        const id = parseRun(target!);
        const { output } = given.opts<{ output: string }>();
        const run = await client.run(id);
        const page = reportPage({
          run,
          stages: await client.stages(id),
          timeline: await client.timeline(id, { most: MOST_BARS }),
          failures: await client.failures(id),
          efficiency: await client.efficiency(id),
        });
        if (output === "-") return void (await out.bytes(Buffer.from(page)));
        const file = path.resolve(output === "run-N.html" ? `run-${id}.html` : output);
        await write(file, page);
        answer({ run: id, file, bytes: Buffer.byteLength(page) }, () => file);
      }),
    );
