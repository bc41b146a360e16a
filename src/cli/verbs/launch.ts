import type { LaunchView } from "../../api/launch-schemas.ts";
import { isFinalView } from "../../client/index.ts";
import { SlipwayError } from "../../errors.ts";
import type { Context } from "../context.ts";
import { loadLaunch } from "../launch-file.ts";
import { launchSummary } from "../render/launches.ts";
import { commandLine } from "../render/text.ts";
import { type Define, examples } from "../verb.ts";

/** The job's own exit status where it has one. */
export const statusOf = ({ state, exitCode, signal }: LaunchView): number => {
  if (state === "succeeded") return 0;
  if (exitCode !== null && exitCode > 0 && exitCode < 256) return exitCode;
  return signal !== null && signal > 0 ? 128 + signal : 1;
};

/** Shows what a launch's job writes, as it comes, and resolves with how it ended. */
const follow = async (context: Context, id: number): Promise<LaunchView> => {
  const { client, out, err } = context;
  const signal = out.closed;
  const pour = async (stream: "stdout" | "stderr", to: typeof out): Promise<void> => {
    for await (const piece of client.launchLogs(id, { stream, follow: true, signal, wasThere: true }))
      await to.bytes(piece);
  };
  const watch = async (): Promise<LaunchView> => {
    let last: LaunchView | undefined;
    for await (const view of client.watchLaunch(id, { wasThere: true, signal })) {
      if (view.state === "running" && last?.state !== "running")
        context.note(`running on ${view.hosts.join(", ") || "its nodes"}`);
      last = view;
    }
    if (last === undefined || !isFinalView(last))
      throw new SlipwayError("internal", { detail: `the server stopped reporting on launch ${id} before it ended` });
    return last;
  };
  const [ended] = await Promise.all([watch(), ...(context.json ? [] : [pour("stdout", out), pour("stderr", err)])]);
  return ended;
};

export const define: Define = (command, { act }) =>
  void command
    .argument("<SPEC.yaml>", "what to launch (docs/launch.md)")
    .option("--dry-run", "print the batch script and the command that would submit it; submit nothing")
    .option("--wait", "show what the job writes, wait until it ends, exit with its status")
    .description(
      "Launch one batch job straight through the workload manager of a cluster: Slurm or PBS. Returns when the manager has accepted it.",
    )
    .addHelpText(
      "after",
      examples([
        "slipway launch train.yaml",
        "slipway launch train.yaml --dry-run",
        "slipway launch train.yaml --wait && slipway jobs list",
      ]),
    )
    .action(
      act(async (context, [file], command) => {
        const { dryRun = false, wait = false } = command.opts<{ dryRun?: boolean; wait?: boolean }>();
        const document = loadLaunch(file!);
        if (dryRun) {
          const preview = await context.client.previewLaunch(document);
          for (const warning of preview.warnings) context.note(`note: ${warning}`);
          context.answer(
            preview,
            () => `${preview.script.trimEnd()}\n\n# submitted with: ${commandLine(preview.submit)}`,
          );
          return 0;
        }
        const launch = await context.client.launch(document);
        for (const note of launch.notes) context.note(`note: ${note}`);
        if (!wait) {
          context.answer(launch, () => (context.quiet ? String(launch.id) : launchSummary(launch)));
          return 0;
        }
        context.note(launchSummary(launch));
        const ended = await follow(context, launch.id);
        if (context.json) context.printJson(ended);
        else if (ended.state !== "succeeded") context.note(launchSummary(ended));
        return statusOf(ended);
      }),
    );
