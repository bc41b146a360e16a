import { join } from "node:path";
import { openProgram } from "../code-cache.ts";
import { putBack } from "../extra-authorities.ts";

/**
 * Entry point of dist/cli-quick.cjs: starts cli.cjs, which lies beside it and has all verbs, or cli-light.cjs, which has
 * those that read neither runs nor clusters, and is a fifth of it. The build says which these are.
 */

declare const LIGHT_VERBS: readonly string[];

type Main = typeof import("./main.ts").main;

/** Global options that need no value of their own. */
const ALONE = /^(--home=.*|--json|-q|--quiet|--no-color|--debug)$/s;

/** Whether this command line certainly uses a verb that cli-light.cjs has. */
const isLight = (argv: readonly string[]): boolean => {
  let at = 0;
  while (argv[at] === "--home" || ALONE.test(argv[at] ?? "")) at += argv[at] === "--home" ? 2 : 1;
  return LIGHT_VERBS.includes(argv[at] ?? "");
};

/** Runs the command line of this process, and ends it. `root` is where Slipway is installed. */
export const start = async (root: string): Promise<never> => {
  // bin/slipway set them aside
  putBack();
  const argv = process.argv.slice(2);
  const { exports, keep } = openProgram(join(root, "dist", isLight(argv) ? "cli-light.cjs" : "cli.cjs"));
  let use: string | undefined;
  const status = await (exports as { main: Main }).main(argv, root, (used) => {
    use = used;
  });
  if (use !== undefined && status === 0) keep(use);
  process.exit(status);
};
