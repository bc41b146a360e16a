// The licences of the packages inside dist/: their texts must travel with their code.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** `node_modules/@hono/node-server/dist/index.js` → `node_modules/@hono/node-server`, at any depth of nesting. */
const packageOf = (path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0];

const licenceText = (directory) => {
  const name = readdirSync(directory).find((each) => /^(licen[cs]e|copying)(\.|-|$)/i.test(each));
  return name === undefined
    ? "(its package holds no licence text)"
    : readFileSync(join(directory, name), "utf8").trim();
};

export const thirdPartyNotices = (root, inputs) => {
  const directories = [...new Set(inputs.map(packageOf).filter((path) => path !== undefined))].toSorted();
  const notices = directories
    .map((path) => join(root, path))
    .filter((directory) => existsSync(join(directory, "package.json")))
    .map((directory) => {
      const { name, version, license } = JSON.parse(readFileSync(join(directory, "package.json"), "utf8"));
      return `${name} ${version} (${license ?? "no licence named"})\n\n${licenceText(directory)}\n`;
    });
  return `dist/ contains code of these packages, under their own licences.\n\n${notices.join(`\n${"-".repeat(80)}\n\n`)}`;
};
