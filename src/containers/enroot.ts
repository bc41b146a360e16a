import { referenceOf } from "./image-paths.ts";
import { programsOf } from "./preflight.ts";
import { bindsTmp, findProgram, passEnvironment, word, type ContainerRuntime } from "./runtime.ts";

/**
 * Enroot. An image file is unpacked into a container of the rank's own, which is removed at its end: starting a file
 * directly needs root. A reference means a container that was created on the node before, named as Enroot names it;
 * else it is imported.
 */

/** `docker://REGISTRY#IMAGE:TAG`: the first part is a registry if it looks like a host. */
const enrootUri = (image: string): string => {
  const bare = image.replace(/^docker:\/\//, "");
  const slash = bare.indexOf("/");
  const first = slash < 0 ? "" : bare.slice(0, slash);
  return /[.:]/.test(first) ? `docker://${first}#${bare.slice(slash + 1)}` : `docker://${bare}`;
};

const enrootName = (image: string): string => image.replace(/^docker:\/\//, "").replaceAll(/[/:@]/g, "+");

const mount = (source: string, target: string, options: string): string =>
  `--mount "${source}:${target}:none:x-create=auto,rbind${options}"`;

const quoted = (path: string): string => path.replaceAll(/[\\"$`]/g, String.raw`\$&`);

const create = (image: string): string[] => {
  if (referenceOf(image) === undefined) return [`create_container ${word(image)}`];
  return [
    `if "$program" list | grep -q -x -F -e ${word(enrootName(image))}; then`,
    `  container=${word(enrootName(image))}`,
    "else",
    `  "$program" import --output "$own/image.sqsh" ${word(enrootUri(image))} || fail 125 "enroot: no image"`,
    '  create_container "$own/image.sqsh"',
    "fi",
  ];
};

export const enroot: ContainerRuntime = (ask) => ({
  lines: [
    ...findProgram("enroot", programsOf("enroot")),
    'if [ ! -w "${XDG_RUNTIME_DIR:-/nonexistent}" ]; then',
    '  export XDG_RUNTIME_DIR="$own/run"',
    '  (umask 077 && mkdir -p "$XDG_RUNTIME_DIR")',
    "fi",
    'if [ -n "${CUDA_VISIBLE_DEVICES:-}" ]; then',
    '  export NVIDIA_VISIBLE_DEVICES="${NVIDIA_VISIBLE_DEVICES:-$CUDA_VISIBLE_DEVICES}"',
    "fi",
    "created=",
    "create_container() {",
    `  container=${word(ask.name)}-$rank`,
    "  created=$container",
    '  "$program" create --force --name "$container" "$1" || fail 125 "enroot: cannot unpack $1"',
    "}",
    ...create(ask.image),
    "seen=$job",
    // in place of the image's own entry point
    `printf 'exec "%s"\\n' "\\$@" >"$own/rc"`,
    'run=("$program" start --rw --rc "$own/rc")',
    `run+=(${mount("$job", "$seen", "")})`,
    ...(bindsTmp(ask) ? [] : [`run+=(${mount("$own/tmp", "/tmp", "")})`]),
    ...ask.binds.map(
      ({ source, target, readOnly }) => `run+=(${mount(quoted(source), quoted(target), readOnly ? ",ro" : "")})`,
    ),
    ...passEnvironment(ask.inherit),
    'run+=("$container")',
  ],
  stop: [],
  remove: ['[ -z "$created" ] || "$program" remove --force "$created" >/dev/null 2>&1'],
  notes: [],
});
