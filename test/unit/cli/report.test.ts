import { describe, expect, it } from "vitest";
import { TASK_STATES } from "../../../src/core/states.ts";
import { escaped, html } from "../../../src/cli/render/report/html.ts";
import { type Report, reportPage } from "../../../src/cli/render/report/report.ts";

const HOSTILE = [
  "<script>alert(1)</script>",
  '"><img src=x onerror=alert(1)>',
  "' onmouseover='alert(1)",
  "</title></style></svg><script>alert(2)</script>",
  "<!-- -->&lt;b&gt;\u0000\u001b[31m\u202egnp.exe",
];

const report = (text: string): Report => ({
  run: {
    id: 3,
    name: text,
    state: "FAILED",
    total: 4,
    counts: { DONE: 2, FAILED: 2 },
    unneeded: 0,
    submitted: "2026-11-18T07:00:00.000Z",
    started: "2026-11-18T07:00:01.000Z",
    finished: "2026-11-18T07:01:01.500Z",
    eta: null,
    etaRange: null,
    etaReason: null,
    reason: text,
    retries: 1,
    losses: 0,
    outputLost: null,
    numbering: { start: 0, step: 1 },
  },
  stages: {
    folded: false,
    stages: [0, 1].map((index) => ({
      index,
      kind: "group" as const,
      name: text,
      level: index + 1,
      after: index === 0 ? [] : [0],
      total: 2,
      counts: { DONE: 1, FAILED: 1 },
      seconds: { p50: 1.5, expected: null },
      first: 2 * index,
      last: 2 * index + 1,
      groups: 1,
    })),
  },
  timeline: {
    began: "2026-11-18T07:00:01.000Z",
    until: 60_500,
    from: 0,
    to: 60_500,
    bars: 2,
    folded: false,
    lanes: [{ host: text, slot: 0, of: 1 }],
    lane: [0, 0],
    start: [0, 30_000],
    end: [20_000, -1],
    task: [0, 1],
    attempt: [1, 1],
    state: [15, 17],
    states: [...TASK_STATES],
    group: [0, 0],
  },
  failures: {
    run: 3,
    failed: 2,
    groups: [
      {
        exitCode: 3,
        signal: null,
        reason: text,
        lastLine: text,
        read: true,
        count: 2,
        tasks: [{ id: "3.1", index: 1, name: text }],
        why: { cause: "failed", detail: text, remedy: text },
      },
    ],
    more: { groups: 2, tasks: 7 },
  },
  efficiency: {
    run: 3,
    groups: [
      {
        name: text,
        tasks: 2,
        ranks: 1,
        cores: { requested: 4, used: 1.5, enough: 2 },
        memory: { requested: 2 ** 30, used: null, enough: null },
        time: { requested: null, used: 1.25, enough: 2 },
        killed: 0,
      },
    ],
    groupsLeftOut: 1,
  },
});

/** The tags of a page, without what is written in quotes inside them. */
const tagsOf = (page: string): string[] =>
  [...page.matchAll(/<([!/]?[a-z][\w-]*)((?:"[^"]*"|[^">])*)>/gi)].map(([, name, rest]) => {
    expect(rest, "an attribute that runs something").not.toMatch(/\son\w+\s*=|javascript:/i);
    return name!.toLowerCase();
  });

describe("a report", () => {
  it("is one page that loads nothing: graph, timeline, failures, efficiency", () => {
    const page = reportPage(report("dock"));
    for (const text of [
      "dock: run 3",
      "Graph",
      "Timeline",
      "Failures",
      "Efficiency",
      "1.5 of 4",
      "7 more tasks failed",
    ])
      expect(page).toContain(text);
    expect(page).toContain("default-src 'none'; style-src 'unsafe-inline'");
    expect(page).not.toMatch(/https?:|src=|href=|url\(|@import/);
    expect(page.match(/<rect class="(done|failed)"[^>]* y="1"/g)).toHaveLength(2);
  });

  it("everything from outside is text, never markup", () => {
    const known = new Set(tagsOf(reportPage(report("dock"))));
    const plain = tagsOf(reportPage(report("dock"))).length;
    for (const text of HOSTILE) {
      const page = reportPage(report(text));
      const tags = tagsOf(page);
      expect(
        tags.filter((tag) => !known.has(tag)),
        text,
      ).toEqual([]);
      expect(tags.length, text).toBe(plain);
      expect(page).toContain(escaped(text));
      // eslint-disable-next-line no-control-regex -- control characters are what this is about
      expect(page).not.toMatch(/[\u0000-\u0008\u000e-\u001f\u202e]/);
    }
  });

  it("a template escapes what is put into it, and keeps what was made by one", () => {
    expect(html`<b title="${"\"<'&"}">${html`<i>${"<i>"}</i>`}${7}${null}</b>`.html).toBe(
      '<b title="&quot;&lt;&#39;&amp;"><i>&lt;i&gt;</i>7</b>',
    );
  });

  it("of a run that has not begun there is nothing to draw", () => {
    const empty = report("x");
    const page = reportPage({
      ...empty,
      stages: { stages: [], folded: false },
      timeline: { ...empty.timeline, lanes: [], lane: [], start: [], end: [], bars: 0 },
      failures: { run: 3, failed: 0, groups: [], more: { groups: 0, tasks: 0 } },
      efficiency: { run: 3, groups: [], groupsLeftOut: 0 },
    });
    for (const text of ["Nothing has run", "No task failed", "No task has ended well"]) expect(page).toContain(text);
  });
});
