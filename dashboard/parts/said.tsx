import { signal } from "@preact/signals";
import { ApiError, Unreachable } from "../data/api.ts";

/** What became of what somebody did: said below, and read out by screen readers. */

interface Said {
  readonly text: string;
  readonly bad: boolean;
}

const said = signal<Said | undefined>(undefined);
let timer: ReturnType<typeof setTimeout> | undefined;

export const say = (text: string, bad = false): void => {
  said.value = { text, bad };
  clearTimeout(timer);
  timer = setTimeout(() => (said.value = undefined), bad ? 20_000 : 6000);
};

export const sayError = (error: unknown): void => {
  if (error instanceof ApiError) say([error.message, error.hint].filter((part) => part !== "").join(" – "), true);
  else if (error instanceof Unreachable)
    say("The server does not answer; nothing was changed, as far as we know.", true);
  else throw error;
};

export const SaidLine = () => (
  <div class="said" role="status" aria-live="polite">
    {said.value !== undefined && (
      <p class={said.value.bad ? "problem" : "hint"}>
        {said.value.text}{" "}
        <button type="button" class="link-button" onClick={() => (said.value = undefined)}>
          dismiss
        </button>
      </p>
    )}
  </div>
);
