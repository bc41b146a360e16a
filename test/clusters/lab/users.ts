import { execFile } from "node:child_process";
import { promisify } from "node:util";

/**
 * Accounts for tests that act in several names. A missing one is created, and removed by the last test file that holds
 * it; one that existed before stays. Test files that run at the same time share them, hence the list of holders.
 */

const BOOK = "/tmp/slw-users";

const HOLD = `
mkdir -p "$1/$2" || exit
if ! getent passwd "$2" >/dev/null; then
  useradd --create-home --shell /bin/bash --user-group "$2" || exit
  : > "$1/$2/made"
fi
: > "$1/$2/holder.$3"`;

const RELEASE = `
rm -f "$1/$2/holder.$3"
for holder in "$1/$2"/holder.*; do
  pid=\${holder##*holder.}; pid=\${pid%%.*}
  [ -e "$holder" ] && [ -e "/proc/$pid" ] && exit 0
done
[ -e "$1/$2/made" ] && userdel --force --remove "$2" 2>/dev/null
rm -rf "\${1:?}/$2"
rmdir "$1" 2>/dev/null
exit 0`;

let holds = 0;

/** Resolves with a function that gives them up again. */
export const holdUsers = async (names: readonly string[]): Promise<() => Promise<void>> => {
  holds += 1;
  const holder = `${process.pid}.${holds}`;
  const underLock = async (script: string): Promise<void> => {
    for (const name of names)
      await promisify(execFile)("flock", [`${BOOK}.lock`, "sh", "-c", script, "sh", BOOK, name, holder]);
  };
  await underLock(HOLD);
  return () => underLock(RELEASE);
};

/** The words that run a command in another user's name, with this environment: what sudo does on a site. */
export const becomeUser = (
  user: string,
  argv: readonly string[],
  env: Readonly<Record<string, string>>,
): readonly string[] => [
  "runuser",
  "-u",
  user,
  "--",
  "env",
  ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
  ...argv,
];
