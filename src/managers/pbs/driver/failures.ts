import type { CommandOptions, CommandResult } from "../../commands.ts";

/** What a failed command of PBS means. */

/** Exit statuses of its commands: its error numbers, less 15000, as a byte. */
export const FINISHED = 35;
export const UNKNOWN_JOB = 153;
/** The job is ending already. */
export const BAD_STATE = 168;
const NO_SERVER = 255;

const NOT_CONNECTED =
  /cannot connect to server|Connection (?:refused|timed out)|No route to host|errno=1(?:04|10|11)\b/i;
const BUSY = /server (?:is )?(?:too )?busy|try again|resource temporarily unavailable/i;
const REPLY_LOST = /End of File|Connection reset|Communication failure|timed? ?out/i;

/** It has certainly done nothing. */
export const isNotReached = ({ stderr }: CommandResult): boolean => NOT_CONNECTED.test(stderr);

export const isReplyLost = ({ code, stderr }: CommandResult): boolean => code === NO_SERVER || REPLY_LOST.test(stderr);

/** Whether this may pass by itself; of what must be done once at most, only what was certainly not done. */
export const pbsIsTransient = (result: CommandResult, options: CommandOptions = {}): boolean =>
  result.code !== 0 &&
  (isNotReached(result) || (options.once !== true && (result.code === NO_SERVER || BUSY.test(result.stderr))));

/** What it said, in short. */
export const wordsOf = ({ stderr, stdout, code }: CommandResult): string =>
  (stderr.trim() || stdout.trim() || `exit status ${code}`).split("\n").slice(-5).join(" | ").slice(-1000);
