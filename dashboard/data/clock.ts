import { signal } from "@preact/signals";

/** Times in answers are of the server's clock, which each answer tells: how long ago something was is counted by it. */

let offset = 0;

/** The server's time now, in milliseconds; moves once a second while somebody looks. */
export const now = signal(Date.now());

export const serverNow = (): number => Date.now() + offset;

export const hearClock = (header: string | null): void => {
  const told = Number(header);
  if (header === null || !Number.isFinite(told)) return;
  const heard = told - Date.now();
  // the way here takes time: what is a little late is not another clock
  if (Math.abs(heard - offset) > 1500) offset = heard;
};

export const startClock = (): void => {
  const tick = (): void => {
    if (!document.hidden) now.value = serverNow();
  };
  setInterval(tick, 1000);
  document.addEventListener("visibilitychange", tick);
};
