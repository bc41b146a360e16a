import { programsOf } from "./preflight.ts";
import { findProgram, word, type ContainerRuntime } from "./runtime.ts";

/**
 * Charliecloud. The image is a directory that is not written to, so that a bind needs a target that exists: the job's
 * directory is put below /tmp, which is the rank's own. It inherits the environment and insists on USER.
 */
export const charliecloud: ContainerRuntime = (ask) => {
  const tmp = ask.binds.findLast(({ target }) => target === "/tmp");
  const place = `.${ask.name}`;
  return {
    lines: [
      ...findProgram("charliecloud", programsOf("charliecloud")),
      'export USER="${USER:-$(id -un)}"',
      `seen=/tmp/${place}`,
      `host_tmp=${tmp === undefined ? '"$own/tmp"' : word(tmp.source)}`,
      `mkdir -p "$host_tmp/${place}" || fail 125 "charliecloud: cannot make a place for the job in $host_tmp"`,
      'run=("$program" --private-tmp --bind "$host_tmp:/tmp" --bind "$job:$seen")',
      ...ask.binds
        .filter(({ target }) => target !== "/tmp")
        .map(({ source, target }) => `run+=(--bind ${word(`${source}:${target}`)})`),
      `run+=(--cd / ${word(ask.image)} --)`,
    ],
    stop: [],
    remove: [`rmdir "$host_tmp/${place}" 2>/dev/null`],
    notes: ask.binds.some(({ readOnly }) => readOnly)
      ? ["Charliecloud has no read-only binds: they are writable where the files' permissions allow it"]
      : [],
  };
};
