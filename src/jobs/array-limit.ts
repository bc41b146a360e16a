import type { Provider } from "../managers/provider.ts";
import { MOST_IN_ARRAY } from "./decide.ts";

/** How many elements an array may have, as its manager says: asked once, when the first array is about to be made. */
export interface ArrayLimit {
  /** Undefined while it is not known: whoever asked is told as soon as it is. */
  most(): number | undefined;
}

/** After a manager did not answer. */
const AGAIN_MS = 5000;

export const createArrayLimit = (
  { describe }: Pick<Provider, "describe">,
  onKnown: () => void,
  log: (text: string) => void,
): ArrayLimit => {
  let most: number | undefined;
  let isAsked = false;
  const ask = async (): Promise<void> => {
    try {
      most = (await describe()).mostInArray ?? MOST_IN_ARRAY;
      onKnown();
    } catch (error) {
      log(`how many elements an array may have is not known yet: ${(error as Error).message}`);
      setTimeout(() => {
        isAsked = false;
        onKnown();
      }, AGAIN_MS).unref();
    }
  };
  return {
    most: () => {
      if (most === undefined && !isAsked) {
        isAsked = true;
        void ask();
      }
      return most;
    },
  };
};
