/** The files of a private Grid Engine cell. Important settings say what happens without them. */

export const bootstrap = (root: string, admin: string): string =>
  [
    "Version: 6.2",
    `admin_user ${admin}`,
    "default_domain none",
    "ignore_fqdn true",
    "spooling_method berkeleydb",
    "spooling_lib libspoolb",
    `spooling_params ${root}/spool/db`,
    `binary_path ${root}/sge/bin`,
    `qmaster_spool_dir ${root}/spool/qmaster`,
    "security_mode none",
    "listener_threads 2",
    "worker_threads 2",
    "scheduler_threads 1",
    "",
  ].join("\n");

/** Lines `name value` with some of them changed. */
const changed = (text: string, changes: Readonly<Record<string, string>>): string =>
  text
    .split("\n")
    .map((line) => {
      const name = line.split(/\s/, 1)[0]!;
      return Object.hasOwn(changes, name) ? `${name} ${changes[name]}` : line;
    })
    .join("\n");

export const globalConfiguration = (defaults: string, root: string): string =>
  changed(defaults, {
    execd_spool_dir: `${root}/spool/execd`,
    execd_params: "ENABLE_ADDGRP_KILL=true",
    // finished jobs are in qacct at once
    reporting_params:
      "accounting=true reporting=false flush_time=00:00:01 accounting_flush_time=00:00:00 joblog=false sharelog=00:00:00",
    load_report_time: "00:00:02",
    // the master logs when a node's daemon has registered
    loglevel: "log_info",
    max_unheard: "00:00:10",
    // a narrow range makes jobs fail at their start when many come at once
    gid_range: "200000-209999",
    finished_jobs: "1000",
    // otherwise exit 99 runs a job again for ever, and 100 leaves it in error
    qmaster_params: "FORBID_RESCHEDULE=1,FORBID_APPERROR=1",
    min_uid: "0",
    min_gid: "0",
    mailer: "/bin/true",
    administrator_mail: "none",
    shell_start_mode: "unix_behavior",
  });

export const schedulerConfiguration = (defaults: string): string =>
  changed(defaults, {
    schedule_interval: "0:0:1",
    flush_submit_sec: "1",
    flush_finish_sec: "1",
    job_load_adjustments: "NONE",
    load_adjustment_decay_time: "0:0:0",
    weight_priority: "1.0",
    load_formula: "slots",
  });

/** mem_mb counts per slot, tmp_mb per job. */
export const complexes = (defaults: string): string =>
  [
    ...defaults.split("\n").filter((line) => line !== "" && !line.startsWith("#")),
    "mem_mb mem_mb INT <= YES YES 0 0",
    "tmp_mb tmp_mb INT <= YES JOB 0 0",
    "gpus gpus INT <= YES YES 0 0",
    "",
  ].join("\n");

/** Names, and how slots are spread over nodes; `two` takes two on each. */
export const PARALLEL_ENVIRONMENTS = { smp: "$pe_slots", mpi: "$fill_up", spread: "$round_robin", two: "2" };

export const parallelEnvironment = (name: string, rule: string): string =>
  [
    `pe_name ${name}`,
    "slots 9999",
    "user_lists NONE",
    "xuser_lists NONE",
    "start_proc_args NONE",
    "stop_proc_args NONE",
    `allocation_rule ${rule}`,
    "control_slaves TRUE",
    // the batch script does not occupy a slot: a task may start on each of them
    "job_is_first_task FALSE",
    "urgency_slots min",
    "accounting_summary FALSE",
    "qsort_args NONE",
    "",
  ].join("\n");

export const executionHost = (node: string, slots: number): string =>
  [
    `hostname ${node}`,
    "load_scaling NONE",
    `complex_values slots=${slots},mem_mb=8192,tmp_mb=10000,gpus=2`,
    "user_lists NONE",
    "xuser_lists NONE",
    "projects NONE",
    "xprojects NONE",
    "usage_scaling NONE",
    "report_variables NONE",
    "",
  ].join("\n");

const LIMITS = ["rt", "cpu", "fsize", "data", "stack", "core", "rss", "vmem"].flatMap((limit) => [
  `s_${limit} INFINITY`,
  `h_${limit} INFINITY`,
]);

/** A queue over all nodes; each node has its own directory for TMPDIR. */
export const queue = (name: string, nodes: readonly string[], slots: number, root: string, limits = ""): string =>
  [
    `qname ${name}`,
    "hostlist @allhosts",
    "seq_no 0",
    "load_thresholds NONE",
    "suspend_thresholds NONE",
    "nsuspend 1",
    "suspend_interval 00:05:00",
    "priority 0",
    "min_cpu_interval 00:05:00",
    "processors UNDEFINED",
    "qtype BATCH INTERACTIVE",
    "ckpt_list NONE",
    `pe_list ${Object.keys(PARALLEL_ENVIRONMENTS).join(" ")}`,
    "rerun FALSE",
    `slots ${slots}`,
    `tmpdir /tmp${nodes.map((node) => `,[${node}=${root}/tmp/${node}]`).join("")}`,
    "shell /bin/bash",
    "prolog NONE",
    "epilog NONE",
    "shell_start_mode unix_behavior",
    "starter_method NONE",
    "suspend_method NONE",
    "resume_method NONE",
    "terminate_method NONE",
    "notify 00:00:05",
    "owner_list NONE",
    "user_lists NONE",
    "xuser_lists NONE",
    "subordinate_list NONE",
    "complex_values NONE",
    "projects NONE",
    "xprojects NONE",
    "calendar NONE",
    "initial_state default",
    ...LIMITS.map((line) => (limits.startsWith(`${line.split(" ")[0]} `) ? limits : line)),
    "",
  ].join("\n");
