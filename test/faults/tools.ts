import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "../cli/slipway-process.ts";

/** The small programs that the harness needs, built once per run if there is a C compiler. */
export interface Tools {
  /** Whether this Slipway knows `keep-history` in clusters.yaml; it says so itself. */
  readonly keepsHistory: boolean;
  /** What tasks execute; see appender.c. */
  readonly appender: string;
  /** Libraries for LD_PRELOAD; undefined without a compiler. */
  readonly fsyncShim: string | undefined;
  readonly clockShim: string | undefined;
  remove(): Promise<void>;
}

/** The same in sh, for a machine without a compiler: slower, with `dd` for the append and the fsync. */
const SCRIPT = `#!/bin/sh
printf '%s.%s %s %s\\n' "$SLIPWAY_RUN" "$SLIPWAY_TASK" "$SLIPWAY_ATTEMPT" "$SLIPWAY_TOKEN" |
  dd of="$1/$SLIPWAY_RUN.$SLIPWAY_TASK" oflag=append conv=notrunc,fsync status=none || exit 9
[ "$2" = 0 ] || sleep "$(printf '%d.%03d' $(($2 / 1000)) $(($2 % 1000)))"
[ "$3" != 0 ] && [ $((SLIPWAY_TASK % $3)) = 0 ] && [ "$SLIPWAY_ATTEMPT" -le "$4" ] || exit 0
[ $# = 5 ] || exit 7
tr '\\0' ' ' < "/proc/$PPID/cmdline" | grep -q spawner || exit 0
[ "$5" = spawner ] && kill -9 "$PPID"
read -r _ _ _ agent _ < "/proc/$PPID/stat"
[ "$5" = agent ] && tr '\\0' ' ' < "/proc/$agent/cmdline" | grep -q -e --settings && kill -9 "$agent"
exit 0
`;

const compile = (source: string, target: string, options: readonly string[]): boolean => {
  const { status } = spawnSync("cc", ["-O1", "-o", target, join(ROOT, "test", "faults", source), ...options]);
  return status === 0 && existsSync(target);
};

export const makeTools = async (binaries = ROOT): Promise<Tools> => {
  const directory = await mkdtemp(join(tmpdir(), "slw-tools-"));
  const appender = join(directory, "appender");
  if (!compile("appender.c", appender, [])) {
    await writeFile(appender, SCRIPT);
    await chmod(appender, 0o755);
  }
  const shim = (name: string): string | undefined => {
    const target = join(directory, `${name}.so`);
    return compile(`${name}.c`, target, ["-shared", "-fPIC", "-ldl"]) ? target : undefined;
  };
  const documented = await readFile(join(binaries, "docs", "clusters-file.md"), "utf8").catch(() => "");
  return {
    keepsHistory: documented.includes("`keep-history`"),
    appender,
    fsyncShim: shim("fsync-shim"),
    clockShim: shim("clock-shim"),
    remove: () => rm(directory, { recursive: true, force: true }),
  };
};
