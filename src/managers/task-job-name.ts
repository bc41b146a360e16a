import type { TaskDialect } from "./task-dialect.ts";

/** Names of tasks' jobs: what a manager forbids is replaced by what looks alike. */

/** Other signs for what people write in names and some manager does not take. */
const SIGNS: Readonly<Record<string, readonly string[]>> = {
  ":": [";", "."],
  "/": ["|", "."],
  "\\": ["|", "."],
  "@": ["&", "+"],
  "*": ["+"],
  "?": ["!", "."],
  "[": ["(", "_"],
  "]": [")", "_"],
  "{": ["(", "_"],
  "}": [")", "_"],
  "'": ["`", "_"],
  '"': ["`", "_"],
  "`": ["_"],
  ";": ["."],
  ",": ["."],
  "=": ["-"],
  "|": ["."],
  "&": ["+"],
  "~": ["-"],
};

/** Each character that is not allowed becomes one that is: a letter without its accent, a sign of the table, or `_`. */
export const lookAlike = (text: string, isAllowed: (char: string) => boolean): string => {
  let name = "";
  for (const char of text) {
    if (isAllowed(char)) name += char;
    else {
      const plain = char.normalize("NFKD").replaceAll(/\p{M}/gu, "");
      const others = Object.hasOwn(SIGNS, char) ? SIGNS[char]! : [];
      if (plain !== "" && plain !== char && [...plain].every(isAllowed)) name += plain;
      else name += others.find(isAllowed) ?? "_";
    }
  }
  return name;
};

/** At most so many bytes, and no half of a character. */
export const cutBytes = (text: string, most: number): string => {
  let length = 0;
  let cut = "";
  for (const char of text) {
    length += Buffer.byteLength(char);
    if (length > most) break;
    cut += char;
  }
  return cut;
};

/** The name of a task's job: `prefix` is its cluster's `repo-key`, `mark` what it is found again by. */
export const taskJobName = (
  { jobName, mostInName }: Pick<TaskDialect, "jobName" | "mostInName">,
  prefix: string,
  task: string,
  mark: string,
): string => `${cutBytes(jobName(prefix + task), mostInName - mark.length - 1)}-${mark}`;

/** For managers without a dialect: processes of this machine take any name of one line. */
export const PLAIN_NAMES: Pick<TaskDialect, "jobName" | "mostInName"> = {
  mostInName: 200,
  jobName: (text) =>
    cutBytes(
      lookAlike(text, (char) => !/[\p{Cc}\p{Surrogate}]/u.test(char)),
      200,
    ) || "_",
};
