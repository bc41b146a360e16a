import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { dirname } from "node:path";
import { STATUS, socketOf, type Answer, type PbsConfig } from "./config.ts";
import { onMessages, sendMessage } from "./lines.ts";
import { toJson } from "./print.ts";
import { Refusal, splitOptions } from "./request.ts";

/**
 * Every command of the fake PBS: reads here what needs the caller's files and environment, and asks the server for the
 * rest.
 */

const [command = "", ...argv] = process.argv.slice(2);
const root = dirname(dirname(process.argv[1]!));
const config = JSON.parse(readFileSync(`${root}/pbs.json`, "utf8")) as PbsConfig;

const finish = ({ code, stdout, bytes, stderr }: Answer): void => {
  process.stderr.write(stderr ?? "");
  const out = bytes === undefined ? Buffer.from(stdout ?? "") : Buffer.from(bytes, "base64");
  // exiting at once would cut off what a pipe has not taken yet
  process.exitCode = code;
  process.stdout.write(out);
};

const unreachable = (): Answer => {
  const why = command === "pbsnodes" ? ", error=15010" : " (errno=15010)";
  return {
    code: command === "qstat" ? STATUS.unreachable : command === "pbsnodes" ? 1 : STATUS.noServer,
    ...(command === "qstat" && argv.includes("json") ? { bytes: toJson(config, "Jobs", []).toString("base64") } : {}),
    stderr: `Connection refused\n${command}: cannot connect to server ${config.server}${why}\n`,
  };
};

const isAlive = (pid: number): boolean => {
  try {
    return pid > 0 && process.kill(pid, 0);
  } catch {
    return false;
  }
};

/** Keeps a connection for the user's next submissions; its arguments are those of the qsub that began it. */
const leaveDaemon = (): void => {
  const { options } = splitOptions(argv);
  const mark = `${root}/tmp/qsub.${process.getuid!()}`;
  const before = existsSync(mark) ? Number(readFileSync(mark, "utf8")) : 0;
  if (options.some(([flag]) => flag === "f" || flag === "V") || isAlive(before)) return;
  const words = ["-c", `sleep ${config.qsubStaysMs / 1000}; :`, "qsub", ...argv];
  const daemon = spawn("/bin/sh", words, { detached: true, stdio: "ignore" });
  daemon.unref();
  writeFileSync(mark, String(daemon.pid));
};

/** What qsub submits: a file by its path, a command behind `--`, or its standard input. */
const readScript = (): { script: string; name: string } => {
  const { rest, isCommand } = splitOptions(argv);
  if (isCommand) {
    const quoted = rest.map((word) => `'${word.replaceAll("'", `'\\''`)}'`);
    return { script: `#!/bin/sh\nexec ${quoted.join(" ")}\n`, name: "STDIN" };
  }
  if (rest[0] === undefined) return { script: readFileSync(0, "utf8"), name: "STDIN" };
  try {
    return { script: readFileSync(rest[0], "utf8"), name: rest[0].split("/").at(-1)! };
  } catch {
    throw new Refusal(1, `qsub: script file '${rest[0]}' cannot be loaded - No such file or directory`);
  }
};

const ask = (request: object): Promise<Answer> =>
  new Promise((resolve) => {
    const socket = connect(socketOf(root));
    let answered = false;
    socket.on("error", () => resolve(unreachable()));
    socket.on("close", () => {
      if (!answered) resolve(unreachable());
    });
    onMessages(socket, (message) => {
      answered = true;
      socket.destroy();
      const answer = message as unknown as Answer;
      resolve(answer.unreachable === true ? unreachable() : answer);
    });
    sendMessage(socket, request);
  });

try {
  const submission = command === "qsub" ? readScript() : {};
  const uid = process.getuid!();
  const environment = process.env as Record<string, string>;
  const answer = await ask({ command, argv, uid, cwd: process.cwd(), environment, ...submission });
  if (command === "qsub" && answer.code === 0) leaveDaemon();
  finish(answer);
} catch (error) {
  if (!(error instanceof Refusal)) throw error;
  finish({ code: error.code, stderr: `${error.message}\n` });
}
