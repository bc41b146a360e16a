import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { compareClusters } from "../../../src/config/compare-clusters.ts";
import { combineClusters, readClustersFile } from "../../../src/config/clusters-file.ts";
import { loadClusters } from "../../../src/config/load-clusters.ts";

const read = (text: string) => combineClusters([readClustersFile(text, "clusters.yaml")]);
const fault = (text: string): string => {
  try {
    read(text);
  } catch (error) {
    return (error as Error).message;
  }
  return "";
};

describe("page: in clusters.yaml", () => {
  it("names hosts and the site's origin; nothing is open by itself", () => {
    expect(read("").page).toEqual({ hosts: [] });
    expect(
      read("page: {hosts: [Portal.Example.org, 10.1.2.3, '[fe80::1]'], origin: 'https://portal.example.org/'}").page,
    ).toEqual({
      hosts: ["portal.example.org", "10.1.2.3", "[fe80::1]"],
      origin: "https://portal.example.org",
    });
  });

  it("refuses what is no host, and an origin that is more than one or not https", () => {
    for (const host of ["https://x.example", "x.example:80", "x/y", "*.example", "*", "", "a b", "x..y", "-x"])
      expect(fault(`page: {hosts: ['${host}']}`), host).toMatch(/page\.hosts/);
    for (const origin of [
      "http://x.example",
      "https://x.example/slipway",
      "x.example",
      "https://u:p@x.example",
      "https://x.example?y",
    ])
      expect(fault(`page: {origin: '${origin}'}`), origin).toMatch(/page\.origin/);
    expect(fault(`page: {hosts: [${Array.from({ length: 101 }, (_, i) => `h${i}`).join(", ")}]}`)).toContain(
      "101 names",
    );
    expect(fault("page: {host: x}")).toMatch(/unknown key 'host'.*hosts/);
  });

  it("counts at once when the file changes", () => {
    const { changes, later, config } = compareClusters(read(""), read("page: {hosts: [a.example]}"));
    expect([changes, later]).toEqual([['page: hosts [] → ["a.example"]'], []]);
    expect(config.page.hosts).toEqual(["a.example"]);
  });
});

describe("page: in files of others", () => {
  let root: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "slipway-page-"));
    await mkdir(join(root, "home"));
    await mkdir(join(root, "run"));
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  it("is refused beside a run's file, and taken from the home and from --clusters", async () => {
    const text = "page: {hosts: [a.example]}\n";
    const found = join(root, "run", "clusters.yaml");
    await writeFile(found, text);
    await expect(loadClusters({ home: join(root, "home"), foundPath: found })).rejects.toMatchObject({
      code: "bad-value",
      message: expect.stringContaining("beside a run"),
    });
    expect((await loadClusters({ home: join(root, "home"), explicitPath: found })).page.hosts).toEqual(["a.example"]);
    await writeFile(join(root, "home", "clusters.yaml"), text);
    expect((await loadClusters({ home: join(root, "home") })).page.hosts).toEqual(["a.example"]);
  });
});
