/** Text from outside: shown as it is, less what a screen cannot show. */

// colours and cursor movements of terminals, then what is left of control characters (tab and newline stay)
// eslint-disable-next-line no-control-regex
const SEQUENCES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;
// eslint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;
// what turns text round or hides in it
const DIRECTIONS = /[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** Output of programs as plain lines: a carriage return starts its line again, as in a terminal. */
export const plainOutput = (text: string): string =>
  text
    .replace(SEQUENCES, "")
    .replace(/\r+\n/g, "\n")
    .replace(/[^\n]*\r(?=[^\n])/g, "")
    .replace(/\r/g, "")
    .replace(CONTROLS, "�")
    .replace(DIRECTIONS, "");

/** One line of it, for cells and titles. */
export const oneLine = (text: string, most = 400): string => {
  const line = plainOutput(text.slice(0, most * 4))
    .replace(/\s+/g, " ")
    .trim();
  return line.length > most ? `${line.slice(0, most)}…` : line;
};

/** A command as a shell would read it back; for showing only. */
export const commandText = (words: readonly string[]): string => {
  if (words.length === 3 && words[0] === "/bin/sh" && words[1] === "-c") return words[2]!;
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
};
