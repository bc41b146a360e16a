/**
 * What a pilot's job asks of its manager, worked out from a queue of clusters.yaml. Each dialect turns it into the
 * directive lines of a batch script; what it cannot say in its manager's language it refuses when the file is read.
 */
export interface PilotAsk {
  readonly name: string;
  /** Files for what the job prints; their directory exists. */
  readonly stdout: string;
  readonly stderr: string;
  readonly nodes: number;
  /** Of each node. Absent: what the manager gives by default. */
  readonly cores?: number;
  readonly memoryBytes?: number;
  readonly gpus?: number;
  readonly tmpBytes?: number;
  /** Seconds. */
  readonly walltime?: number;
  /** Partition (Slurm), queue (PBS, Grid Engine, OAR). */
  readonly partition?: string;
  /** Account (Slurm), project (the others). */
  readonly account?: string;
  readonly qos?: string;
  readonly constraint?: string;
  readonly reservation?: string;
  readonly exclusive?: boolean;
  /** Further options as they would stand behind the directive's mark: `--mail-type=END`. */
  readonly extra: readonly string[];
  /** A directive that contains one of these is left out. */
  readonly skip: readonly string[];
  readonly slurm?: SlurmAsk;
  readonly sge?: SgeAsk;
  readonly oar?: OarAsk;
  readonly pbs?: PbsAsk;
}

/** Options without those that `skip-options` names; a blank line there names none. */
export const withoutSkipped = (options: readonly string[], { skip }: Pick<PilotAsk, "skip">): string[] => {
  const texts = skip.filter((text) => text.trim() !== "");
  return options.filter((option) => !texts.some((text) => option.includes(text)));
};

export interface SlurmAsk {
  /** More than one: a heterogeneous job, its parts in order. */
  readonly parts?: readonly SlurmPart[];
}

export interface SlurmPart {
  readonly excludes?: string;
  readonly features?: string;
  readonly gres?: string;
  readonly licence?: string;
  /** Names of nodes, as `--nodelist` takes them. */
  readonly nodes?: string;
  readonly partition?: string;
  readonly qos?: string;
  readonly reserv?: string;
}

export interface SgeAsk {
  readonly parallelEnvironment?: string;
  /** Names of the resources that stand for cores, memory (in MB), temporary space (in MB) and GPUs. */
  readonly cpuResource?: string;
  readonly memResource?: string;
  readonly tmpResource?: string;
  readonly gpuResource?: string;
  readonly priority?: number;
  /** `name=value` each, behind -hard -l and -soft -l. */
  readonly hard?: readonly string[];
  readonly soft?: readonly string[];
}

export interface OarAsk {
  /** Replaces what would be made of nodes and cores: `/nodes=1/core=4`. */
  readonly resourceSpec?: string;
  readonly property?: string;
  /** The property that tells a core's memory in MB; null: declared not applicable, memory is not asked for. */
  readonly memoryPerCoreProperty?: string | null;
}

export interface PbsAsk {
  /** Further resources of each chunk: `mpiprocs=4:arch=linux`. */
  readonly selectOptions?: string;
  readonly place?: string;
}
