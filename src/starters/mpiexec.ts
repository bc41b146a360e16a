import { type Launch, type Launched, type Launcher, hostsOf, shellWords } from "./starter.ts";

/**
 * mpiexec and mpirun with one rank on each node, bound to nothing. Open MPI, the Hydra family (MPICH, Intel) and Cray's
 * PALS say this differently: which one it is, it tells itself. Where Open MPI does not know the manager (OAR), the
 * nodes are given as a list.
 */
const mpi = (launch: Launch, program: string): Launched => {
  const name = shellWords([launch.config.program ?? program]);
  const list = launch.manager === "oar";
  const hosts = `${launch.directory}/hosts`;
  return {
    start: [
      ...(list ? [`${hostsOf(launch)} >${shellWords([hosts])}`] : []),
      `case $(${name} --version 2>&1) in`,
      `*"Open MPI"* | *OpenRTE* | *PRTE*) set -- --map-by ppr:1:node --bind-to none${
        list ? ` --mca plm_rsh_agent oarsh --hostfile ${shellWords([hosts])}` : ""
      } ;;`,
      `*HYDRA* | *Hydra* | *Intel*) set -- -ppn 1 -bind-to none${list ? ` -launcher-exec oarsh -f ${shellWords([hosts])}` : ""} ;;`,
      `*PALS*) set -- --ppn 1 --cpu-bind none ;;`,
      `*) set -- ;;`,
      `esac`,
      `slipway_start ${name} -n ${launch.nodes} "$@" ${[shellWords(launch.config.overrides), shellWords(launch.command)]
        .filter((text) => text !== "")
        .join(" ")}`,
    ],
  };
};

export const mpiexec: Launcher = (launch) => mpi(launch, "mpiexec");
export const mpirun: Launcher = (launch) => mpi(launch, "mpirun");
