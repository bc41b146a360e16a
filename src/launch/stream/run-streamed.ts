import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import { findCommand } from "../../find-program.ts";
import { createPostOutput, type StreamName } from "./post-output.ts";
import { createSender, type Sender } from "./sender.ts";
import type { StreamSettings } from "./settings.ts";

/**
 * `agent.cjs --stream SETTINGS -- COMMAND…`: runs one rank's command. What it writes goes to this process's own output,
 * and so to the job's files, and to the server. The command runs whatever happens to the stream; we pass signals to it,
 * and exit with its status.
 */

/** After the command's end, the server has this long to take the rest. */
const FLUSH_MS = 5000;
const PASSED = ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT"] as const;

/** The number of this node in its job. */
const rankHere = (): number => {
  const { SLIPWAY_STREAM_RANK, SLURM_PROCID } = process.env;
  return Number(SLIPWAY_STREAM_RANK ?? SLURM_PROCID ?? 0) || 0;
};

const senderFor = (settingsFile: string): Sender | undefined => {
  try {
    const settings = JSON.parse(readFileSync(settingsFile, "utf8")) as StreamSettings;
    return createSender(createPostOutput(settings, rankHere()));
  } catch (error) {
    process.stderr.write(`slipway: output is not streamed: ${(error as Error).message}\n`);
    return undefined;
  }
};

export const runStreamed = async (settingsFile: string, command: readonly string[]): Promise<number> => {
  const sender = senderFor(settingsFile);
  const child = spawn(command[0]!, command.slice(1), { stdio: ["inherit", "pipe", "pipe"] });
  for (const signal of PASSED) process.on(signal, () => child.kill(signal));
  const copy = (name: StreamName): void => {
    const from = child[name];
    const to = process[name];
    let isBroken = false;
    // a reader that is gone must neither end the command nor block it
    to.on("error", () => {
      isBroken = true;
      from.resume();
    });
    from.on("data", (chunk: Buffer) => {
      sender?.push(name, chunk);
      if (isBroken || to.write(chunk)) return;
      from.pause();
      to.once("drain", () => from.resume());
    });
  };
  copy("stdout");
  copy("stderr");
  const status = await new Promise<number>((resolve) => {
    child.once("error", (error: NodeJS.ErrnoException) => {
      const found = findCommand(command[0]!, process.env["PATH"] ?? "", process.cwd());
      const isMissing = error.code === "ENOENT" || ("code" in found && found.code === "ENOENT");
      const text = `slipway: ${command[0]}: ${isMissing ? "not found" : error.message}\n`;
      process.stderr.write(text);
      sender?.push("stderr", Buffer.from(text));
      resolve(isMissing ? 127 : 126);
    });
    child.once("close", (code, signal) => resolve(code ?? 128 + (constants.signals[signal!] ?? 0)));
  });
  await sender?.finish(FLUSH_MS);
  return status;
};
