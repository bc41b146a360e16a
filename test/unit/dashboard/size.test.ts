import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { buildPage } from "../../../scripts/build-page.mjs";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const MOST_BYTES = 150 * 1024;

describe("the page as it is built", () => {
  let files: readonly { path: string; contents: string | Uint8Array }[];
  const text = (ending: string): string =>
    Buffer.from(files.find(({ path }) => path.endsWith(ending))!.contents).toString();
  beforeAll(async () => void ({ files } = await buildPage(root, "/dist")));

  it("is at most 150 KB gzipped, all of it", () => {
    const size = files.reduce((sum, { contents }) => sum + gzipSync(contents).length, 0);
    expect(size).toBeGreaterThan(10_000);
    expect(size).toBeLessThanOrEqual(MOST_BYTES);
  });

  it("asks nobody else for anything, has relative addresses, and nothing inline that its policy would refuse", () => {
    const index = text("index.html");
    expect(index).not.toMatch(/<style|style=|<script(?![^>]*\ssrc=)|\son\w+=|(src|href)="(\/|\w+:)/);
    expect(text(".css")).not.toMatch(/url\(|@import/);
    const hosts = [...text(".js").matchAll(/https?:\/\/[\w.-]+/g)].map(([host]) => host);
    // names of XML, which are no addresses
    expect(hosts.filter((host) => host !== "http://www.w3.org")).toEqual([]);
    expect(text(".js")).not.toMatch(/eval\(|new Function\(/);
  });

  it("has no source that could show text as markup", () => {
    const sources = readdirSync(`${root}/dashboard`, { recursive: true, encoding: "utf8" }).filter((name) =>
      /\.tsx?$/.test(name),
    );
    expect(sources.length).toBeGreaterThan(30);
    for (const name of sources)
      expect(readFileSync(`${root}/dashboard/${name}`, "utf8"), name).not.toMatch(
        /dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write/,
      );
  });
});
