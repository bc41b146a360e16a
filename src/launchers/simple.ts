import { type Launcher, shellWords } from "./launcher.ts";

/** For managers that run the script itself on every node. */
export const simple: Launcher = ({ command }) => ({ start: [`slipway_start ${shellWords(command)}`] });
