import { type Launcher, shellWords } from "./starter.ts";

/** For managers that run the script itself on every node. */
export const simple: Launcher = ({ command }) => ({ start: [`slipway_start ${shellWords(command)}`] });
