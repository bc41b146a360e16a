import { type Launcher, shellWords } from "./starter.ts";

/** Where the script runs, and nowhere else. `wrapped` is the same: its prefix stands before the agent's command. */
export const single: Launcher = ({ command }) => ({ start: [`slipway_start ${shellWords(command)}`] });
