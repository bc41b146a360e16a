import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { go, to } from "../data/route.ts";
import { PLACES } from "./places.ts";
import { nextTheme } from "../data/theme.ts";

/** Shortcuts, and the overlay that lists them. None works while somebody types. */

const helpOpen = signal(false);
export const openHelp = (): void => void (helpOpen.value = true);

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.closest("input, textarea, select, dialog, [contenteditable]") !== null;

/** How long after `g` its second key may come. */
const SECOND_KEY = 1500;

let goes = 0;

const onKey = (event: KeyboardEvent): void => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  if (event.timeStamp - goes < SECOND_KEY) {
    goes = -SECOND_KEY;
    const place = PLACES.find(({ key }) => key === event.key);
    if (place !== undefined) {
      event.preventDefault();
      go(to(...(place.path === "" ? [] : [place.path])));
    }
    return;
  }
  if (event.key === "g") goes = event.timeStamp;
  else if (event.key === "?") openHelp();
  else if (event.key === "t") nextTheme();
  else if (event.key === "/") {
    const field = document.querySelector<HTMLElement>("[data-filter]");
    if (field === null) return;
    event.preventDefault();
    field.focus();
  } else if (/^[1-9]$/.test(event.key))
    document.querySelectorAll<HTMLAnchorElement>(".tabs a")[Number(event.key) - 1]?.click();
};

export const startKeys = (): void => {
  goes = -SECOND_KEY;
  addEventListener("keydown", onKey);
};

const OTHERS = [
  ["1 … 9", "The tabs of a run"],
  ["/", "To the filter"],
  ["t", "Theme: as the system, light, dark"],
  ["?", "This help"],
  ["Esc", "Close what is open"],
  ["← → ↑ ↓", "Move in the timeline and in tables"],
  ["+ − 0", "Zoom the timeline in, out, to all of it"],
  ["Enter", "Open the chosen task of a table"],
] as const;

export const HelpDialog = () => {
  const dialog = useRef<HTMLDialogElement>(null);
  const open = helpOpen.value;
  useEffect(() => {
    if (open) dialog.current?.showModal();
  }, [open]);
  if (!open) return null;
  const close = (): void => void (helpOpen.value = false);
  return (
    <dialog ref={dialog} aria-labelledby="help-title" onClose={close}>
      <div class="dialog-body">
        <h2 id="help-title">Keys</h2>
        <dl class="facts">
          {PLACES.map(({ key, title }) => (
            <>
              <dt>
                <kbd>g</kbd> <kbd>{key}</kbd>
              </dt>
              <dd>{title}</dd>
            </>
          ))}
          {OTHERS.map(([keys, what]) => (
            <>
              <dt>
                <kbd>{keys}</kbd>
              </dt>
              <dd>{what}</dd>
            </>
          ))}
        </dl>
      </div>
      <div class="dialog-end">
        <button type="button" class="button primary" onClick={close}>
          Close
        </button>
      </div>
    </dialog>
  );
};
