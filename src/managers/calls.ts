import { SlipwayError } from "../errors.ts";
import { type CommandOptions, type CommandResult, reaching, type RunCommand } from "./commands.ts";

/** A driver's calls of its manager's programs, and what it throws when one of them fails. */
export interface Calls {
  /** Whatever its exit status; only what could not be run, or did not end, rejects. */
  call(program: string, words: readonly string[], options?: CommandOptions): Promise<CommandResult>;
  /** What it printed; rejects as `cluster-unreachable` when it failed. */
  ask(program: string, words: readonly string[]): Promise<string>;
  /** With what it printed, or with these words. */
  unreachable(said: CommandResult | string): SlipwayError;
  refused(said: CommandResult | string): SlipwayError;
}

export interface CallsOptions {
  readonly run: RunCommand;
  /** For messages. */
  readonly cluster: string;
  readonly pathOf: (program: string) => string;
  /** What each of its programs has beside the environment of this process. */
  readonly env?: () => Readonly<Record<string, string | undefined>>;
  /** What a failed command said, in short. */
  readonly wordsOf: (result: CommandResult) => string;
}

export const createCalls = ({ run, cluster, pathOf, env, wordsOf }: CallsOptions): Calls => {
  const reach = reaching(run, cluster);
  const detailOf = (said: CommandResult | string): string => (typeof said === "string" ? said : wordsOf(said));
  const call: Calls["call"] = (program, words, options = {}) =>
    reach([pathOf(program), ...words], { ...options, env: { ...env?.(), ...options.env } });
  const unreachable: Calls["unreachable"] = (said) =>
    new SlipwayError("cluster-unreachable", { cluster, detail: detailOf(said) });
  return {
    call,
    ask: async (program, words) => {
      const result = await call(program, words);
      if (result.code !== 0) throw unreachable(result);
      return result.stdout;
    },
    unreachable,
    refused: (said) => new SlipwayError("cluster-refused", { cluster, detail: detailOf(said) }),
  };
};
