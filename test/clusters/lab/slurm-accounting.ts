import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import type { RunCommand } from "../../../src/managers/commands.ts";
import { until } from "../../until.ts";
import { startDaemon, type Daemon } from "./daemons.ts";
import { slurmdbdConf, type LabPlan } from "./slurm-config.ts";

const call = promisify(execFile);

/** A database of its own, then slurmdbd on top of it. Returns the daemons in the order of their start. */
export const startAccounting = async (plan: LabPlan, run: RunCommand, started: Daemon[]): Promise<void> => {
  const { root, ports } = plan;
  const data = `${root}/mysql`;
  const socket = `${data}/socket`;
  await call("install", ["-d", "-o", "mysql", "-g", "mysql", data]);
  await call("mariadb-install-db", [
    "--no-defaults",
    "--user=mysql",
    `--datadir=${data}`,
    "--auth-root-authentication-method=normal",
    "--skip-test-db",
  ]);
  const database = await startDaemon(
    [
      "mariadbd",
      "--no-defaults",
      `--datadir=${data}`,
      `--socket=${socket}`,
      `--pid-file=${data}/pid`,
      "--bind-address=127.0.0.1",
      `--port=${ports.database}`,
      "--innodb-buffer-pool-size=64M",
      "--innodb-lock-wait-timeout=900",
      "--innodb-flush-log-at-trx-commit=0",
      `--tmpdir=${data}`,
    ],
    { log: `${root}/log/mariadbd.log`, user: "mysql", ownSession: true },
  );
  started.push(database);
  const client = ["--no-defaults", "-uroot", "-S", socket];
  await until("the database", async () => {
    if (database.hasEnded()) throw new Error(`mariadbd ended: see ${database.log}`);
    return await call("mariadb-admin", [...client, "ping"]).then(
      () => true,
      () => undefined,
    );
  });
  await call("mariadb", [
    ...client,
    "-e",
    "CREATE DATABASE slurm_acct_db; CREATE USER slurm@'127.0.0.1' IDENTIFIED BY 'slurm'; GRANT ALL ON slurm_acct_db.* TO slurm@'127.0.0.1';",
  ]);
  await writeFile(`${root}/conf/slurmdbd.conf`, slurmdbdConf(plan), { mode: 0o600 });
  const slurmdbd = await startDaemon(["slurmdbd", "-D"], {
    log: `${root}/log/slurmdbd.out`,
    env: { SLURM_CONF: `${root}/conf/slurm.conf` },
    ownSession: true,
  });
  started.push(slurmdbd);
  await until("slurmdbd", async () => {
    if (slurmdbd.hasEnded()) throw new Error(`slurmdbd ended: see ${root}/log/slurmdbd.log`);
    return (await run(["sacctmgr", "-nP", "show", "cluster"])).code === 0;
  });
  await registerUsers(plan, run);
};

const registerUsers = async ({ options }: LabPlan, run: RunCommand): Promise<void> => {
  const sacctmgr = async (...words: readonly string[]): Promise<void> => {
    const { code, stdout, stderr } = await run(["sacctmgr", "-iQ", ...words]);
    if (code !== 0) throw new Error(`sacctmgr ${words.join(" ")}: ${stdout}${stderr}`);
  };
  await sacctmgr("add", "cluster", "lab");
  await sacctmgr("add", "account", "proj", "Description=p", "Organization=o");
  await sacctmgr("add", "qos", "low,urgent");
  await sacctmgr("modify", "qos", "low", "set", "Priority=10");
  await sacctmgr("modify", "qos", "urgent", "set", "Priority=1000", "Preempt=low", "PreemptMode=requeue");
  await sacctmgr("modify", "account", "proj,root", "set", "qos=normal,low,urgent");
  const wckeys = options.wckeys?.length ? [`wckey=${options.wckeys.join(",")}`] : [];
  const users = ["root", ...(options.users ?? [])].join(",");
  await sacctmgr("add", "user", users, "account=proj", ...wckeys);
};
