import path from "node:path";
import { findProject } from "../../config/find-project.ts";
import { loadProject, type ProjectLocation } from "../../config/load-project.ts";
import { overrideLayers } from "../../config/project-file.ts";
import { SlipwayError } from "../../errors.ts";
import { readEndpoint } from "../../protocol/endpoint.ts";
import type { Context } from "../context.ts";
import { tellFileLimit, tellProblems } from "../cluster-problems.ts";
import { inForeground } from "../foreground.ts";
import { listeningText } from "../render/status.ts";
import { serveArguments, startServer } from "../server-process.ts";
import { currentDirectory, searcherOf } from "../submission.ts";
import { parseWhole } from "../targets.ts";
import { type Define, examples } from "../verb.ts";

/** Asks the server that this home's endpoint names, if any, whether it is there. */
const refuseSecond = async (context: Context): Promise<void> => {
  const endpoint = await readEndpoint(context.home);
  if (endpoint === undefined) return;
  const server = await context.client.server().catch(() => undefined);
  // One that does not answer may be dead or slow: the server's own lock decides, not this.
  if (server === undefined) return;
  const { home } = context;
  throw new SlipwayError("server-running", { home, pid: server.pid, host: server.host, address: server.url });
};

interface UpOptions {
  readonly foreground?: boolean;
  readonly host?: string;
  readonly port?: string;
  readonly clusters?: string;
  readonly stage?: string;
}

/** The project of the working directory, if it overrides parameters of queues: the server is then started with them. */
const overriding = (context: Context, stage: string | undefined): ProjectLocation | undefined => {
  const { files, warnings } = findProject(currentDirectory(), searcherOf(process.env));
  const { levels } = loadProject({ files, stage });
  for (const warning of warnings) context.note(`warning: ${warning}`);
  const layers = overrideLayers(levels);
  if (layers.length === 0) return undefined;
  context.note(`with the queues' parameters of ${[...new Set(layers.map(({ file }) => file))].join(" and ")}`);
  return { files, stage };
};

export const define: Define = (command, { act }) =>
  void command
    .option("--foreground", "do not detach: log here, stop with Ctrl-C")
    .option(
      "--host <address>",
      "address to listen on (default: this machine only, unless this home has work elsewhere)",
    )
    .option("--port <port>", "port to listen on (default: any free one)")
    .option("--clusters <file>", "a clusters.yaml besides the home's own")
    .option("--stage <name>", "a stage of slipway.yaml: the server starts with its parameters for queues")
    .description(
      "Start the server of a home and print its address. It keeps running when you log out; `down` stops it.",
    )
    .addHelpText("after", examples(["slipway up", "slipway up --home /scratch/me/slipway --port 7777"]))
    .action(
      act(async (context, _args, command) => {
        const { foreground, host, port, clusters, stage } = command.opts<UpOptions>();
        const options = {
          home: context.home,
          root: context.root,
          host,
          port: port === undefined ? undefined : parseWhole("--port", port, 0, 65_535),
          clusters: clusters === undefined ? undefined : path.resolve(clusters),
          project: overriding(context, stage),
        };
        await refuseSecond(context);
        if (foreground === true) return inForeground(serveArguments(options));
        const started = await startServer(options);
        await tellProblems(context);
        const server = await context.client.server();
        tellFileLimit(server, context.note);
        if (context.json) context.printJson(server);
        else if (context.quiet) context.out.line(started.url);
        else {
          context.out.line(`the server runs (pid ${started.pid}): ${started.url}`);
          context.out.line(`it listens on ${listeningText(started.listens)}`);
        }
        return 0;
      }),
    );
