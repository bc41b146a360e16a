import type { CommandOptions, CommandResult } from "../../commands.ts";

/** What a failed command of Slurm means. */

const NOT_REACHED = /Unable to contact slurm controller|Slurm backup controller in standby mode|temporarily unable/i;
const NOT_SET_UP =
  /Could not establish a configuration source|Unable to process configuration file|Unable to open slurm.conf/i;
const REPLY_LOST =
  /Socket timed out|Zero Bytes were transmitted|Communication connection failure|Connection (reset|refused)|Resource temporarily unavailable/i;

/** It has certainly done nothing. */
export const isNotReached = ({ stderr }: CommandResult): boolean => NOT_REACHED.test(stderr) || NOT_SET_UP.test(stderr);

export const isReplyLost = ({ stderr }: CommandResult): boolean => REPLY_LOST.test(stderr);

/** What passes by itself. A submission whose reply was lost may have been accepted, unless the controller was never reached. */
export const slurmIsTransient = (result: CommandResult, options: CommandOptions): boolean =>
  result.code !== 0 && (NOT_REACHED.test(result.stderr) || (options.once !== true && isReplyLost(result)));
