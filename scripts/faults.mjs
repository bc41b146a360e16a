// `npm run test:faults`: the fault harness of test/faults, bundled in memory. --help explains the arguments.
import { writeFileSync, rmSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { root } from "./test-results.mjs";

const entry = join(root, "test", "faults", "main.ts");
const { outputFiles } = await build({
  entryPoints: [entry],
  bundle: true,
  write: false,
  platform: "node",
  format: "esm",
  target: "node20",
  sourcemap: "inline",
  logLevel: "error",
  // Files of the harness find the repository from their own place, two directories below it; the bundle is elsewhere.
  define: { "import.meta.url": JSON.stringify(pathToFileURL(entry).href) },
  banner: {
    js: `import { createRequire as slipwayRequire } from "node:module";\nconst require = slipwayRequire(${JSON.stringify(root)});`,
  },
});
const directory = mkdtempSync(join(tmpdir(), "slw-bundle-"));
const bundle = join(directory, "faults.mjs");
process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
writeFileSync(bundle, outputFiles[0].contents);
process.setSourceMapsEnabled(true);
await import(pathToFileURL(bundle).href);
