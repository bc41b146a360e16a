import { type Starter, shellWords } from "./starter.ts";

/** Where the script runs, and nowhere else. `wrapped` is the same: its prefix comes before the agent's command. */
export const single: Starter = ({ command }) => ({ start: [`slipway_start ${shellWords(command)}`] });
