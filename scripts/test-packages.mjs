// What the tests need beyond Node: workload managers, container runtimes and tools from Debian's packages, and some
// things from PyPI (test-venv.mjs). If it can (root, apt-get), this script installs what is missing; otherwise the tests
// that need it say so and are skipped.
import { spawnSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { installDask, installJupyter, installSchemathesis } from "./test-venv.mjs";

/** What must be there, and the packages that provide it. */
const NEEDS = [
  {
    what: "Slurm",
    has: ["/usr/sbin/slurmctld", "/usr/sbin/slurmd", "/usr/bin/sbatch", "/usr/sbin/munged"],
    packages: ["slurmctld", "slurmd", "slurm-client", "munge", "slurm-wlm-basic-plugins"],
  },
  {
    what: "Slurm's accounting",
    has: ["/usr/sbin/slurmdbd", "/usr/sbin/mariadbd"],
    packages: ["slurmdbd", "slurm-wlm-mysql-plugin", "mariadb-server"],
  },
  {
    what: "Grid Engine",
    has: ["/usr/lib/gridengine/sge_qmaster", "/usr/lib/gridengine/sge_execd", "/usr/lib/gridengine/qsub"],
    packages: ["gridengine-master", "gridengine-exec", "gridengine-client"],
    preseed: [
      "gridengine-common shared/gridenginemaster string localhost",
      "gridengine-common shared/gridenginecell string default",
      "gridengine-common shared/gridengineconfig boolean false",
      "gridengine-client shared/gridenginemaster string localhost",
      "gridengine-client shared/gridenginecell string default",
      "gridengine-client shared/gridengineconfig boolean false",
      "gridengine-master shared/gridengineconfig boolean false",
      "gridengine-exec shared/gridengineconfig boolean false",
    ],
  },
  {
    what: "OAR",
    has: ["/usr/sbin/oar-server", "/usr/bin/oarsub", "/usr/lib/postgresql/15/bin/postgres", "/usr/sbin/sshd"],
    packages: [
      "oar-server",
      "oar-server-pgsql",
      "oar-user",
      "oar-user-pgsql",
      "oar-node",
      "postgresql",
      "openssh-server",
    ],
  },
  { what: "task-spooler", has: ["/usr/bin/tsp"], packages: ["task-spooler"] },
  { what: "sudo", has: ["/usr/bin/sudo"], packages: ["sudo"] },
  { what: "shellcheck", has: ["/usr/bin/shellcheck"], packages: ["shellcheck"] },
  { what: "Open MPI", has: ["/usr/bin/mpirun", "/usr/bin/mpicc"], packages: ["openmpi-bin", "libopenmpi-dev"] },
  { what: "network tools", has: ["/usr/sbin/ip"], packages: ["iproute2"] },
  { what: "Podman", has: ["/usr/bin/podman", "/usr/sbin/runc"], packages: ["podman", "runc", "uidmap"] },
  { what: "Charliecloud", has: ["/usr/bin/ch-run"], packages: ["charliecloud-runtime"] },
  { what: "curl and jq", has: ["/usr/bin/curl", "/usr/bin/jq"], packages: ["curl", "jq"] },
  { what: "GNU parallel", has: ["/usr/bin/parallel"], packages: ["parallel"] },
  { what: "Prometheus", has: ["/usr/bin/prometheus", "/usr/bin/promtool"], packages: ["prometheus"] },
  { what: "nginx", has: ["/usr/sbin/nginx"], packages: ["nginx"] },
  {
    what: "Passenger",
    has: ["/usr/sbin/apache2", "/usr/lib/apache2/modules/mod_passenger.so"],
    packages: ["apache2", "passenger", "libapache2-mod-passenger"],
  },
  { what: "shells", has: ["/usr/bin/zsh", "/usr/bin/fish"], packages: ["zsh", "fish"] },
  { what: "Chromium", has: ["/usr/bin/chromium"], packages: ["chromium"] },
  { what: "busybox", has: ["/bin/busybox"], packages: ["busybox-static"] },
];

const missing = () => NEEDS.filter(({ has }) => !has.every((path) => existsSync(path)));

/** Packages must not start their own daemons: the tests start what they need, and stop it. */
const withoutServices = (work) => {
  const policy = "/usr/sbin/policy-rc.d";
  if (existsSync(policy)) return work();
  writeFileSync(policy, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  try {
    return work();
  } finally {
    spawnSync("rm", ["-f", policy]);
  }
};

const apt = (...args) =>
  spawnSync("apt-get", ["-q", "-y", "-o", "DPkg::Lock::Timeout=300", ...args], {
    encoding: "utf8",
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    timeout: 600_000,
  });

/** Installs what is missing if it can; says what it did and what is not there. */
export const installTestPackages = (args = []) => {
  // unit tests need nothing
  if (args.includes("--project") && !args.some((word) => ["system", "page", "clusters"].includes(word))) return [];
  return [...installDebianPackages(), ...installSchemathesis(), ...installJupyter(), ...installDask(aptInstall)];
};

const canApt = () => process.getuid?.() === 0 && existsSync("/usr/bin/apt-get");

/** A package that stands in for something else. */
const aptInstall = (name) => {
  if (!canApt()) return;
  withoutServices(() => {
    apt("update");
    apt("install", "--no-install-recommends", name);
  });
};

const installDebianPackages = () => {
  const wanted = missing();
  if (wanted.length === 0) return [];
  const names = wanted.map(({ what }) => what).join(", ");
  if (!canApt()) return [`not installed, and not root on Debian: ${names}; their tests are skipped`];
  return withoutServices(() => {
    apt("update");
    const preseed = wanted.flatMap((need) => need.preseed ?? []);
    if (preseed.length > 0) spawnSync("debconf-set-selections", [], { input: `${preseed.join("\n")}\n` });
    // each in its own call: a package that is not available does not hold back the others
    for (const { packages } of wanted) apt("install", "--no-install-recommends", ...packages);
    const left = missing();
    const lines = [`installed from Debian's packages: ${names}`];
    if (left.length > 0)
      lines.push(`could not be installed: ${left.map(({ what }) => what).join(", ")}; their tests are skipped`);
    return lines;
  });
};

if (process.argv[1] === import.meta.filename) for (const line of installTestPackages()) console.log(line);
