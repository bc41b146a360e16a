import { type Starter, shellWords } from "./starter.ts";

/** For managers that run the script itself on every node. */
export const simple: Starter = ({ command }) => ({ start: [`slipway_start ${shellWords(command)}`] });
