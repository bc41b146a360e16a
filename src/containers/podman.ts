import { referenceOf } from "./image-paths.ts";
import { programsOf } from "./preflight.ts";
import { bindsTmp, findProgram, passEnvironment, word, type ContainerRuntime } from "./runtime.ts";

/**
 * Podman. Its containers start with an empty environment, so that each variable is named; they share the node's network
 * and host names; and they outlive whoever started them, so that the rank stops and removes its container by name.
 */

const imageWords = (image: string): string => {
  if (referenceOf(image) === undefined) {
    return /\.(?:tar|tar\.gz|tgz|oci)$/.test(image) ? word(`docker-archive:${image}`) : `--rootfs ${word(image)}`;
  }
  return word(image);
};

/** Where no runtime directory is given, Podman's own fallback, which all jobs of a user share. */
const RUNTIME_DIRECTORY = [
  'if [ ! -w "${XDG_RUNTIME_DIR:-/nonexistent}" ]; then',
  '  XDG_RUNTIME_DIR="/tmp/podman-run-$(id -u)"',
  '  (umask 077 && mkdir -p "$XDG_RUNTIME_DIR") || fail 125 "podman: cannot make $XDG_RUNTIME_DIR"',
  "fi",
  "export XDG_RUNTIME_DIR",
];

/** Without either of the two the container would start, with no GPU in it. */
const NVIDIA_GPUS = [
  "# GPUs come into the container by a CDI file that describes them, or by NVIDIA's older hook",
  "if grep -q -s -F nvidia.com/gpu /etc/cdi/* /var/run/cdi/*; then",
  "  run+=(--device nvidia.com/gpu=all)",
  "elif grep -q -s '' /etc/containers/oci/hooks.d/*nvidia* /usr/share/containers/oci/hooks.d/*nvidia*; then",
  '  export NVIDIA_VISIBLE_DEVICES="${NVIDIA_VISIBLE_DEVICES:-${CUDA_VISIBLE_DEVICES:-all}}"',
  "else",
  '  fail 125 "podman: no CDI file describes the NVIDIA GPUs of this node, so the container would start without them;' +
    ' its administrator can make one: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"',
  "fi",
];

const GPU_OPTIONS = {
  cuda: NVIDIA_GPUS,
  rocm: ["run+=(--device /dev/kfd --device /dev/dri)"],
  cpu: [],
} as const;

export const podman: ContainerRuntime = (ask) => ({
  lines: [
    ...findProgram("podman", programsOf("podman")),
    ...RUNTIME_DIRECTORY,
    "seen=$job",
    `container=${word(ask.name)}-$rank`,
    'run=("$program" run --rm --name "$container" --network host --ipc host --no-hosts --entrypoint "")',
    "run+=(--volume /etc/hosts:/etc/hosts:ro)",
    ...GPU_OPTIONS[ask.slotType],
    'run+=(--volume "$job:$seen")',
    ...(bindsTmp(ask) ? [] : ['run+=(--volume "$own/tmp:/tmp")']),
    ...ask.binds.map(
      ({ source, target, readOnly }) => `run+=(--volume ${word(`${source}:${target}${readOnly ? ":ro" : ""}`)})`,
    ),
    ...passEnvironment(ask.inherit),
    `run+=(--workdir / ${imageWords(ask.image)})`,
  ],
  stop: ['"$program" stop --time 5 "$container" >/dev/null 2>&1'],
  remove: ['"$program" rm --force --time 0 "$container" >/dev/null 2>&1'],
  notes: [],
});
