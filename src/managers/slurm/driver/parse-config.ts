/** What `scontrol` prints of a Slurm's own configuration. Text that fits nothing is left out. */

/** `Name = value` of `scontrol show config`; `(null)` is no value. */
export const parseConfig = (text: string): ReadonlyMap<string, string> => {
  const found = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [, name, value] = /^([A-Za-z]\w*)\s*= ?(.*)$/.exec(line) ?? [];
    if (name !== undefined && value!.trim() !== "" && value!.trim() !== "(null)") found.set(name, value!.trim());
  }
  return found;
};

/** `name=value,name`, as PriorityParameters and its sisters are written; one without a value has none. */
export const parseParameters = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    text.split(",").flatMap((part): [string, string][] => {
      const [, name, value = ""] = /^\s*([\w-]+)\s*(?:=\s*(.*))?$/s.exec(part) ?? [];
      return name === undefined ? [] : [[name, value.trim()]];
    }),
  );

/** Names of licences from `scontrol --oneliner show licenses`. */
export const parseLicences = (text: string): string[] =>
  text.split("\n").flatMap((line) => /^LicenseName=(\S+)/.exec(line)?.[1] ?? []);

/** The most elements of an array whose first one is 0. */
export const mostInArray = (config: ReadonlyMap<string, string>): number | undefined => {
  const size = config.get("MaxArraySize") ?? "";
  return /^\d{1,9}$/.test(size) ? Number(size) : undefined;
};

/** Whether Slurm refuses accounts, and QOS, that its database does not give to a user. */
export const enforcedBy = (
  config: ReadonlyMap<string, string>,
): { readonly accounts: boolean; readonly qos: boolean } => {
  const words = (config.get("AccountingStorageEnforce") ?? "").toLowerCase().split(",");
  const has = (...names: readonly string[]): boolean => names.some((name) => words.includes(name));
  // each of the others includes associations
  return { accounts: has("associations", "limits", "qos", "safe", "wckeys", "all"), qos: has("qos", "all") };
};

/** For `sacctmgr --parsable2 show associations`. */
export const ASSOCIATIONS_FORMAT = "format=Account,QOS";

/** Accounts and QOS of one user. QOS may be changes to what is inherited (`+long`): then nothing is certain of them. */
export const parseAssociations = (text: string): { readonly accounts: string[]; readonly qos: string[] } => {
  const accounts = new Set<string>();
  const qos = new Set<string>();
  let isCertain = true;
  for (const line of text.split("\n")) {
    const [account = "", names] = line.trim().split("|");
    if (account === "" || names === undefined) continue;
    accounts.add(account);
    const own = names.split(",").filter((name) => name !== "");
    if (own.length === 0 || own.some((name) => /^[+-]/.test(name))) isCertain = false;
    for (const name of own) qos.add(name);
  }
  return { accounts: [...accounts], qos: isCertain ? [...qos] : [] };
};

export interface ListedPriority {
  readonly isWaiting: boolean;
  /** What it would be with a nice value of 0. */
  readonly priority: number;
}

const FIELD = "\x1f";

/** For `squeue -O`. */
export const PRIORITY_FORMAT = `State:${FIELD},PriorityLong:${FIELD},Nice:${FIELD}`;

/** A held job has the priority 0, and one whose nice value is larger than its priority has 1: both tell nothing. */
export const parsePriorities = (text: string): ListedPriority[] =>
  text.split("\n").flatMap((line) => {
    const [state = "", priority = "", nice = ""] = line.split(FIELD);
    if (!/^\d{1,10}$/.test(priority) || !/^-?\d{1,10}$/.test(nice) || Number(priority) <= 1) return [];
    return [{ isWaiting: state === "PENDING", priority: Number(priority) + Number(nice) }];
  });
