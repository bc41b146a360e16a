import type { CommandResult } from "../../commands.ts";

/** What a failed command of Grid Engine means. */

const NOT_REACHED = /unable to (send message to|contact) qmaster|commlib error|got select error|can't resolve host/i;
const REPLY_LOST = /failed receiving gdi request|communication error|got read error/i;

const saidBy = ({ stderr, stdout }: CommandResult): string => `${stderr}\n${stdout}`;

const isSubmission = (argv: readonly string[]): boolean => argv.some((word) => /(^|\/)qsub$/.test(word));

export const isReplyLost = (result: CommandResult): boolean => REPLY_LOST.test(saidBy(result));

/** What may pass by itself. A lost answer to qsub does not count: the job may have been accepted. */
export const sgeIsTransient = (result: CommandResult): boolean =>
  result.code !== 0 && (NOT_REACHED.test(saidBy(result)) || (isReplyLost(result) && !isSubmission(result.argv)));
