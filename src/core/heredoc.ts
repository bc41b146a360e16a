/** `<<END` in shell text: what ends the document that follows. */

export interface Heredoc {
  readonly end: string;
  /** `<<-`: tabs before the end do not count. */
  readonly tabs: boolean;
  /** A quoted delimiter: nothing is expanded in the body, so nothing can be escaped. */
  readonly raw: boolean;
}

const BEGINS = /^<<(-?)[ \t]*/;
/** One piece of the delimiter: quoted in some way, or bare. */
const PIECE = /^(?:'([^'\n]*)'|"([^"\n]*)"|\\([^\n])|([^\s;&|<>()'"\\`]+))/;

export const heredocAt = (text: string, at: number): { document: Heredoc; length: number } | undefined => {
  let rest = text.slice(at, at + 500);
  const [begun, dash] = BEGINS.exec(rest) ?? [];
  if (begun === undefined) return undefined;
  let length = begun.length;
  rest = rest.slice(length);
  let end = "";
  let raw = false;
  for (let piece = PIECE.exec(rest); piece !== null; piece = PIECE.exec(rest)) {
    const [matched, single, double, escaped, bare] = piece;
    end += single ?? double ?? escaped ?? bare!;
    if (bare === undefined) raw = true;
    length += matched.length;
    rest = rest.slice(matched.length);
  }
  return length === begun.length ? undefined : { document: { end, tabs: dash === "-", raw }, length };
};
