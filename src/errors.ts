/**
 * The one table of errors. docs/errors.md is generated from it (`npm run docs`); a code, once published, keeps its
 * meaning. `exit` is the CLI's exit status, `http` the API's, `transient` says whether trying again may help.
 */
export interface ErrorRow {
  readonly message: string;
  readonly hint: string;
  readonly exit: number;
  readonly http: number;
  readonly transient?: boolean;
}

const row = (message: string, hint: string, exit: number, http: number, transient = false): ErrorRow => ({
  message,
  hint,
  exit,
  http,
  transient,
});

export const ERRORS = {
  // what a user wrote
  usage: row("{detail}", "slipway --help lists the commands, slipway COMMAND --help its options.", 2, 400),
  "bad-file": row("{where}: {detail}", "Correct the file and try again.", 2, 400),
  "unknown-key": row(
    "{where}: unknown key '{key}'{suggestion}",
    "docs/run-file.md, docs/clusters-file.md, docs/layers.md and docs/launch.md list every key.",
    2,
    400,
  ),
  "bad-value": row("{where}: {key}: {detail}", "{remedy}", 2, 400),
  "unknown-placeholder": row(
    "{where}: {key}: unknown placeholder {{{name}}}{suggestion}",
    "Known placeholders: {{run}} {{task}} {{name}} {{attempt}} {{item}} {{cwd}}; write {{{{ and }}}} for literal braces.",
    2,
    400,
  ),
  "unknown-task": row(
    "{where}: after: no task is named '{name}'{suggestion}",
    "Use the name of a task in this file, or run:ID for an earlier run.",
    2,
    400,
  ),
  cycle: row("{where}: tasks wait for each other: {path}", "Remove one of these `after` entries.", 2, 400),
  "too-many-tasks": row(
    "the run would have {count} tasks; at most {limit} are allowed",
    "Split the run, or raise `limits.tasks-per-run` in clusters.yaml.",
    2,
    400,
  ),
  "cannot-fit": row(
    "task {task} asks for {resource} {amount}; the largest available is {largest}",
    "Ask for less, or declare a cluster that has it in clusters.yaml.",
    2,
    422,
  ),
  "job-cannot-fit": row(
    "task {task} asks for {resource} {amount} as a job of its own; {place} has at most {largest}",
    "Ask for less, or name another queue, partition or cluster; `slipway clusters check` shows what the manager says it has.",
    2,
    422,
  ),
  "no-such-file": row(
    "{where}: cannot read {path}: {detail}",
    "Relative paths start in the directory where the command was typed.",
    2,
    400,
  ),
  "no-such-run": row("there is no run {run}", "`slipway list` shows the runs of this home.", 2, 404),
  "no-such-task": row("run {run} has no task {task}", "`slipway show {run}` shows how its tasks are numbered.", 2, 404),
  "no-such-attempt": row(
    "task {task} has no attempt {attempt}{detail}",
    "`slipway show {task}` lists the attempts that are kept.",
    2,
    404,
  ),
  "not-found": row("there is no {what}", "docs/api.md lists what the API offers.", 2, 404),
  "no-such-thing": row(
    "there is nothing called '{name}'{suggestion}",
    "A run is 3, a task 3.17, a fleet hpc/cpu, a cluster hpc; `slipway why pilot 4`, `slipway why launch 2` and `slipway why job 1234` name the others.",
    2,
    404,
  ),
  ambiguous: row("'{name}' may be {meanings}", "Say which: `slipway why {example}`.", 2, 409),
  "no-such-cluster": row(
    "there is no cluster '{name}'{suggestion}",
    "clusters.yaml declares clusters; `local` always exists.",
    2,
    404,
  ),
  "no-such-queue": row(
    "cluster '{cluster}' has no queue '{queue}' that can start pilots{suggestion}",
    "`slipway clusters list` shows the clusters and their queues.",
    2,
    400,
  ),
  "no-usable-queue": row(
    "task '{task}' can never run on cluster {cluster}: {detail}",
    "{remedy} `slipway clusters check {cluster}` checks all of it.",
    2,
    422,
  ),
  "no-such-pilot": row("there is no pilot {pilot}", "`slipway pilots list` shows the pilots of this home.", 2, 404),
  "clusters-in-use": row(
    "clusters.yaml is not taken over: {what} is gone from it, but is still needed: {detail}",
    "Put it back, or let them end or cancel them first; the file is then taken over by itself.",
    2,
    409,
  ),
  "run-active": row(
    "run {run} has not ended: {detail}",
    "Wait for it (`slipway wait {run}`) or cancel it first.",
    2,
    409,
  ),
  "uuid-taken": row(
    "the uuid {uuid} belongs to run {run}, which was submitted with different content",
    "Send the same request again, or give the new run its own uuid.",
    2,
    409,
  ),
  "key-reused": row(
    "the Idempotency-Key {key} was used before, with a different request",
    "Send the same request again, or use a new key.",
    2,
    409,
  ),
  "too-large": row("{what} is {size}, more than the {limit} allowed", "Make it smaller or split the run.", 2, 413),
  unauthorized: row(
    "the token was not accepted",
    "Use the token of this home (`keys/` inside it), or pass --home.",
    3,
    401,
  ),
  forbidden: row(
    "this token may not do that: {detail}",
    "A user's token covers that user's own launches, one with a role what docs/security.md lists; the home's owner may do everything.",
    3,
    403,
  ),
  "no-session": row(
    "nobody is signed in here, or the session is over",
    "`slipway open` signs you in; a program sends a token, and on the unix socket `Host: slipway`.",
    3,
    401,
  ),
  "sign-in-refused": row(
    "the code is not valid: it was used, is older than {seconds} s, or is another server's",
    "Run `slipway open` again: each of its addresses works once.",
    3,
    401,
  ),
  "host-refused": row(
    "this server is not reached under the name {host}",
    "If it should be, add to clusters.yaml of its home: page: {{ hosts: [{host}] }}",
    3,
    421,
  ),
  "origin-refused": row(
    "this request was sent by a page of {origin}, not by the server's own",
    "Set page.origin in clusters.yaml to where people find the page, or use a token.",
    3,
    403,
  ),
  "too-many-requests": row(
    "too many requests without a valid token or session",
    "Wait a moment, and send a token; docs/page-access.md says how to sign in.",
    3,
    429,
    true,
  ),
  "port-taken": row("port {port} of 127.0.0.1 cannot be opened: {detail}", "Name another one, or none.", 3, 409),
  "no-page": row(
    "this installation has no page{detail}",
    "Build it with `npm run build`, or install a released package; the API and the command line work without it.",
    3,
    404,
  ),
  "no-such-job": row(
    "there is no job {job}",
    "`slipway jobs list` shows the jobs: 2 is a launch, 3.17 a task's, `pilot 4` a pilot's.",
    2,
    404,
  ),
  "no-such-launch": row("there is no launch {launch}", "`slipway jobs list` shows the launches.", 2, 404),
  "launch-active": row(
    "launch {launch} has not ended",
    "Wait for it, or cancel it with `slipway jobs cancel {launch}`.",
    2,
    409,
  ),
  "user-refused": row("no job may run as {user}: {detail}", "{remedy}", 2, 403),
  "launch-failed": row("the launch could not be prepared: {detail}", "{remedy}", 4, 500),

  // `slipway wrap`
  "bad-parameter": row("{key}: {detail}", "{remedy}", 1, 400),
  "wrap-failed": row("{detail}", "{remedy}", 1, 500),
  "wrap-running": row(
    "{file} is held by a wrapper already: pid {pid} on {host}",
    "Use it (`slipway wrap show`), end it with `slipway wrap down`, or name another status file.",
    1,
    409,
  ),
  "too-many-viewers": row(
    "{count} viewers follow this server already, which is the most it tells",
    "Close a page that nobody looks at, or ask now and then: GET /api/v1/overview.",
    3,
    503,
    true,
  ),
  "no-such-wrap": row("there is no wrapper '{name}'", "`slipway wrap list` shows those of this home.", 2, 404),

  // the server and its home
  "no-server": row(
    "no server runs for {home}",
    "Start one with `slipway up`, or use `slipway run`, which starts one for itself.",
    3,
    503,
    true,
  ),
  "server-gone": row(
    "the server at {address} does not answer: {detail}",
    "Look at {log}; `slipway up` starts a new server, which continues where this one stopped.",
    3,
    503,
    true,
  ),
  "server-running": row(
    "a server already runs for {home}: pid {pid} on {host}, {address}",
    "Use it, or stop it with `slipway down`.",
    1,
    409,
  ),
  "home-held": row(
    "{home} is held by a server on {host} (pid {pid}), whose lease was renewed {age} ago",
    "Stop that server on its machine; a lease that is not renewed for 60 s is taken over.",
    3,
    409,
    true,
  ),
  "home-unusable": row(
    "the home {home} cannot be used: {detail}",
    "Choose another with --home DIR or SLIPWAY_HOME.",
    3,
    500,
  ),
  "server-start": row("the server did not start: {detail}", "Its log is {log}.", 3, 500),
  stopping: row(
    "the server is stopping and accepts no new runs",
    "Submit again after the next `slipway up`.",
    3,
    503,
    true,
  ),
  "journal-full": row(
    "the journal cannot be written ({detail}); nothing was submitted",
    "Free some space in {home}; the server continues by itself once there is room.",
    3,
    507,
    true,
  ),
  "journal-waits": row(
    "there is no room for the journal: run {run} starts once there is",
    "Free some space in {home}. Do not submit it again: the run is lost only if the server dies before there is room.",
    3,
    507,
    false,
  ),
  "journal-damaged": row(
    "the journal is damaged: {segment} at offset {offset}: {detail}",
    "`slipway journal verify` shows the damage, `slipway journal repair` keeps everything that can be read.",
    3,
    500,
  ),
  "journal-event": row(
    "the journal holds an event that cannot be applied: {segment} at offset {offset}: record {record}, {detail}",
    "`slipway journal repair` moves this one event to a file; then `slipway up` works.",
    3,
    500,
  ),
  "journal-failed": row(
    "the journal can no longer be written: {detail}",
    "Nothing acknowledged is lost. Look at the disk of {home}, then start the server again.",
    3,
    500,
  ),
  "journal-version": row(
    "the journal was written by a newer Slipway (format {found}, this one reads up to {known})",
    "Use that version, or another home.",
    3,
    500,
  ),
  "output-damaged": row(
    "output cannot be read: {path} at offset {offset}: {detail}",
    "The file was damaged or removed; the task's state is not affected, `slipway retry` runs it again.",
    1,
    500,
  ),
  "output-replaced": row(
    "attempt {attempt} of task {task} wrote to {path}, which attempt {by} has replaced",
    "Put {{attempt}} into the path to keep the output of each attempt, or leave the path out and let Slipway keep it.",
    1,
    410,
  ),
  "bad-request": row("{detail}", "docs/api.md describes the request.", 2, 400),
  "wrong-method": row(
    "{path} does not accept {method}",
    "It accepts {allow}; docs/api.md describes the request.",
    2,
    405,
  ),
  "media-type": row("{given} is not accepted here", "Send {types} and say so in content-type.", 2, 415),
  busy: row("the server is already reading {held} of requests", "Try again in a moment.", 3, 503, true),
  "version-mismatch": row(
    "protocol version {theirs} is not understood here; this side speaks {ours}",
    "Use the same Slipway version on both sides.",
    3,
    426,
  ),
  internal: row(
    "something that should not happen happened: {detail}",
    "Please report it with the output of --debug.",
    1,
    500,
  ),
  "no-such-image": row(
    "there is no image {image}; looked for {looked}",
    "Put the image there, name another, or set image_root of the cluster in clusters.yaml.",
    2,
    422,
  ),
  "option-refused": row("{where}: {key}: {manager} option {option} is not configurable{detail}", "{remedy}", 2, 400),
  "no-pool": row(
    "{detail}",
    "Name a resource_pool in the launch, or set {key} of the cluster in clusters.yaml.",
    2,
    422,
  ),
  "cluster-refused": row("{cluster} refused the job: {detail}", "Correct the queue in clusters.yaml.", 4, 502),
  "cluster-unreachable": row(
    "{cluster} does not answer: {detail}",
    "Nothing is lost: Slipway keeps asking. `slipway clusters check NAME` shows what is wrong.",
    4,
    503,
    true,
  ),
} satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;

