/** Slurm's short form of many host names: `n[1-3,07],gpu[1-2]-ib[0-1]`. Text that is not one stays as it is. */

const MOST_HOSTS = 20_000;

/** At the commas outside brackets. */
const splitTop = (text: string): string[] => {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === "[") depth += 1;
    else if (text[at] === "]") depth -= 1;
    else if (text[at] === "," && depth <= 0) {
      parts.push(text.slice(from, at));
      from = at + 1;
    }
  }
  return [...parts, text.slice(from)].filter((part) => part !== "");
};

/** `1-3,07` as its numbers, with their leading zeros. */
const numbersOf = (ranges: string): string[] =>
  ranges.split(",").flatMap((range) => {
    const [, low, high] = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(range) ?? [];
    if (low === undefined) return [range];
    const [first, last] = [Number(low), Number(high ?? low)];
    const count = Math.min(Math.max(0, last - first + 1), MOST_HOSTS);
    return Array.from({ length: count }, (_, n) => String(first + n).padStart(low.length, "0"));
  });

const expand = (name: string): string[] => {
  const [matched, before, ranges, after] = /^([^[]*)\[([^\]]*)\](.*)$/s.exec(name) ?? [];
  if (matched === undefined) return [name];
  const rest = expand(after!);
  const hosts: string[] = [];
  for (const number of numbersOf(ranges!))
    for (const end of rest) {
      if (hosts.length >= MOST_HOSTS) return hosts;
      hosts.push(`${before}${number}${end}`);
    }
  return hosts;
};

/** At most 20,000 names, whatever the text claims. */
export const expandHostlist = (text: string): string[] => {
  const hosts: string[] = [];
  for (const part of splitTop(text)) {
    if (hosts.length >= MOST_HOSTS) break;
    hosts.push(...expand(part).slice(0, MOST_HOSTS - hosts.length));
  }
  return hosts;
};
