// Builds dist/: the CLI twice, with all verbs and with the light ones; the server, the SDK and what managers from outside
// need as one file each; and the agent as one file that a compute node runs with Node alone. Dependencies are bundled, so
// that a process starts fast. The page is built beside them (build-page.mjs).
import { execFileSync, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { buildPage } from "./build-page.mjs";
import { packPage } from "./pack-page.mjs";
import { thirdPartyNotices } from "./third-party.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");
const stamp = join(dist, ".built");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** The newest change to anything that the build reads. */
const newestSource = () => {
  let newest = 0;
  const look = (path) => {
    if (!existsSync(path)) return;
    const info = statSync(path);
    newest = Math.max(newest, info.mtimeMs);
    if (info.isDirectory()) for (const name of readdirSync(path)) look(join(path, name));
  };
  for (const name of ["src", "dashboard", "native", "package.json", "package-lock.json", "scripts"])
    look(join(root, name));
  return newest;
};

/** msgpackr without its optional native accelerator: it is not needed, and a compute node may not be able to load it. */
const plainMsgpackr = {
  name: "plain-msgpackr",
  setup: ({ onResolve }) =>
    onResolve({ filter: /^msgpackr$/ }, () => ({ path: join(root, "node_modules", "msgpackr", "index.js") })),
};

/** zod's messages in one language: the other forty are half a megabyte that every start would read. */
const englishZod = {
  name: "english-zod",
  setup: ({ onLoad }) =>
    onLoad({ filter: /[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, () => ({
      contents: 'export { default as en } from "./en.js";',
    })),
};

/** string-width made when it is first asked: its patterns take 40 ms, and most texts are plain (src/cli/render/text.ts). */
const patientStringWidth = {
  name: "patient-string-width",
  setup: ({ onLoad }) =>
    onLoad({ filter: /[\\/]string-width[\\/]index\.js$/ }, ({ path }) => {
      const text = readFileSync(path, "utf8");
      const [, imports, body] = /^((?:import [^\n]*\n)+)([^]*)$/.exec(text);
      const parts = body.split("export default function stringWidth");
      if (parts.length !== 2) throw new Error(`${path} is not as it was: see ${patientStringWidth.name}`);
      return {
        contents: `${imports}
const make = () => {${parts.join("return function stringWidth")}};
let made;
export default function stringWidth(...given) {
  made ??= make();
  return made(...given);
}`,
      };
    }),
};

/** commander can start verbs that are programs of their own; ours are not, and what would start them takes 2 ms to load. */
const commanderAlone = {
  name: "commander-alone",
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: /^node:child_process$/ }, ({ importer, path }) =>
      /[\\/]commander[\\/]/.test(importer) ? { path, namespace: "nothing" } : undefined,
    );
    onLoad({ filter: /^/, namespace: "nothing" }, () => ({ contents: "" }));
  },
};

/** What a program with code compiled before finds in a file beside it. */
const beside = (file) => ({
  name: `${file}-beside`,
  setup: ({ onResolve }) =>
    onResolve({ filter: new RegExp(`/${file}\\.ts$`) }, ({ kind }) =>
      kind === "entry-point" ? undefined : { path: `./${file}.cjs`, external: true },
    ),
});

/** It cannot import() itself (src/code-cache.ts). */
const importBeside = beside("import-module");

/** Verbs that need neither zod nor yaml: most of what is typed, and an eighth of the text (src/cli/quick.ts). */
const lightVerbs =
  "wait attach cancel list show tasks report logs jobs why events status top open down pilots agent tokens journal __complete".split(
    " ",
  );

