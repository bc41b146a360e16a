import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, type Page, chromium } from "playwright-core";
import { expect } from "vitest";

/** Debian's Chromium, as users have it, and what is asked of every screen. */

export const CHROMIUM = "/usr/bin/chromium";
export const hasChromium = existsSync(CHROMIUM);

/** It asks nobody outside for anything. */
const QUIET = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export const openBrowser = (args: readonly string[] = []): Promise<Browser> =>
  chromium.launch({ executablePath: CHROMIUM, args: [...QUIET, ...args] });

/** What a page complains about: errors of scripts, and what its policy refused. */
export const complaintsOf = (page: Page): string[] => {
  const found: string[] = [];
  page.on("pageerror", (error) => found.push(String(error)));
  page.on("console", (message) => {
    // a server that is away is part of the test
    if (message.type() === "error" && !/Failed to load resource|net::ERR/.test(message.text()))
      found.push(message.text());
  });
  return found;
};

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/** WCAG 2.2 A and AA, as far as a program can tell. */
export const expectAccessible = async (page: Page): Promise<void> => {
  if (!(await page.evaluate(() => "axe" in globalThis))) {
    // not by a script element: the page's policy would refuse it
    const { readFile } = await import("node:fs/promises");
    await page.evaluate(await readFile(axe, "utf8"));
  }
  const violations = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run(options: object): Promise<{ violations: Violation[] }> } };
    return (await axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] })).violations;
  });
  const told = violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html}\n  ${node.failureSummary ?? ""}`).join("\n")}`,
  );
  expect(told).toEqual([]);
};
