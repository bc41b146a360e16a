import type { JobKind, JobView } from "../../api/job-schemas.ts";
import type { LaunchView } from "../../api/launch-schemas.ts";
import { SlipwayError } from "../../errors.ts";
import type { Context } from "../context.ts";
import { jobsTable } from "../render/jobs.ts";
import { launchScreen, launchSummary, launchesTable } from "../render/launches.ts";
import { LAUNCH_STATES } from "../../core/states.ts";
import { parseStates } from "../state-options.ts";
import { parseWhole } from "../targets.ts";
import { type Define, examples, subcommand, widthFor } from "../verb.ts";

/** A bare number is a launch; tasks and pilots have verbs of their own. */
const idOf = (text = ""): number => {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  if (/^\d+\.\d+$/.test(text))
    throw new SlipwayError("usage", {
      detail: `'${text}' is a task: \`slipway show ${text}\`, \`slipway logs ${text}\` and \`slipway cancel ${text}\` are for those`,
    });
  if (/^pilot\b/.test(text))
    throw new SlipwayError("usage", {
      detail: `'${text}' is a pilot: \`slipway pilots list\`, \`slipway pilots drain\` and \`slipway pilots cancel\` are for those`,
    });
  throw new SlipwayError("usage", { detail: `'${text}' is not a launch; \`slipway jobs list\` shows them` });
};

const kindOf = (text: string | undefined): JobKind | undefined => {
  if (text === undefined || isKind(text)) return text;
  throw new SlipwayError("usage", { detail: `--kind: '${text}' is not one of ${JOB_KINDS.join(", ")}` });
};
const JOB_KINDS: readonly JobKind[] = ["launch", "task", "pilot"];
const isKind = (text: string): text is JobKind => (JOB_KINDS as readonly string[]).includes(text);
const isLaunch = (job: JobView): job is Extract<JobView, { kind: "launch" }> => job.kind === "launch";

/** The job's own id first, as soon as it is known: by it the manager's commands find it. */
const head = ({ id, nativeId, cluster, jobName }: LaunchView): string =>
  nativeId === null
    ? `launch ${id}: waiting for ${cluster}'s answer`
    : `launch ${id}: job ${nativeId} of ${cluster} (${jobName})`;

const logs = async (context: Context, id: number, follow: boolean, stream: "stdout" | "stderr"): Promise<void> => {
  const { client, out } = context;
  context.note(head(await client.launchById(id)));
  try {
    for await (const piece of client.launchLogs(id, { stream, follow, signal: out.closed })) await out.bytes(piece);
  } catch (error) {
    // The reader of our output has left (`| head`): so do we.
    if (!out.closed.aborted) throw error;
  }
};

export const define: Define = (command, { act }) => {
  command
    .description(
      "Everything that Slipway has in workload managers. The other verbs are for launches, which are named by their number.",
    )
    .addHelpText(
      "after",
      examples([
        "slipway jobs list",
        "slipway jobs list --kind task",
        "slipway jobs show 3",
        "slipway jobs logs 3 -f",
        "slipway jobs cancel 3",
      ]),
    );
  subcommand(
    command,
    "list",
    "jobs of tasks and pilots that a manager has now, and launches; newest first; the home's owner sees all, others their launches",
  )
    .option("--kind <kind>", "only these: launch, task or pilot")
    .option("-n, --limit <n>", "how many", "100")
    .option("--wide", "all columns, also where the terminal is too narrow for them")
    .option("--state <state>", "only those that are waiting, running, done, failed, cancelled or lost")
    .action(
      act(async (context, _args, command) => {
        const { client, answer, style } = context;
        const width = widthFor(context, command);
        const { kind, limit, state } = command.opts<{ kind?: string; limit: string; state?: string }>();
        const wanted = kindOf(kind);
        const [meant] = state === undefined ? [] : parseStates([state], LAUNCH_STATES, "the state of a job");
        const jobs = await client.jobs({ kind: wanted, state: meant, limit: parseWhole("--limit", limit, 1, 10_000) });
        answer(jobs, () => {
          if (jobs.length === 0) return wanted === "launch" ? "no launches" : "no jobs";
          return wanted === "launch"
            ? launchesTable(jobs.filter(isLaunch), style, client.now(), width)
            : jobsTable(jobs, style, client.now(), width);
        });
      }),
    );
  subcommand(command, "show", "one launch, as its manager sees it now")
    .argument("<ID>")
    .action(
      act(async ({ client, answer, style }, [id]) => {
        const launch = await client.launchById(idOf(id), { fresh: true });
        answer(launch, () => launchScreen(launch, style, client.now()));
      }),
    );
  subcommand(command, "logs", "what its job wrote")
    .argument("<ID>")
    .option("-f, --follow", "keep printing until the job ends")
    .option("--stderr", "standard error instead of standard output")
    .action(
      act(async (context, [id], command) => {
        const { follow = false, stderr = false } = command.opts<{ follow?: boolean; stderr?: boolean }>();
        await logs(context, idOf(id), follow, stderr ? "stderr" : "stdout");
      }),
    );
  subcommand(command, "cancel", "cancel launches")
    .argument("<ID...>")
    .action(
      act(async ({ client, answer }, ids) => {
        for (const id of ids.map(idOf)) {
          const launch = await client.cancelLaunch(id);
          answer(launch, () => launchSummary(launch));
        }
      }),
    );
  subcommand(command, "clean", "remove the directory and the kept logs of launches that have ended")
    .argument("<ID...>")
    .action(
      act(async ({ client, answer }, ids) => {
        for (const id of ids.map(idOf)) {
          const launch = await client.cleanLaunch(id);
          answer(launch, () => `launch ${launch.id}: cleaned`);
        }
      }),
    );
};
