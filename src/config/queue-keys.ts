import {
  bytes,
  directory,
  environment,
  flag,
  line,
  lines,
  name,
  oneOf,
  resources,
  seconds,
  someSeconds,
  whole,
  type Kind,
  type Values,
} from "./key-table.ts";
import { readSignal } from "./fleet-keys.ts";
import { launcher } from "./starter-keys.ts";
import { badValue } from "./source.ts";

/**
 * The keys that describe a pilot's job. They may be in a queue, in its templates and in the cluster; the nearest
 * one wins. Those that only one manager understands are in that manager's folder.
 */

const MAX_NODES = 1_000_000;

const shebang: Kind<string> = {
  ...line,
  read: (value: string, source, at) => {
    const text = line.read(value as never, source, at);
    if (!text.startsWith("#!/"))
      badValue(source, at, "must begin with #!/", "Write the line as in a script: #!/bin/bash -l");
    return text;
  },
};

/** Every manager accepts it as part of a job's name. */
const prefix: Kind<string> = {
  ...name,
  read: (value: string, source, at) => {
    if (!/^[A-Za-z][A-Za-z0-9_.-]{0,63}$/.test(value))
      badValue(
        source,
        at,
        `"${value.slice(0, 80)}" cannot begin a job name`,
        "Use at most 64 letters, digits, _ . and -, starting with a letter.",
      );
    return value;
  },
};

const signal: Kind<string> = { ...name, read: (value: string, source, at) => readSignal(source, at, value) };

export const QUEUE_KEYS = {
  partition: name,
  account: name,
  qos: name,
  constraint: line,
  reservation: name,
  nodes: whole(1, MAX_NODES),
  cores: whole(1, MAX_NODES),
  memory: bytes,
  gpus: whole(0, MAX_NODES),
  tmp: bytes,
  resources,
  walltime: someSeconds,
  signal,
  "signal-before": seconds,
  exclusive: flag,
  options: lines,
  "skip-options": lines,
  prologue: lines,
  epilogue: lines,
  environment,
  launcher,
  scratch: directory(true),
  "log-directory": directory(),
  shebang,
  "job-name-prefix": prefix,
  node: directory(true),
  cleanup: oneOf("always", "success", "never"),
} as const;

/** Other names of the keys above: what their managers call them. */
export const QUEUE_ALIASES = {
  queue: "partition",
  project: "account",
  features: "constraint",
  reserv: "reservation",
} as const;

export type QueueValues = Values<typeof QUEUE_KEYS>;
