import { effect, signal } from "@preact/signals";

/** Light, dark, or as the system has it. */

export const THEMES = ["auto", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const STORED = "slipway-theme";
const stored = localStorage.getItem(STORED);

export const theme = signal<Theme>(THEMES.find((each) => each === stored) ?? "auto");

export const startTheme = (): void =>
  void effect(() => {
    if (theme.value === "auto") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme.value;
    localStorage.setItem(STORED, theme.value);
  });

export const nextTheme = (): void => {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!;
};
