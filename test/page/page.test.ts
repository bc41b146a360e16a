import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createHome, ROOT, type SlipwayHome } from "../cli/slipway-process.ts";
import { complaintsOf, expectAccessible, hasChromium, openBrowser } from "./browser.ts";
import { type Site, startSite } from "./site.mjs";

/**
 * The page as people have it: a real server and its tasks, a real browser, behind a site's path. With SLIPWAY_SCREENSHOTS=1
 * it writes the pictures of README.md and docs/page.md.
 */

let slipway: SlipwayHome;
let site: Site;
let browser: Browser;
let page: Page;
let complaints: string[];

const skip = hasChromium ? false : "Chromium is not installed";

beforeAll(async () => {
  if (!hasChromium) return;
  slipway = await createHome();
  [browser] = await Promise.all([openBrowser(), slipway.run(["up"])]);
  site = await startSite(slipway.home);
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, reducedMotion: "reduce" });
  context.setDefaultTimeout(15_000);
  page = await context.newPage();
  complaints = complaintsOf(page);
  await page.goto(site.url);
});
afterAll(async () => {
  await browser?.close();
  await site?.close();
  await slipway?.cleanup();
});

const go = async (place: string): Promise<void> => {
  await page.goto(`${site.url}#/${place}`);
};

const open = (name: string): Promise<void> => writeFile(join(slipway.cwd, name), "");

/** A command that waits until the test opens its gate. */
const gated = (gate: string, rest: string): string => `while [ ! -e ${gate} ]; do sleep 0.05; done; ${rest}`;

const submit = async (name: string, text: string): Promise<number> => {
  await writeFile(join(slipway.cwd, `${name}.yaml`), text);
  return (await slipway.json<{ run: number }>(["submit", `${name}.yaml`])).run;
};

const DOCKING = `
name: docking
tasks:
  - name: prepare
    run: "${gated("prepared", "echo prepared")}"
  - name: dock
    each: { array: 1-40 }
    after: prepare
    run: "echo docking {item}; [ $((SLIPWAY_ITEM % 10)) != 0 ] || { echo no such ligand $SLIPWAY_ITEM >&2; exit 3; }"
  - name: rank
    after: { dock: any }
    run: echo ranked
`;

/** For pictures there is more to see. */
const SWEEP = process.env["SLIPWAY_SCREENSHOTS"] === undefined ? 400 : 1600;

const picture = async (name: string): Promise<void> => {
  if (process.env["SLIPWAY_SCREENSHOTS"] === undefined) return;
  await mkdir(join(ROOT, "docs", "pictures"), { recursive: true });
  await page.screenshot({ path: join(ROOT, "docs", "pictures", `${name}.png`) });
};

