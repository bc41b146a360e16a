import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "../until.ts";

/** Tasks that stay at a gate until the test opens it, so that "while it runs" is a fact and not a matter of timing. */
export interface Gate {
  /** For `sh`: reports its arrival, waits at the gate, continues. */
  readonly script: string;
  /** The same as a command of its own. */
  readonly command: readonly string[];
  /** Resolves with `RUN.TASK:ATTEMPT` of every arrival, when there are at least this many. */
  arrived(count: number): Promise<string[]>;
  /** Those that wait continue, and later ones do not wait. */
  open(): void;
}

export const createGate = (directory: string, name = "gate"): Gate => {
  const fifo = join(directory, `${name}.fifo`);
  const here = join(directory, `${name}.here`);
  execFileSync("mkfifo", [fifo]);
  // Opening it for both reading and writing never blocks. While it is open, readers wait for a line; closing it lets
  // all go.
  const fd = openSync(fifo, constants.O_RDWR | constants.O_NONBLOCK);
  writeFileSync(here, "");
  const script = `echo "$SLIPWAY_RUN.$SLIPWAY_TASK:$SLIPWAY_ATTEMPT" >> '${here}'; read -r _ < '${fifo}'; :`;
  let isOpen = false;
  return {
    script,
    command: ["sh", "-c", script.replaceAll("{", "{{").replaceAll("}", "}}")],
    arrived: (count) =>
      until(`${count} tasks at the gate ${name}`, () => {
        const lines = readFileSync(here, "utf8").split("\n").slice(0, -1);
        return lines.length >= count ? lines : undefined;
      }),
    open: () => {
      if (isOpen) return;
      isOpen = true;
      const plain = `${fifo}.open`;
      writeFileSync(plain, "\n");
      renameSync(plain, fifo);
      closeSync(fd);
    },
  };
};

/** Removes what a gate left in a directory that is used again. */
export const removeGate = (directory: string, name = "gate"): void => {
  for (const end of ["fifo", "here"]) rmSync(join(directory, `${name}.${end}`), { force: true });
};
