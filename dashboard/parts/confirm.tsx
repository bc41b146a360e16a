import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** Asks before anything is changed. One question at a time. */

interface Question {
  readonly title: string;
  readonly body: ComponentChildren;
  /** What the button says that does it: a verb and its object. */
  readonly yes: string;
  readonly danger?: boolean;
  readonly answer: (yes: boolean) => void;
}

const question = signal<Question | undefined>(undefined);

export const confirm = (asked: Omit<Question, "answer">): Promise<boolean> =>
  new Promise((resolve) => {
    question.value = { ...asked, answer: resolve };
  });

export const ConfirmDialog = () => {
  const dialog = useRef<HTMLDialogElement>(null);
  const asked = question.value;
  useEffect(() => {
    if (asked !== undefined) dialog.current?.showModal();
  }, [asked]);
  if (asked === undefined) return null;
  const close = (yes: boolean): void => {
    question.value = undefined;
    asked.answer(yes);
  };
  return (
    <dialog ref={dialog} aria-labelledby="confirm-title" onClose={() => close(false)}>
      <div class="dialog-body">
        <h2 id="confirm-title">{asked.title}</h2>
        <div class="soft">{asked.body}</div>
      </div>
      <div class="dialog-end">
        <button type="button" class="button" onClick={() => close(false)}>
          Keep as it is
        </button>
        <button
          type="button"
          class={asked.danger === true ? "button danger" : "button primary"}
          onClick={() => close(true)}
        >
          {asked.yes}
        </button>
      </div>
    </dialog>
  );
};
