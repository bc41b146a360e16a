/**
 * Builds the optional native spawner if there is a compiler; everything works without it. Prints one line and never
 * fails. `node scripts/build-native.mjs [OUTPUT]`: OUTPUT defaults to dist/slipway-spawner; SLIPWAY_NO_NATIVE=1 skips
 * the build.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const FLAGS = ["-std=gnu99", "-O2", "-Wall", "-Wextra"];

/** @returns {string} why there is no native spawner, or "" if it was built */
const build = (output) => {
  if (process.env["SLIPWAY_NO_NATIVE"] === "1") return "SLIPWAY_NO_NATIVE=1";
  if (process.platform !== "linux") return `it needs Linux, this is ${process.platform}`;
  const sources = readdirSync(join(root, "native"))
    .filter((name) => name.endsWith(".c"))
    .map((name) => join(root, "native", name));
  const draft = `${output}.${process.pid}`;
  let reason = "no C compiler (cc, gcc, clang)";
  try {
    mkdirSync(dirname(output), { recursive: true });
    for (const compiler of ["cc", "gcc", "clang"]) {
      const made = spawnSync(compiler, [...FLAGS, "-o", draft, ...sources], { encoding: "utf8" });
      if (made.error !== undefined) continue;
      if (made.status === 0) {
        renameSync(draft, output); // in one step: an agent never finds half of it
        return "";
      }
      reason = `${compiler}: ${made.stderr.split("\n").find((line) => line.includes("error")) ?? `status ${made.status}`}`;
    }
  } catch (error) {
    reason = error.message;
  }
  rmSync(draft, { force: true });
  return reason;
};

const output = process.argv[2] ?? join(root, "dist", "slipway-spawner");
const reason = build(output);
console.log(
  reason === "" ? `native spawner: built ${relative(process.cwd(), output)}` : `native spawner: skipped (${reason})`,
);