/** The verbs in the light CLI: the others' modules are not there, and nobody asks for them. */
const onlyLight = {
  name: "only-light",
  setup: ({ onResolve, onEnd }) => {
    onResolve({ filter: /^\.\/verbs\// }, ({ path, kind }) =>
      kind !== "dynamic-import" || path === "./verbs/complete.ts" || lightVerbs.includes(basename(path, ".ts"))
        ? undefined
        : { path, external: true },
    );
    onEnd(({ metafile }) => {
      const heavy = Object.keys(metafile?.inputs ?? {}).find((path) => /node_modules\/(zod|yaml)\//.test(path));
      if (heavy !== undefined) throw new Error(`a light verb is not light any more: it needs ${heavy}`);
    });
  },
};

const common = {
  absWorkingDir: root,
  outdir: dist,
  bundle: true,
  write: false,
  platform: "node",
  target: "node20",
  format: "esm",
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
  define: { SLIPWAY_VERSION: JSON.stringify(version) },
  plugins: [plainMsgpackr, englishZod, patientStringWidth],
  // Bundled CommonJS loads Node's modules with require.
  banner: {
    js: 'import { createRequire as slipwayRequire } from "node:module";\nconst require = slipwayRequire(import.meta.url);',
  },
};

const commonJs = { format: "cjs", outExtension: { ".js": ".cjs" }, banner: {} };

/**
 * A program whose code, once compiled, is kept: CommonJS. As an address of its own it has the file's. Short text starts
 * faster; names stay for those who read traces.
 */
const program = {
  ...commonJs,
  minifyWhitespace: true,
  minifySyntax: true,
  sourcemap: "linked",
  define: { ...common.define, "import.meta.url": "slipwayUrl" },
  plugins: [...common.plugins, importBeside],
  banner: { js: 'const slipwayUrl = require("node:url").pathToFileURL(__filename).href;' },
};

/** The CLI: its lines stay short, since a trace names them, and certificates, a third of its text, are made by one verb. */
const cli = {
  ...program,
  lineLimit: 160,
  supported: { "dynamic-import": false },
  plugins: [...program.plugins, beside("x509"), commanderAlone],
};

const bundles = [
  { ...cli, entryPoints: { cli: "src/cli/main.ts" } },
  { ...cli, entryPoints: { "cli-light": "src/cli/main.ts" }, plugins: [...cli.plugins, onlyLight] },
  {
    ...commonJs,
    entryPoints: { "cli-quick": "src/cli/quick.ts" },
    define: { LIGHT_VERBS: JSON.stringify(lightVerbs) },
    minifyWhitespace: true,
    minifySyntax: true,
  },
  { ...commonJs, entryPoints: { x509: "src/home/x509.ts" }, minifyWhitespace: true, minifySyntax: true },
  { entryPoints: { server: "src/server/quick.ts" } },
  { ...program, entryPoints: { server: "src/server/main.ts" } },
  { ...commonJs, entryPoints: { "import-module": "src/import-module.ts" } },
  { entryPoints: { client: "src/client/index.ts" }, sourcemap: "linked" },
  // started once for each task that is a job of its own: CommonJS starts faster than modules do, and so does short text;
  // names stay for those who read traces
  {
    ...commonJs,
    entryPoints: { agent: "src/agent/main.ts", "agent-quick": "src/agent/quick.ts" },
    minifyWhitespace: true,
    minifySyntax: true,
  },
  {
    entryPoints: { provider: "src/managers/outside.ts", "provider-contract": "src/managers/provider-contract.ts" },
    sourcemap: "linked",
  },
];

const TYPE_OPTIONS =
  "--ignoreConfig --noCheck --declaration --emitDeclarationOnly --rewriteRelativeImportExtensions " +
  "--target es2023 --module nodenext --strict --exactOptionalPropertyTypes --skipLibCheck --types node";

/** Declarations: what `import … from "slipway/client"`, `slipway/provider` and `slipway/provider-contract` mean to TypeScript. */
const buildTypes = () => {
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  const places = [
    "--rootDir",
    join(root, "src"),
    "--outDir",
    join(dist, "types"),
    join(root, "src", "client", "index.ts"),
    join(root, "src", "managers", "outside.ts"),
    join(root, "src", "managers", "provider-contract.ts"),
  ];
  execFileSync(process.execPath, [tsc, ...TYPE_OPTIONS.split(" "), ...places], { cwd: root, stdio: "inherit" });
};

/** Written whole and renamed: whoever starts Slipway during a build gets the old or the new file, never half of one. */
const put = (path, contents) => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.new`, contents);
  renameSync(`${path}.new`, path);
};

const main = async () => {
  if (process.argv.includes("--if-stale") && existsSync(stamp) && statSync(stamp).mtimeMs >= newestSource()) return;
  const begun = performance.now();
  const began = new Date();
  const [page, ...results] = await Promise.all([
    buildPage(root, dist),
    ...bundles.map((options) => build({ ...common, ...options })),
  ]);
  const files = results.flatMap(({ outputFiles }) => outputFiles);
  // Pieces first, then the files that name them.
  for (const { path, contents } of files.toSorted((a, b) => b.path.split("/").length - a.path.split("/").length))
    put(path, contents);
  // of this program's earlier selves
  for (const name of readdirSync(dist))
    if (["agent.js", "cli.js", "cli.js.map", "chunks"].includes(name) || name.endsWith(".cache"))
      rmSync(join(dist, name), { recursive: true });
  for (const { path, contents } of page.files) put(path, contents);
  const written = new Set([...files, ...page.files].map(({ path }) => path));
  for (const name of readdirSync(join(dist, "page")))
    if (!written.has(join(dist, "page", name))) rmSync(join(dist, "page", name), { force: true });
  put(
    join(dist, "THIRD-PARTY.txt"),
    thirdPartyNotices(root, [...page.inputs, ...results.flatMap(({ metafile }) => Object.keys(metafile.inputs))]),
  );
  // run by the user's own Python
  for (const name of ["slipway_dask.py", "slipway_scheduler.py", "slipway_dask_worker.py"])
    put(join(dist, name), readFileSync(join(root, "src", "wrap", "shim", name)));
  packPage(join(dist, "page"));
  buildTypes();
  spawnSync(process.execPath, [join(root, "scripts", "build-native.mjs")], { stdio: "inherit" });
  put(stamp, `${version}\n`);
  // A source that changed while we built is newer than the stamp.
  utimesSync(stamp, began, began);
  const size = (name) => `${name} ${Math.round(statSync(join(dist, name)).size / 1024)} KB`;
  const shown = ["cli.cjs", "cli-light.cjs", "server.cjs", "client.js", "agent.cjs"].map(size);
  console.log(
    `built ${relative(process.cwd(), dist) || "."}: ${shown.join(", ")} in ${Math.round(performance.now() - begun)} ms`,
  );
};

main().catch((error) => {
  // esbuild has printed what is wrong with the sources.
  console.error(error.errors === undefined ? error : `the build failed: ${error.errors.length} errors`);
  process.exitCode = 1;
});
