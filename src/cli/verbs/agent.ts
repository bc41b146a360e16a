import { existsSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import path from "node:path";
import { canonicalResource, parseDuration, parseResource, resourceNameProblem } from "../../core/quantities.ts";
import { quoteFor } from "../../core/shell-quoting.ts";
import { SlipwayError } from "../../errors.ts";
import { agentSettings } from "../../protocol/agent-settings.ts";
import { OPEN_TO_OTHERS, isLoopback, readEndpoint } from "../../protocol/endpoint.ts";
import type { Context } from "../context.ts";
import { inForeground } from "../foreground.ts";
import { type Define, examples } from "../verb.ts";

interface AgentOptions {
  readonly cpus?: string;
  readonly gpus?: string;
  readonly mem?: string;
  readonly tmp?: string;
  readonly resource?: readonly string[];
  readonly scratch?: string;
  readonly cluster?: string;
  readonly queue?: string;
  readonly patience: string;
  readonly endpoint?: string;
  readonly tokenFile?: string;
  readonly line?: boolean;
}

const usage = (detail: string): never => {
  throw new SlipwayError("usage", { detail });
};

const read = <T>(option: string, parse: () => T): T => {
  try {
    return parse();
  } catch (error) {
    if (error instanceof RangeError) return usage(`${option} ${error.message}`);
    throw error;
  }
};

/** Declared amounts, in units. */
const declared = (options: AgentOptions): Record<string, number> => {
  const given: [string, string, string][] = (["cpus", "gpus", "mem", "tmp"] as const).flatMap((name) =>
    options[name] === undefined ? [] : [[`--${name}`, name, options[name]]],
  );
  for (const pair of options.resource ?? []) {
    const [, name = "", amount = ""] = /^([^=]*)=(.*)$/s.exec(pair) ?? usage(`--resource takes NAME=N, not '${pair}'`);
    const problem = resourceNameProblem(name);
    if (problem !== undefined) usage(`--resource ${problem}`);
    given.push(["--resource", canonicalResource(name), amount]);
  }
  return Object.fromEntries(
    given.map(([option, name, amount]) => [name, read(option, () => parseResource(name, amount))]),
  );
};

/** What to paste elsewhere: absolute, so that it means the same there. */
const lineFor = ({ root, home }: Context): string =>
  [process.execPath, path.join(root, "bin", "slipway"), "agent", "--home", home]
    .map((word) => quoteFor(word, "word"))
    .join(" ");

/** A line for other machines is useless while the server listens only on this one. */
const noteIfAlone = async (context: Context): Promise<void> => {
  const { addresses = [] } = (await readEndpoint(context.home)) ?? {};
  if (addresses.length > 0 && addresses.every(isLoopback))
    context.note(`the server listens on this machine alone: ${OPEN_TO_OTHERS}`);
};

const runAgent = (context: Context, options: AgentOptions): Promise<number> => {
  const bundle = path.join(context.root, "dist", "agent-quick.cjs");
  if (!existsSync(bundle))
    throw new SlipwayError("internal", { detail: `${bundle} is missing; run \`npm ci\` in ${context.root} first` });
  const absolute = (file: string | undefined): string | undefined =>
    file === undefined ? undefined : path.resolve(file);
  const settings = agentSettings({
    home: context.home,
    pilot: 0,
    scratch: path.resolve(options.scratch ?? tmpdir()),
    declared: declared(options),
    patienceMs: read("--patience", () => parseDuration(options.patience)) * 1000,
    cluster: options.cluster,
    queue: options.queue,
    endpointFile: absolute(options.endpoint),
    tokenFile: absolute(options.tokenFile),
  });
  context.note(`an agent on ${hostname()} for ${context.home}; Ctrl-C ends it, and its tasks run again elsewhere`);
  return inForeground([bundle, "--settings", JSON.stringify(settings)]);
};

const collect = (value: string, before: readonly string[] | undefined): string[] => [...(before ?? []), value];

export const define: Define = (command, { act }) =>
  void command
    .option("--cpus <n>", "cores to offer (default: those this process may use)")
    .option("--gpus <n>", "GPUs to offer (default: those it finds)")
    .option("--mem <size>", "memory to offer (default: the machine's, or its cgroup's)")
    .option("--tmp <size>", "temporary space to offer")
    .option("--resource <name=n>", "any other resource; may be repeated", collect)
    .option("--scratch <dir>", "where tasks get their TMPDIR (default: $TMPDIR, else /tmp)")
    .option("--cluster <name>", "take tasks of this cluster (default: the default cluster)")
    .option("--queue <name>", "take tasks that ask for this queue too")
    .option("--patience <duration>", "how long an idle agent waits for a lost server", "10m")
    .option("--endpoint <file>", "the file that says how to reach the server (default: server.json in the home)")
    .option("--token-file <file>", "the agents' token (default: keys/agent.token in the home)")
    .option("--line", "print the command to paste on another machine; start nothing")
    .description(
      "Start one agent here, by hand. It joins the home's server and takes tasks until you stop it. `slipway agent --line` " +
        "prints a command to paste on any machine that sees this home, or into a job that you submit yourself.",
    )
    .addHelpText(
      "after",
      examples([
        "slipway agent --line",
        "slipway agent --home /shared/me/slipway --cpus 8 --mem 16G",
        'ssh node7 "$(slipway agent --line)"',
      ]),
    )
    .action(
      act(async (context, _args, given) => {
        const options = given.opts<AgentOptions>();
        if (options.line === true) {
          await noteIfAlone(context);
          const line = lineFor(context);
          context.answer({ line }, () => line);
          return 0;
        }
        return runAgent(context, options);
      }),
    );
