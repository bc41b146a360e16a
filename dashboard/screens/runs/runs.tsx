import { useEffect, useState } from "preact/hooks";
import type { RunView } from "../../../src/api/schemas.ts";
import { ApiError, ask, query } from "../../data/api.ts";
import { generation, overview } from "../../data/live.ts";
import { refine, route } from "../../data/route.ts";
import { stateWord } from "../../../src/core/state-words.ts";
import { Empty, Problem } from "../../parts/blocks.tsx";
import { RunsTable } from "./runs-table.tsx";

/** All runs, newest first, page by page; those that are under way move as the server tells of them. */

const STATES: readonly RunView["state"][] = ["WAITING", "RUNNING", "DONE", "FAILED", "CANCELED"];
const A_PAGE = 100;

interface Loaded {
  readonly runs: readonly RunView[];
  readonly next: string | null;
}

const load = async (state: string, name: string, cursor: string | undefined, signal: AbortSignal): Promise<Loaded> => {
  const answer = await ask(`runs${query({ limit: A_PAGE, state, name, cursor })}`, { signal });
  return { runs: (await answer.json()) as RunView[], next: answer.headers.get("slipway-next") };
};

export const Runs = () => {
  const state = route.value.query.get("state") ?? "";
  const name = route.value.query.get("name") ?? "";
  const [loaded, setLoaded] = useState<Loaded | undefined>(undefined);
  const [problem, setProblem] = useState<ApiError | undefined>(undefined);
  const fresh = new Map((overview.value?.runs ?? []).map((run) => [run.id, run]));
  const newest = overview.value?.runs[0]?.id;
  useEffect(() => {
    const control = new AbortController();
    setProblem(undefined);
    load(state, name, undefined, control.signal).then(setLoaded, (error: unknown) => {
      if (error instanceof ApiError && !control.signal.aborted) setProblem(error);
    });
    return () => control.abort();
  }, [state, name, newest, generation.value]);
  const more = async (): Promise<void> => {
    const page = await load(state, name, loaded!.next!, new AbortController().signal);
    setLoaded({ runs: [...loaded!.runs, ...page.runs], next: page.next });
  };
  const runs = loaded?.runs.map((run) => fresh.get(run.id) ?? run) ?? [];
  return (
    <div class="stack">
      <div class="row spread">
        <h1 id="all-runs">Runs</h1>
        <div class="row">
          <div class="chips" role="group" aria-label="State">
            {STATES.map((each) => (
              <button
                key={each}
                type="button"
                class="chip"
                aria-pressed={state === each}
                onClick={() => refine({ state: state === each ? undefined : each })}
              >
                {stateWord(each)}
              </button>
            ))}
          </div>
          <input
            type="search"
            data-filter
            aria-label="Runs of this name"
            placeholder="Name"
            value={name}
            onChange={(event) => refine({ name: event.currentTarget.value })}
          />
        </div>
      </div>
      {problem !== undefined && <Problem error={problem} />}
      {loaded === undefined ? (
        problem === undefined && <Empty>Loading …</Empty>
      ) : (
        <section class="card" aria-labelledby="all-runs">
          {runs.length === 0 ? <Empty>No such runs.</Empty> : <RunsTable runs={runs} labelledBy="all-runs" />}
        </section>
      )}
      {loaded?.next != null && (
        <button type="button" class="button" onClick={() => void more()}>
          Load more
        </button>
      )}
    </div>
  );
};
