// Alternates contenders in rounds, so that whatever else the machine does affects all of them alike.
import { untilQuiet } from "./machine.mjs";
import { median } from "./statistics.mjs";

/** A contender that is not here; the reason is shown in place of its numbers. */
export class Skipped extends Error {}

/**
 * Measures every contender once per round, and begins each round with another one. A peer that fails or is not here is
 * dropped with its reason; the failure of one of our own or of a limit breaks the experiment. `measure` returns numbers
 * by name; the values come back as lists by name, one entry per round.
 */
export const alternate = async (contenders, rounds, say) => {
  const values = new Map(contenders.map(({ key }) => [key, []]));
  const skipped = {};
  let live = [...contenders];
  for (let round = 0; round < rounds; round++) {
    const first = round % live.length;
    for (const contender of [...live.slice(first), ...live.slice(0, first)]) {
      try {
        // one round only shows that it works
        if (rounds > 1) await untilQuiet();
        const measured = await contender.measure(round);
        values.get(contender.key).push(measured);
        say(`round ${round + 1} of ${rounds}: ${contender.label}: ${contender.text(measured)}`);
      } catch (error) {
        if (contender.optional !== true) throw error;
        skipped[contender.key] = error.message;
        values.delete(contender.key);
        live = live.filter((other) => other !== contender);
        say(`skipped: ${contender.label}: ${error.message}`);
      }
    }
  }
  return { values, skipped };
};

/** Of several ways to use one program, the one whose median is highest. */
export const bestOf = (family) =>
  family.reduce((best, other) => (median(other.values) > median(best.values) ? other : best));
