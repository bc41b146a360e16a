import { spawn } from "node:child_process";

/**
 * Runs a tool on the node and returns its output. Undefined: it is missing, failed, printed too much or took too long.
 */
export type Probe = (file: string, args: readonly string[]) => Promise<string | undefined>;

const MOST_OUTPUT = 256 * 1024;

/** Answers in time whatever happens: a tool stuck in its driver cannot be killed, so nobody waits for its end. */
export const createProbe =
  (timeLimitMs = 5000): Probe =>
  (file, args) =>
    new Promise((resolve) => {
      const chunks: Buffer[] = [];
      let size = 0;
      const child = spawn(file, args, { stdio: ["ignore", "pipe", "ignore"], env: { ...process.env, LC_ALL: "C" } });
      const settle = (answer: string | undefined): void => {
        clearTimeout(timer);
        child.kill("SIGKILL");
        child.stdout?.destroy();
        child.unref();
        resolve(answer);
      };
      const timer = setTimeout(() => settle(undefined), timeLimitMs);
      child.on("error", () => settle(undefined));
      child.on("close", (code) => settle(code === 0 ? Buffer.concat(chunks).toString("latin1") : undefined));
      child.stdout?.on("error", () => settle(undefined));
      child.stdout?.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        size += chunk.length;
        if (size > MOST_OUTPUT) settle(undefined);
      });
    });
