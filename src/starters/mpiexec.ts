import { hostsOf, type StartAsk, type StartLines, type Starter, shellWords } from "./starter.ts";

/**
 * mpiexec and mpirun with one rank on each node, bound to nothing. Open MPI, the Hydra family (MPICH, Intel) and Cray's
 * PALS spell this differently: `--version` says which one it is. Where Open MPI does not know the manager (OAR), the
 * nodes are given as a list.
 */
const mpi = (ask: StartAsk, program: string): StartLines => {
  const name = shellWords([ask.config.program ?? program]);
  const { remoteShell } = ask.job;
  const list = remoteShell !== undefined;
  const hosts = `${ask.directory}/hosts`;
  return {
    start: [
      ...(list ? [`${hostsOf(ask)} >${shellWords([hosts])}`] : []),
      `case $(${name} --version 2>&1) in`,
      `*"Open MPI"* | *OpenRTE* | *PRTE*) set -- --map-by ppr:1:node --bind-to none${
        list ? ` --mca plm_rsh_agent ${remoteShell} --hostfile ${shellWords([hosts])}` : ""
      } ;;`,
      `*HYDRA* | *Hydra* | *Intel*) set -- -ppn 1 -bind-to none${list ? ` -launcher-exec ${remoteShell} -f ${shellWords([hosts])}` : ""} ;;`,
      `*PALS*) set -- --ppn 1 --cpu-bind none ;;`,
      `*) set -- ;;`,
      `esac`,
      `slipway_start ${name} -n ${ask.nodes} "$@" ${[shellWords(ask.config.overrides), shellWords(ask.command)]
        .filter((text) => text !== "")
        .join(" ")}`,
    ],
  };
};

export const mpiexec: Starter = (ask) => mpi(ask, "mpiexec");
export const mpirun: Starter = (ask) => mpi(ask, "mpirun");