/** Fills `{name}` from facts; `{{` and `}}` stand for braces. Facts that are missing leave nothing. */
const fill = (text: string, facts: Readonly<Record<string, unknown>>): string =>
  text.replace(/\{\{|\}\}|\{(\w+)\}/g, (match, name: string | undefined) =>
    match === "{{" ? "{" : match === "}}" ? "}" : String(facts[name!] ?? ""),
  );

/** An error a user can act on. Facts stay as fields, for `--json` and for tests. */
export class SlipwayError extends Error {
  readonly code: ErrorCode;
  readonly facts: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, facts: Readonly<Record<string, unknown>> = {}, cause?: unknown) {
    super(fill(ERRORS[code].message, facts), cause === undefined ? undefined : { cause });
    this.name = "SlipwayError";
    this.code = code;
    this.facts = facts;
  }

  get row(): ErrorRow {
    return ERRORS[this.code];
  }

  get hint(): string {
    // whoever knows what to write here says so
    const { remedy } = this.facts;
    return typeof remedy === "string" ? remedy : fill(this.row.hint, this.facts);
  }

  /** The shape that `--json` and the API print. */
  toJSON(): { error: { code: ErrorCode; message: string; hint: string; facts: Readonly<Record<string, unknown>> } } {
    return { error: { code: this.code, message: this.message, hint: this.hint, facts: this.facts } };
  }
}

