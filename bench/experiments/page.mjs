// Claim: the page stays quick with a million tasks. One Chromium, a quiet server, a run of 1,000,000 tasks that have ended: how
// long until something is seen, from a key to what it changes, from frame to frame while a timeline of 100,000 bars is moved;
// what scripts keep in memory; and how large the page is.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { startSite } from "../../test/page/site.mjs";
import { NO_FLEET, startLightAgents } from "../light-agents.mjs";
import { alternate, Skipped } from "../rounds.mjs";
import { Broken } from "../sample.mjs";
import { connectTo, runThrough } from "../sdk.mjs";
import { openSlipway, root } from "../slipway.mjs";

const CHROMIUM = "/usr/bin/chromium";
const QUIET = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

const p95 = (values) => values.toSorted((a, b) => a - b)[Math.floor(0.95 * (values.length - 1))];

const pageBytes = () =>
  readdirSync(join(root, "dist", "page"))
    .filter((name) => !name.endsWith(".gz"))
    .reduce((sum, name) => sum + gzipSync(readFileSync(join(root, "dist", "page", name))).length, 0);

/** Milliseconds from each input to the frame that shows what it changed, as the browser itself measures them. */
const inputs = async (page, presses) => {
  await page.evaluate(() => {
    globalThis.inputs = [];
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) if (entry.name === "keydown") globalThis.inputs.push(entry.duration);
    }).observe({ type: "event", durationThreshold: 16, buffered: false });
  });
  await page.getByRole("grid").focus();
  const keys = ["PageDown", "ArrowDown", "End", "PageUp", "Home"];
  for (let i = 0; i < presses; i++) {
    await page.keyboard.press(keys[i % keys.length]);
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  }
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 300)));
  const heard = await page.evaluate(() => globalThis.inputs);
  // those below the browser's threshold are not told
  return [...heard, ...Array.from({ length: Math.max(0, presses - heard.length) }, () => 16)];
};

/** Milliseconds between frames while the timeline is dragged to and fro. */
const frames = async (page, steps) => {
  const canvas = page.locator("canvas");
  await canvas.waitFor();
  const box = await canvas.boundingBox();
  await canvas.focus();
  for (let i = 0; i < 3; i++) await page.keyboard.press("+");
  await page.evaluate(() => {
    globalThis.frames = [];
    let before = performance.now();
    const tick = (now) => {
      globalThis.frames.push(now - before);
      before = now;
      globalThis.ticking = requestAnimationFrame(tick);
    };
    globalThis.ticking = requestAnimationFrame(tick);
  });
  await page.mouse.move(box.x + box.width / 2, box.y + 100);
  await page.mouse.down();
  for (let i = 0; i < steps; i++) await page.mouse.move(box.x + box.width / 2 + 250 * Math.sin(i / 9), box.y + 100);
  await page.mouse.up();
  return (await page.evaluate(() => (cancelAnimationFrame(globalThis.ticking), globalThis.frames))).slice(2);
};

/** Bytes that scripts keep, after what nobody needs was collected. */
const heap = async (page) => {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  return usedSize;
};

const look = async (browser, url, run, options) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  try {
    const page = await context.newPage();
    await page.goto(`${url}#/runs/${run}/tasks`);
    await page.getByRole("row").nth(5).getByRole("link").waitFor();
    const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime);
    const input = p95(await inputs(page, options.sized(100, 50, 10)));
    await page.goto(`${url}#/runs/${run}/timeline`);
    const frame = p95(await frames(page, options.sized(300, 150, 20)));
    return { paint, input, frame, heap: (await heap(page)) / 1e6 };
  } finally {
    await context.close();
  }
};

export const measurePage = async (options, say) => {
  if (!existsSync(CHROMIUM)) throw new Skipped("Chromium is not installed");
  const { chromium } = await import("playwright-core");
  const total = options.sized(1_000_000, 1_000_000, 20_000);
  const slipway = await openSlipway({ ...options, clusters: NO_FLEET });
  const client = await connectTo(slipway);
  const agents = await startLightAgents(slipway, 64, { mode: "vary" });
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: QUIET });
  const site = await startSite(slipway.home);
  try {
    const tasks = [{ name: "many", run: ["/bin/true"], each: { array: `1-${total}` } }];
    const { run } = await runThrough(client, { name: "page", cwd: "/", environment: {}, tasks });
    if (run.state !== "DONE") throw new Broken(`the run is ${run.state}`);
    await agents.close();
    const contender = {
      key: "page",
      label: "the page",
      measure: () => look(browser, site.url, run.id, options),
      text: ({ paint, input, frame, heap: bytes }) =>
        `first paint ${paint.toFixed(0)} ms, input ${input.toFixed(0)} ms, frame ${frame.toFixed(1)} ms, heap ${bytes.toFixed(1)} MB`,
    };
    const { values } = await alternate([contender], options.rounds, say);
    const found = (what) => values.get("page").map((each) => each[what]);
    const of = (name, title, unit, ours, atMost) => ({
      name,
      title: `the page, a run of ${total.toLocaleString("en")} tasks that have ended: ${title}`,
      unit,
      better: "less",
      ours,
      others: [],
      skipped: {},
      wanted: [{ atMost }],
    });
    return [
      of("page-paint", "first contentful paint", "ms", found("paint"), 1000),
      of("page-input", "from a key to what it changes in the table, p95", "ms", found("input"), 200),
      of("page-frame", "from frame to frame, moving 100,000 bars, p95", "ms", found("frame"), 33),
      of("page-heap", "what scripts keep in memory", "MB", found("heap"), 150),
      of("page-size", "all of it, gzipped", "KB", [pageBytes() / 1024], 150),
    ];
  } finally {
    await browser.close();
    await site.close();
    client.close();
    await slipway.close();
  }
};
