import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { open, readdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { findProgram } from "../find-program.ts";

/** Opens a browser without telling anybody else what it opens: arguments are seen by everyone with `ps`. */

export interface Browser {
  readonly program: string;
  readonly args: readonly string[];
}

/** `$BROWSER`, else what the desktop has; undefined: there is no screen, or nothing that could open a page on it. */
export const findBrowser = async (
  env: Readonly<NodeJS.ProcessEnv>,
  platform: NodeJS.Platform = process.platform,
): Promise<Browser | undefined> => {
  const named = (env["BROWSER"] ?? "").split(":")[0]!.trim();
  const [name, ...args] = named === "" ? [platform === "darwin" ? "open" : "xdg-open"] : named.split(/\s+/);
  const hasScreen = platform === "darwin" || (env["DISPLAY"] ?? "") !== "" || (env["WAYLAND_DISPLAY"] ?? "") !== "";
  if (named === "" && !hasScreen) return undefined;
  const program = name!.startsWith("/") ? name : await findProgram(name!, undefined, env["PATH"] ?? "");
  return program === undefined ? undefined : { program, args };
};

const NAME = /^open-[0-9a-f]{16}\.html$/;

/** A new file in the home that only its owner can read and that leads to the page. Older ones, of no use by now, go. */
export const writeRedirect = async (home: string, url: string): Promise<string> => {
  for (const name of await readdir(home)) if (NAME.test(name)) await unlink(join(home, name)).catch(() => undefined);
  const path = join(home, `open-${randomBytes(8).toString("hex")}.html`);
  // never through a link that somebody put there
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(
      `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Slipway</title>` +
        `<meta http-equiv="refresh" content="0;url=${url}"><p><a href="${url}">Slipway</a></p>\n`,
    );
  } finally {
    await file.close();
  }
  return path;
};

/** Whether it could be started; what it does then is its own affair. */
export const startBrowser = ({ program, args }: Browser, path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const child = spawn(program, [...args, pathToFileURL(path).href], { detached: true, stdio: "ignore" });
    child.once("error", () => resolve(false));
    child.once("spawn", () => {
      child.unref();
      resolve(true);
    });
  });
