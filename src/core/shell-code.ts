import { heredocAt } from "./heredoc.ts";
import { beginsSubscript, endCommand, endWord } from "./shell-command.ts";
import { type Frame, type Scan, code, dollar } from "./shell-frames.ts";

/** One step through the words of commands, outside all quotes; returns the position after it. */

const redirection = (scan: Scan, { command }: Frame & { kind: "code" }, text: string, at: number): number => {
  // a number before it is the descriptor, not a word
  if (/^\d+$/.test(command.word ?? "")) command.word = undefined;
  scan.late ??= endWord(command);
  if (text[at + 1] === "(") {
    scan.frames.push(code(true));
    return at + 2;
  }
  const found = text.startsWith("<<<", at) ? undefined : heredocAt(text, at);
  if (found !== undefined) {
    scan.pending.push(found.document);
    return at + found.length;
  }
  command.redirected = true;
  let end = at;
  while (end < text.length && /[<>&|]/.test(text[end]!)) end += 1;
  return end;
};

export const inCode = (scan: Scan, frame: Frame & { kind: "code" }, text: string, at: number): number => {
  const { command } = frame;
  const char = text[at]!;
  const grow = (more: string): void => {
    command.word = (command.word ?? "") + more;
  };
  switch (char) {
    case "\\":
      if (text[at + 1] !== "\n") grow(text[at + 1] ?? "");
      return at + 2;
    case "'":
    case '"':
      grow("");
      scan.frames.push({ kind: char === "'" ? "single" : "double" });
      return at + 1;
    case "`":
      grow("");
      scan.frames.push({ kind: "backtick" });
      return at + 1;
    case "$":
      if (text[at + 1] === "'" || text[at + 1] === '"') {
        grow("");
        scan.frames.push({ kind: text[at + 1] === "'" ? "dollar-single" : "double" });
        return at + 2;
      }
      grow("$");
      return dollar(scan, text, at, false);
    case "(":
      if (text[at + 1] === "(" && command.word === undefined) {
        scan.frames.push({ kind: "arithmetic", opens: "(", depth: 2 });
        return at + 2;
      }
      scan.frames.push(code(true, /\+?=$/.test(command.word ?? "")));
      return at + 1;
    case "[":
      grow("[");
      if (beginsSubscript(command, frame.list)) scan.frames.push({ kind: "arithmetic", opens: "[", depth: 1 });
      return at + 1;
    case ")":
      scan.late ??= endCommand(command);
      if (frame.closes && command.cases === 0) scan.frames.pop();
      return at + 1;
    case "\n":
    case ";":
    case "&":
    case "|":
      scan.late ??= endCommand(command);
      return at + 1;
    case "<":
    case ">":
      return redirection(scan, frame, text, at);
    case " ":
    case "\t":
      scan.late ??= endWord(command);
      return at + 1;
    case "#":
      if (command.word === undefined) scan.comment = true;
      else grow(char);
      return at + 1;
    default:
      grow(char);
      return at + 1;
  }
};