describe.skipIf(skip)(`the page in a browser${skip === false ? "" : ` (skipped: ${skip})`}`, () => {
  let docking: number;
  let sweep: number;

  it("opens below a path, and tells live that a run ends", async () => {
    docking = await submit("docking", DOCKING);
    await page.getByRole("link", { name: "docking" }).click();
    await page.getByRole("heading", { name: `Run ${docking} docking` }).waitFor();
    const head = page.locator("main h1 + .state");
    await head.getByText("running").waitFor();
    await page.getByRole("button", { name: "prepare" }).waitFor();
    await expectAccessible(page);
    await open("prepared");
    await head.getByText("failed").waitFor();
    await page.getByText("42 of 42 ended").waitFor();
    expect(complaints).toEqual([]);
  });

  it("shows on one screen how things are", async () => {
    sweep = await submit(
      "sweep",
      `name: sweep\ntasks: [{ name: simulate, each: { array: 1-${SWEEP} }, run: "sleep 0.0$((SLIPWAY_ITEM % 9))" }]`,
    );
    await go("");
    await page.getByRole("row", { name: /sweep/ }).getByText("running").waitFor();
    await page.locator(".chart path.area").first().waitFor();
    await expectAccessible(page);
    // charts with something in them
    if (process.env["SLIPWAY_SCREENSHOTS"] !== undefined) await page.waitForTimeout(26_000);
    await picture("page-overview");
    await page.getByRole("row", { name: /sweep/ }).getByText("done").waitFor({ timeout: 45_000 });
    await go(`runs/${docking}`);
  });

  it("shows a stage's counts, and opens it", async () => {
    await page.getByRole("button", { name: /^dock/ }).click();
    await page.getByRole("link", { name: "4 failed" }).last().click();
    await page.getByRole("row", { name: /dock\[10\]/ }).waitFor();
    expect(await page.getByRole("row", { name: /failed/ }).count()).toBe(4);
    await page.getByText("4 tasks", { exact: true }).waitFor();
  });

  it("filters and sorts the table; the filters are part of the address", async () => {
    await page.getByRole("button", { name: "failed", exact: true }).click();
    await page.getByText("40 tasks", { exact: true }).waitFor();
    expect(page.url()).not.toContain("state=");
    await page.getByRole("button", { name: /Duration/ }).click();
    await page
      .getByRole("columnheader", { name: /Duration/ })
      .and(page.locator("[aria-sort=descending]"))
      .waitFor();
    await page.getByRole("searchbox", { name: "Host" }).fill("nowhere");
    await page.getByRole("searchbox", { name: "Host" }).press("Enter");
    await page.getByText("No such tasks.").waitFor();
    await expectAccessible(page);
  });

  it("groups failures with why beside them", async () => {
    await go(`runs/${docking}/failures`);
    const failure = page.locator(".failure");
    await failure.getByText("exit code 3", { exact: true }).waitFor();
    expect(await failure.count()).toBe(1);
    await failure.locator(".last-line").getByText("no such ligand 10").waitFor();
    await failure.locator(".hint strong").waitFor();
    await expectAccessible(page);
  });

  it("draws the timeline, tells what lies under the pointer, and leads to the task", async () => {
    await go(`runs/${docking}/timeline`);
    const canvas = page.locator("canvas");
    await canvas.waitFor();
    await page.getByText("42 attempts").waitFor();
    const position = { x: 200, y: 34 };
    await canvas.hover({ position });
    await page.locator(".tip").getByText(`${docking}.0`).waitFor();
    await canvas.focus();
    await page.keyboard.press("+");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("0");
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Export for Perfetto" }).click();
    expect((await download).suggestedFilename()).toBe(`slipway-run-${docking}.trace.json`);
    await canvas.click({ position });
    await page.getByRole("heading", { name: `Task ${docking}.0` }).waitFor();
  });

  it("draws many bars as well", async () => {
    await go(`runs/${sweep}/timeline`);
    await page.getByText(`${SWEEP.toLocaleString("en")} attempts`).waitFor();
    await expectAccessible(page);
    await picture("page-timeline");
  });

  it("follows what a task writes", async () => {
    const run = await submit(
      "talks",
      `tasks: [{ name: talks, run: "echo one; ${gated("more", "echo two")}; ${gated("end", "echo three")}" }]`,
    );
    await go(`runs/${run}/task/0`);
    const log = page.getByRole("log");
    await log.getByText("one").waitFor();
    expect(await log.textContent()).not.toContain("two");
    await open("more");
    await log.getByText("two").waitFor();
    await go(`runs/${run}/logs`);
    await page.getByRole("log").getByText("two").waitFor();
    await open("end");
    await page.getByRole("log").getByText("three").waitFor();
  });

  it("retries what failed, after it has asked", async () => {
    await go(`runs/${docking}`);
    await page.getByRole("button", { name: "Retry 4" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Keep as it is" }).click();
    expect((await slipway.json<{ retries: number; state: string }>(["show", String(docking)])).state).toBe("FAILED");
    await page.getByRole("button", { name: "Retry 4" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Run them again" }).click();
    await page.getByRole("status").getByText("4 tasks will run again").waitFor();
  });

  it("cancels a run, after it has asked", async () => {
    const run = await submit("stays", `tasks: [{ name: stays, run: sleep 600 }]`);
    await go(`runs/${run}`);
    await page.getByRole("button", { name: "Cancel" }).click();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Cancel the run" }).click();
    await page.locator("main h1 + .state").getByText("cancelled").waitFor();
  });

  it("scrolls a million rows: each is reached, few exist", async () => {
    const run = await submit(
      "million",
      `name: million\ntasks: [{ name: first, run: "sleep 600" }, { name: m, each: { array: 1-1000000 }, after: first, run: "true" }]`,
    );
    await slipway.run(["cancel", String(run)]);
    await go(`runs/${run}/tasks`);
    const table = page.getByRole("grid");
    await page.getByText("1,000,001 tasks").waitFor();
    await table.focus();
    await page.keyboard.press("End");
    await page.getByRole("link", { name: `${run}.1000000`, exact: true }).waitFor();
    await table.evaluate((box) => (box.scrollTop = box.scrollHeight / 2));
    await page
      .getByRole("link", { name: new RegExp(`^${run}\\.(49|50)\\d{4}$`) })
      .first()
      .waitFor();
    expect(await page.locator(".grid-row").count()).toBeLessThan(80);
    await page.keyboard.press("Home");
    await page.getByRole("link", { name: `${run}.0`, exact: true }).waitFor();
  });

  it("is used by keyboard alone", async () => {
    await go("");
    await page.reload();
    await page.getByRole("table").first().waitFor();
    await page.keyboard.press("Tab");
    expect(await page.evaluate(() => document.activeElement!.textContent)).toBe("Skip to content");
    await page.keyboard.press("Enter");
    expect(await page.evaluate(() => document.activeElement!.id)).toBe("main");
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await expectAccessible(page);
    await page.keyboard.press("Escape");
    await page.keyboard.press("g");
    await page.keyboard.press("r");
    await page.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
    await go(`runs/${docking}`);
    await page.getByRole("link", { name: "Tasks", exact: true }).waitFor();
    await page.keyboard.press("3");
    const table = page.getByRole("grid");
    await table.focus();
    await page.getByRole("row", { name: /dock\[1\]/ }).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    const outline = await table.evaluate((element) => getComputedStyle(element).outlineStyle);
    expect(outline).toBe("solid");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: `Task ${docking}.1` }).waitFor();
  });

  it("submits a run: errors by line, a dry run, then the run itself", async () => {
    await go("submit");
    await page.getByRole("textbox", { name: "Run file" }).fill("name: typed\ntasks:\n  - name: a\n    rum: echo\n");
    await page.getByRole("textbox", { name: "Directory" }).fill(slipway.cwd);
    await page.getByRole("button", { name: "Check" }).click();
    await page.getByRole("list", { name: "Errors" }).getByText("Line 4").waitFor();
    await expectAccessible(page);
    await page
      .getByRole("textbox", { name: "Run file" })
      .fill("name: typed\ntasks:\n  - name: a\n    run: echo here\n");
    await page.getByRole("button", { name: "Check" }).click();
    await page.getByText("Nothing is wrong.").waitFor();
    await page.getByRole("button", { name: "Submit" }).click();
    await page.locator("main h1 + .state").getByText("done").waitFor();
  });

  it("shows everything as text: names, output and reasons of a hostile run do nothing", async () => {
    const evil = `<img src=x onerror="globalThis.hacked=1">`;
    const run = await submit(
      "hostile",
      JSON.stringify({
        name: `${evil}\u202egnp.exe`,
        tasks: [
          {
            name: "a",
            each: { values: [evil, "</pre><script>globalThis.hacked=2</script>", "javascript:alert(1)"] },
            run: ["sh", "-c", `printf '%s\\033]0;title\\007\\033[31m' "$0"; printf '%s' "$0" >&2; exit 7`, "{item}"],
          },
        ],
      }),
    );
    for (const place of [
      "",
      `runs/${run}`,
      `runs/${run}/tasks`,
      `runs/${run}/failures`,
      `runs/${run}/logs`,
      `runs/${run}/task/0`,
      "events",
    ]) {
      await go(place);
      await page
        .locator("main")
        .getByText("onerror")
        .or(page.locator("main").getByText(`Task ${run}.0`))
        .first()
        .waitFor();
      expect(await page.locator("main img, main script").count()).toBe(0);
    }
    expect(await page.evaluate(() => (globalThis as { hacked?: number }).hacked)).toBeUndefined();
    expect(complaints).toEqual([]);
  });

  it("has room on a narrow screen, and is read in the dark", async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    await page.emulateMedia({ colorScheme: "dark" });
    for (const place of [
      "",
      "runs",
      `runs/${docking}`,
      `runs/${docking}/failures`,
      `runs/${docking}/task/10`,
      "pilots",
      "pilots/1",
      "jobs",
      "clusters",
      "submit",
    ]) {
      await go(place);
      await page.locator("main h1").first().waitFor();
      await expectAccessible(page);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    }
    await page.setViewportSize({ width: 1280, height: 860 });
    await page.emulateMedia({ colorScheme: "light" });
    await page.getByRole("button", { name: /^Theme/ }).click();
    await page.getByRole("button", { name: /^Theme: light/ }).click();
    expect(await page.evaluate(() => document.documentElement.dataset["theme"])).toBe("dark");
    await page.keyboard.press("t");
  });

  it("lets in whoever comes with the address that slipway open prints, and nobody else", async () => {
    const { stdout } = await slipway.run(["open", "--print"]);
    const [address] = /http:\/\/127\.0\.0\.1\S+/.exec(stdout)!;
    const context = await browser.newContext();
    const other = await context.newPage();
    const said = complaintsOf(other);
    await other.goto(address.replace(/#.*/, ""));
    await other.getByRole("heading", { name: "Sign in" }).waitFor();
    await expectAccessible(other);
    await other.goto("about:blank");
    await other.goto(address);
    await other.getByText("live", { exact: true }).waitFor();
    expect(other.url()).not.toContain("code=");
    await other.reload();
    await other.getByText("live", { exact: true }).waitFor();
    await other.getByRole("table").first().waitFor();
    expect(said).toEqual([]);
    await context.close();
  });

  it("says that the server is away, and goes on by itself when it is back", async () => {
    await go(`runs/${docking}`);
    await page.getByText("live", { exact: true }).waitFor();
    await slipway.run(["down", "--now"]);
    await page.getByRole("alert").getByText("The server does not answer").waitFor();
    await slipway.run(["up"]);
    const run = (await slipway.json<{ run: number }>(["submit", "--name", "after the restart", "--", "true"])).run;
    await page.getByText("live", { exact: true }).waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
    await go("");
    await page
      .getByRole("row", { name: /after the restart/ })
      .getByText("done")
      .waitFor();
    expect(run).toBeGreaterThan(docking);
  });

  it("asks again and again where a proxy keeps the stream back", async () => {
    site.buffers = true;
    const other = await browser.newPage();
    await other.clock.install();
    await other.goto(site.url);
    await other.getByRole("table").first().waitFor();
    await other.clock.fastForward(13_000);
    await other.locator("[data-link=polling]").waitFor();
    await slipway.run(["submit", "--name", "seen by polling", "--", "true"]);
    await other.getByRole("link", { name: "seen by polling" }).waitFor();
    site.buffers = false;
    await other.close();
  });

  it("checks a cluster", async () => {
    await go("clusters");
    await page.getByRole("button", { name: "Check" }).first().click();
    await page.getByText("Nothing is wrong.").waitFor();
    await expectAccessible(page);
  });
});
