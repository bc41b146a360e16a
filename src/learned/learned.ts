import { Identities } from "./identities.ts";
import { type Template, Templates } from "./templates.ts";
import type { Lanes } from "../core/hash.ts";

/**
 * What tasks that ended well have taught, across runs and restarts: by identity the last success, by template the last
 * 100. Bounded, the oldest go first. It is advice: nothing that is journaled depends on it (decision 0030).
 */
export interface Learned {
  readonly identities: Identities;
  readonly templates: Templates;
  /** Counts what was learned, so that someone can tell whether anything is new. */
  readonly changes: number;
  /** Memory it takes. */
  readonly bytes: number;
  /**
   * A task ended well. `peak` is in bytes, null where nobody could tell. Without an identity it teaches its template
   * alone. Returns the template.
   */
  record(template: number, identity: Lanes | undefined, tookMs: number, peak: number | null, at: number): Template;
}

export interface LearnedLimits {
  readonly identities: number;
  /** Bytes. */
  readonly templates: number;
}

/** Together under 64 MB. */
export const LIMITS: LearnedLimits = { identities: 1_000_000, templates: 16_000_000 };

export const createLearned = (limits: LearnedLimits = LIMITS): Learned => {
  const identities = new Identities(limits.identities);
  const templates = new Templates(limits.templates);
  let changes = 0;
  return {
    identities,
    templates,
    get changes() {
      return changes;
    },
    get bytes() {
      return identities.bytes + templates.bytes;
    },
    record: (template, identity, tookMs, peak, at) => {
      changes += 1;
      if (identity !== undefined) identities.set(identity.lo, identity.hi, tookMs, peak ?? -1, at);
      return templates.add(template, tookMs, peak ?? -1);
    },
  };
};
