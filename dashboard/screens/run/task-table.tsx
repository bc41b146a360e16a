import { TASK_STATES } from "../../../src/core/states.ts";
import { statesMeant, wordsOf } from "../../../src/core/state-words.ts";
import type { RunView } from "../../../src/api/schemas.ts";
import type { TableFilter } from "../../data/task-pages.ts";
import { refine, route } from "../../data/route.ts";
import { TaskGrid } from "./task-grid.tsx";

/** The table of a run's tasks with its filters, which are part of the address. */

const WORDS = wordsOf(TASK_STATES);
const MOST_OPTIONS = 300;

const filterOf = (query: URLSearchParams): { words: readonly string[]; filter: TableFilter } => {
  const words = query.getAll("state").filter((word) => WORDS.includes(word));
  return {
    words,
    filter: {
      state: words.flatMap((word) => statesMeant(word, TASK_STATES)),
      name: query.getAll("group"),
      host: query.getAll("host"),
      exitCode: query.getAll("exitCode"),
      sort: query.get("sort") === "duration" ? "duration" : "index",
      reverse: query.get("reverse") === "true",
    },
  };
};

const Chips = ({ words }: { words: readonly string[] }) => (
  <div class="chips" role="group" aria-label="States">
    {WORDS.map((word) => {
      const on = words.includes(word);
      return (
        <button
          key={word}
          type="button"
          class="chip"
          aria-pressed={on}
          onClick={() => refine({ state: on ? words.filter((each) => each !== word) : [...words, word] })}
        >
          <i class="swatch" data-state={word} />
          {word}
        </button>
      );
    })}
  </div>
);

const Field = ({ name, label, value }: { name: string; label: string; value: string }) => (
  <input
    type="search"
    aria-label={label}
    placeholder={label}
    value={value}
    {...(name === "host" ? { "data-filter": true } : {})}
    onChange={(event) => refine({ [name]: event.currentTarget.value.trim() })}
  />
);

export const TaskTable = ({ run }: { run: RunView }) => {
  const { words, filter } = filterOf(route.value.query);
  const groups = run.groups ?? [];
  const [group = ""] = filter.name;
  return (
    <section class="card" aria-label="Tasks">
      <div class="filters">
        <Chips words={words} />
        {groups.length > 1 && groups.length <= MOST_OPTIONS ? (
          <select aria-label="Group" value={group} onChange={(event) => refine({ group: event.currentTarget.value })}>
            <option value="">all groups</option>
            {groups.map(({ name }) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        ) : (
          groups.length !== 1 && <Field name="group" label="Group" value={group} />
        )}
        <Field name="host" label="Host" value={filter.host[0] ?? ""} />
        {filter.exitCode.length > 0 && (
          <button type="button" class="chip" aria-pressed="true" onClick={() => refine({ exitCode: undefined })}>
            exit code {filter.exitCode.join(", ")} ✕
          </button>
        )}
      </div>
      <TaskGrid run={run} filter={filter} />
    </section>
  );
};
