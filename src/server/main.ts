import { writeSync, closeSync, fstatSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { SlipwayError } from "../errors.ts";
import { putBack } from "../extra-authorities.ts";
import { createLog } from "./logger.ts";

/** Entry point of dist/server.cjs, which dist/server.js starts: `serve`, and commands that work on a home's journal without a server. */

const bundles = dirname(fileURLToPath(import.meta.url));

/** `up` waits on this pipe for one line: ready, or what is wrong. */
const tellStarter = (line: object): void => {
  try {
    if (!fstatSync(3).isFIFO() && !fstatSync(3).isSocket()) return;
    writeSync(3, `${JSON.stringify(line)}\n`);
    closeSync(3);
  } catch {
    // started without such a pipe: nobody waits
  }
};

const serve = async (args: string[]): Promise<number> => {
  const { values } = parseArgs({
    args,
    options: {
      home: { type: "string" },
      host: { type: "string" },
      port: { type: "string" },
      clusters: { type: "string" },
      "found-clusters": { type: "string" },
      project: { type: "string", multiple: true },
      stage: { type: "string" },
      bound: { type: "boolean" },
    },
  });
  const log = createLog(process.env["SLIPWAY_LOG"] ?? "info");
  try {
    const [{ startServer }, { detectResources }] = await Promise.all([
      import("./server.ts"),
      // oxlint-disable-next-line no-restricted-imports -- what this machine has is measured as an agent measures it
      import("../agent/detect.ts"),
    ]);
    const server = await startServer({
      home: values.home!,
      host: values.host,
      port: values.port === undefined ? undefined : Number(values.port),
      clusters: {
        explicitPath: values.clusters,
        foundPath: values["found-clusters"],
        project: values.project === undefined ? undefined : { files: values.project, stage: values.stage },
      },
      log,
      bundles,
      detect: async (declared) => (await detectResources({ declared })).resources,
    });
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      let asked = 0;
      process.on(signal, () => {
        asked += 1;
        server.stop(asked > 1);
      });
    }
    // whoever started it holds the other end, and has gone when it closes
    if (values.bound === true) process.stdin.once("close", () => server.stop(true)).resume();
    process.on("SIGHUP", () => undefined);
    process.on("SIGPIPE", () => undefined);
    tellStarter({ ready: true, url: server.url, pid: process.pid, listens: server.listening });
    return await server.ended;
  } catch (error) {
    const known =
      error instanceof SlipwayError ? error : new SlipwayError("internal", { detail: (error as Error).message }, error);
    log(`did not start: ${known.message}`, known.code === "internal" ? { stack: (error as Error).stack } : {});
    tellStarter(known.toJSON());
    if (process.stdout.isTTY === true) process.stderr.write(`slipway: ${known.message}\n`);
    return known.row.exit;
  }
};

const main = async (): Promise<number> => {
  putBack();
  const [verb, ...args] = process.argv.slice(2);
  switch (verb) {
    case "serve":
      return serve(args);
    case "journal":
      return (await import("./journal-command.ts")).journalCommand(args);
    case "look": {
      const { values } = parseArgs({ args, options: { home: { type: "string" } } });
      return (await import("./look.ts")).look(values.home!, 3);
    }
    case "look-files":
      return (await import("../skips/look-child.ts")).lookChild();
    case "compact-child": {
      const { values } = parseArgs({ args, options: { home: { type: "string" }, "up-to": { type: "string" } } });
      const { compact } = await import("../archive/compact.ts");
      process.stdout.write(JSON.stringify(await compact(values.home!, JSON.parse(values["up-to"]!) as never)));
      return 0;
    }
    default:
      process.stderr.write("server.js is started by `slipway up`\n");
      return 2;
  }
};

main().then(
  (status) => process.exit(status),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exit(1);
  },
);
