/** Names that a running server knows: `slipway __complete KIND WORDS…` prints them. */
export type CandidateKind = "runs" | "clusters" | "queues" | "pilots" | "groups" | "things";

/** What can follow some words of the command line. */
export interface CompletionEntry {
  /** `[]` for slipway itself, `["pilots", "list"]` for a sub-command. */
  readonly words: readonly string[];
  readonly commands: readonly { readonly name: string; readonly summary: string }[];
  readonly options: readonly {
    readonly name: string;
    readonly summary: string;
    readonly takesValue: boolean;
    /** What its values are. */
    readonly values?: CandidateKind | undefined;
  }[];
  /** What its arguments are. */
  readonly arguments?: CandidateKind | undefined;
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
/** fish knows \' inside single quotes, not the end-and-start-again of POSIX shells. */
const fishQuoted = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
const key = (words: readonly string[]): string => words.join(" ");

const candidates = ({ commands, options }: CompletionEntry): string =>
  [...commands.map((it) => it.name), ...options.map((it) => it.name)].join(" ");

/** The lines of a `case` on the words typed so far. */
const cases = (entries: readonly CompletionEntry[]): string =>
  entries.map((entry) => `    ${quoted(key(entry.words))}) found=${quoted(candidates(entry))} ;;`).join("\n");

/** Sets `kind` to the names that may come next, from the command, and from `previous`, the word before. */
const kinds = (entries: readonly CompletionEntry[]): string => {
  const ofOptions = entries.flatMap(({ words, options }) =>
    options.flatMap(({ name, values }) =>
      values === undefined ? [] : [`    ${quoted(`${key(words)} ${name}`)}) kind=${values} ;;`],
    ),
  );
  const ofArguments = entries.flatMap(({ words, arguments: names }) =>
    names === undefined ? [] : [`      ${quoted(key(words))}) kind=${names} ;;`],
  );
  return `  local kind=''
  case "$command $previous" in
${ofOptions.join("\n")}
  esac
  if [[ -z "$kind" && "$current" != -* ]]; then
    case "$command" in
${ofArguments.join("\n")}
    esac
  fi`;
};

/** Walks over words to the deepest command they name; options are passed over. Works in bash and zsh. */
const walk = (entries: readonly CompletionEntry[], words: string): string => `  local command='' word
  for word in ${words}; do
    case "$command $word" in
${entries
  .filter((entry) => entry.words.length > 0)
  .map(
    (entry) =>
      `      ${quoted(`${key(entry.words.slice(0, -1))} ${entry.words.at(-1)}`)}) command=${quoted(key(entry.words))} ;;`,
  )
  .join("\n")}
    esac
  done
  local found=''
  case "$command" in
${cases(entries)}
  esac`;

export const bashScript = (entries: readonly CompletionEntry[]): string => `_slipway() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"
  if [[ "$current" == "=" ]]; then current=''; elif [[ "$previous" == "=" ]]; then previous="\${COMP_WORDS[COMP_CWORD-2]}"; fi
${walk(entries, '"${COMP_WORDS[@]:1:COMP_CWORD-1}"')}
${kinds(entries)}
  COMPREPLY=()
  if [[ -n "$kind" ]]; then
    COMPREPLY=($(compgen -W "$("\${COMP_WORDS[0]}" __complete "$kind" "\${COMP_WORDS[@]:1}" 2>/dev/null | cut -f1)" -- "$current"))
    if [[ \${#COMPREPLY[@]} -gt 0 ]]; then return; fi
  fi
  if [[ "$current" == -* || -z "$command" || "$found" != -* ]]; then
    COMPREPLY=($(compgen -W "$found" -- "$current"))
  fi
  if [[ \${#COMPREPLY[@]} -eq 0 ]]; then COMPREPLY=($(compgen -f -- "$current")); fi
}
complete -o filenames -F _slipway slipway
`;

export const zshScript = (entries: readonly CompletionEntry[]): string => `#compdef slipway
_slipway() {
  local current="$PREFIX" previous="\${words[CURRENT-1]}"
  if [[ "$current" == --*=* ]]; then previous="\${current%%=*}"; compset -P '*='; current="$PREFIX"; fi
${walk(entries, '"${(@)words[2,CURRENT-1]}"')}
${kinds(entries)}
  if [[ -n "$kind" ]]; then
    local -a names
    names=("\${(@f)$("\${words[1]}" __complete "$kind" "\${(@)words[2,-1]}" 2>/dev/null)}")
    names=("\${(@)\${(@)names//:/\\:}/$'\t'/:}")
    if [[ -n "\${names[1]}" ]]; then _describe -V "$kind" names; return; fi
  fi
  if [[ "$PREFIX" == -* || -z "$command" || "$found" != -* ]]; then
    compadd -- \${=found}
  fi
  [[ "$PREFIX" == -* ]] || _files
}
compdef _slipway slipway
`;

/** fish runs it with the words before the cursor. */
const fishNames = (kind: CandidateKind): string => {
  const line = "(commandline -opc)";
  return `(set -l line ${line}; $line[1] __complete ${kind} $line[2..-1] 2>/dev/null)`;
};

export const fishScript = (entries: readonly CompletionEntry[]): string => {
  const lines: string[] = [];
  const top = entries.find((entry) => entry.words.length === 0);
  const names = top?.commands.map((it) => it.name).join(" ") ?? "";
  for (const entry of entries) {
    const [verb, sub] = entry.words;
    const condition =
      verb === undefined
        ? `not __fish_seen_subcommand_from ${names}`
        : `__fish_seen_subcommand_from ${verb}${sub === undefined ? "" : `; and __fish_seen_subcommand_from ${sub}`}`;
    for (const { name, summary } of entry.commands)
      lines.push(`complete -c slipway -f -n ${fishQuoted(condition)} -a ${name} -d ${fishQuoted(summary)}`);
    for (const { name, summary, takesValue, values } of entry.options)
      if (name.startsWith("--"))
        lines.push(
          `complete -c slipway -n ${fishQuoted(condition)} -l ${name.slice(2)}${takesValue ? " -r" : ""}${values === undefined ? "" : ` -f -a ${fishQuoted(fishNames(values))}`} -d ${fishQuoted(summary)}`,
        );
    if (entry.arguments !== undefined)
      lines.push(`complete -c slipway -f -n ${fishQuoted(condition)} -a ${fishQuoted(fishNames(entry.arguments))}`);
  }
  return `${lines.join("\n")}\n`;
};
