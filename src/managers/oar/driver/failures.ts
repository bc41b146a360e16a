import type { CommandResult } from "../../commands.ts";

/** What a failed command of OAR means. */

const NOT_REACHED =
  /DB connection error|could not connect to server|connection to server|Cannot connect to executor|Could not connect to the socket|Connection refused/i;

/** What may pass by itself. A job that could not be handed to the server was killed by oarsub, so it may be given again. */
export const oarIsTransient = ({ code, stderr }: CommandResult): boolean => code !== 0 && NOT_REACHED.test(stderr);