/** Several at once, the first of them in front: whoever expects one error finds that one. */
export class SlipwayErrors extends SlipwayError {
  readonly all: readonly SlipwayError[];

  constructor(all: readonly SlipwayError[]) {
    const [first] = all;
    super(first!.code, first!.facts, first);
    this.all = all;
  }

  override toJSON(): ReturnType<SlipwayError["toJSON"]> & { errors: ReturnType<SlipwayError["toJSON"]>["error"][] } {
    return { ...super.toJSON(), errors: this.all.map((each) => each.toJSON().error) };
  }
}

interface Answered {
  readonly code?: string;
  readonly facts?: Record<string, unknown>;
  readonly message?: string;
}

/** Rebuilds an error from the API's answer, so that the CLI prints what the server meant. */
export const errorFromJSON = (body: unknown): SlipwayError | undefined => {
  const { error, errors } = (body ?? {}) as { error?: Answered; errors?: readonly Answered[] };
  if (Array.isArray(errors) && errors.length > 1) {
    const all = errors.map((each: Answered) => errorFromJSON({ error: each })).filter((each) => each !== undefined);
    if (all.length > 1) return new SlipwayErrors(all);
  }
  if (error === undefined || typeof error.code !== "string") return undefined;
  if (error.code in ERRORS) return new SlipwayError(error.code as ErrorCode, error.facts ?? {});
  return new SlipwayError("internal", { detail: error.message ?? error.code });
};
