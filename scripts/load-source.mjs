// Imports TypeScript of src/ into a script: bundles it in memory and writes nothing.
import { build } from "esbuild";
import { root } from "./test-results.mjs";

/** Runs a few lines of TypeScript, with imports relative to the root, and returns what they export. */
export const loadSource = async (lines) => {
  const { outputFiles } = await build({
    stdin: { contents: lines, resolveDir: root, loader: "ts" },
    bundle: true,
    write: false,
    platform: "node",
    format: "esm",
    target: "node20",
    logLevel: "error",
    banner: {
      js: `import { createRequire as slipwayRequire } from "node:module";\nconst require = slipwayRequire(${JSON.stringify(root)});`,
    },
  });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
};
