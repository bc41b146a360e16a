/** Why a task with outputs runs, in words that name the file. Pure. */
export interface Reason {
  readonly kind: ReasonKind;
  /** The group, run or file that it is about. */
  readonly about?: string;
  /** The output that an input is newer than; what the system says. */
  readonly than?: string;
}

const TEXTS = {
  force: () => "--force was given",
  never: () => "skip: never",
  new: () => "no success of it is remembered",
  unfinished: (file: string) => `the last task that was to make ${file} did not succeed`,
  changed: () => "its command, environment, files or item are not those of its last success",
  before: (group: string) => `${group}, which it waits for, runs`,
  since: (group: string) => `${group}, which it waits for, has run since`,
  run: (run: string) => `it waits for run ${run}`,
  "no-output": (file: string) => `${file} is not there`,
  "no-input": (file: string) => `its input ${file} is not there`,
  newer: (file: string, output: string) => `${file} is newer than ${output}`,
  contents: () => "what its inputs hold has changed since its last success",
  unreadable: (file: string, what: string) => `${file} cannot be looked at (${what})`,
  large: (file: string, what: string) => `${file} is too large to be read (${what})`,
  unanswered: () => "the file system did not answer in time",
} as const satisfies Record<string, (about: string, than: string) => string>;

export type ReasonKind = keyof typeof TEXTS;

export const reasonText = ({ kind, about = "", than = "" }: Reason): string =>
  (TEXTS[kind] as (about: string, than: string) => string)(about, than);
