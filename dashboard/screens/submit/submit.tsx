import { useState } from "preact/hooks";
import type { z } from "zod";
import type { SubmitAnswer } from "../../../src/api/schemas.ts";
import type { ValidateAnswer } from "../../../src/api/validate.ts";
import { ApiError, send } from "../../data/api.ts";
import { go, to } from "../../data/route.ts";
import { plural } from "../../format/numbers.ts";
import { Problem } from "../../parts/blocks.tsx";
import { say, sayError } from "../../parts/said.tsx";
import { Editor } from "./editor.tsx";
import { Plan } from "./plan.tsx";

/** A run file, pasted, typed or dropped: checked line by line, shown before it runs, submitted. */

type Checked = z.infer<typeof ValidateAnswer>;

const EXAMPLE = `name: hello
tasks:
  - name: greet
    each: { array: 1-10 }
    run: echo hello from {item}
  - name: end
    after: greet
    run: echo all greeted
`;

const STORED = "slipway-submit-cwd";

interface Asked {
  readonly text: string;
  readonly file: string;
  readonly cwd: string;
}

const Errors = ({ of }: { of: Checked["errors"] }) => (
  <ul class="errors" aria-label="Errors">
    {of.map((error, i) => (
      <li key={i} class="problem">
        {error.line !== null && <strong>Line {error.line}: </strong>}
        {error.message}
        {error.hint !== "" && <p class="soft">{error.hint}</p>}
      </li>
    ))}
  </ul>
);

export const Submit = () => {
  const [asked, setAsked] = useState<Asked>({
    text: "",
    file: "run.yaml",
    cwd: sessionStorage.getItem(STORED) ?? "",
  });
  const [checked, setChecked] = useState<Checked | undefined>(undefined);
  const [problem, setProblem] = useState<ApiError | undefined>(undefined);
  const [busy, setBusy] = useState(false);
  const change = (next: Partial<Asked>): void => {
    setAsked((before) => ({ ...before, ...next }));
    setChecked(undefined);
    setProblem(undefined);
  };
  const act = async (work: () => Promise<void>): Promise<void> => {
    setBusy(true);
    setProblem(undefined);
    try {
      await work();
    } catch (error) {
      if (error instanceof ApiError) setProblem(error);
      else sayError(error);
    } finally {
      setBusy(false);
    }
  };
  const check = async (): Promise<Checked> => {
    sessionStorage.setItem(STORED, asked.cwd);
    const found = await send<Checked>("POST", "validate", asked);
    setChecked(found);
    return found;
  };
  const submit = async (): Promise<void> => {
    if (!(await check()).valid) return;
    const { run, total } = await send<z.infer<typeof SubmitAnswer>>("POST", "run-files", asked);
    say(`Run ${run} was submitted: ${plural(total, "task")}.`);
    go(to("runs", run));
  };
  const ready = asked.text.trim() !== "" && asked.cwd.startsWith("/") && !busy;
  return (
    <div class="stack">
      <h1>Submit a run</h1>
      <div class="submit">
        <div class="stack">
          <Editor
            text={asked.text}
            marks={checked?.errors.flatMap(({ line }) => line ?? []) ?? []}
            onText={(text) => change({ text })}
            onFile={(file, text) => change({ file, text })}
          />
          <div class="row">
            <label for="cwd">Directory</label>
            <input
              id="cwd"
              type="text"
              class="grow mono"
              placeholder="/home/you/project"
              value={asked.cwd}
              onInput={(event) => change({ cwd: event.currentTarget.value })}
            />
            {asked.text === "" && (
              <button type="button" class="button bare" onClick={() => change({ text: EXAMPLE })}>
                An example
              </button>
            )}
          </div>
          <div class="row">
            <button
              type="button"
              class="button"
              disabled={!ready}
              onClick={() => void act(async () => void (await check()))}
            >
              Check
            </button>
            <button type="button" class="button primary" disabled={!ready} onClick={() => void act(submit)}>
              Submit
            </button>
          </div>
          <p class="dim">
            Tasks run in this directory of the server's machine. Their environment is the server's, less what{" "}
            <code>--export</code> leaves out, not that of your shell. Files with items (<code>lines</code>,{" "}
            <code>json</code>) are read there, too, and only below this directory.
          </p>
        </div>
        <div class="stack" role="status">
          {problem !== undefined && <Problem error={problem} />}
          {checked !== undefined && !checked.valid && <Errors of={checked.errors} />}
          {checked?.plan != null && <Plan plan={checked.plan} />}
          {checked === undefined && problem === undefined && (
            <p class="empty">Check shows here what is wrong, line by line, or what would run. It submits nothing.</p>
          )}
        </div>
      </div>
    </div>
  );
};
