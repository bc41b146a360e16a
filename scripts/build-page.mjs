// Builds dist/page/: the page as one script, one style sheet, an icon, and the file that names them. Their names hold a hash
// of what is in them, so that a browser may keep them for ever; all addresses are relative.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { build } from "esbuild";

/** The files of dist/page/, index.html last; `inputs` are the sources they were made from. */
export const buildPage = async (root, dist) => {
  const source = join(root, "dashboard");
  const out = join(dist, "page");
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: { app: "dashboard/main.tsx", style: "dashboard/styles/index.css" },
    outdir: out,
    entryNames: "[name]-[hash]",
    bundle: true,
    write: false,
    minify: true,
    metafile: true,
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
    logLevel: "warning",
  });
  const icon = readFileSync(join(source, "icon.svg"));
  const hash = createHash("sha256").update(icon).digest("hex").slice(0, 8).toUpperCase();
  const files = [
    ...outputFiles.map(({ path, contents }) => ({ path, contents })),
    { path: join(out, `icon-${hash}.svg`), contents: icon },
  ];
  const named = (ending) => `page/${basename(files.find(({ path }) => path.endsWith(ending)).path)}`;
  const index = readFileSync(join(source, "index.html"), "utf8")
    .replace("%APP%", named(".js"))
    .replace("%STYLE%", named(".css"))
    .replace("%ICON%", named(".svg"));
  return {
    files: [...files, { path: join(out, "index.html"), contents: index }],
    inputs: Object.keys(metafile.inputs),
  };
};
