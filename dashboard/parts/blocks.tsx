import type { ComponentChildren } from "preact";
import type { WhyView } from "../../src/api/schemas.ts";
import type { ApiError } from "../data/api.ts";
import type { Fetched } from "../data/fetched.ts";

/** The blocks that every screen is made of. */

interface CardProps {
  readonly title: ComponentChildren;
  readonly end?: ComponentChildren;
  readonly children: ComponentChildren;
  readonly id?: string;
}

export const Card = ({ title, end, children, id }: CardProps) => (
  <section class="card" aria-labelledby={id}>
    <header>
      <h2 id={id}>{title}</h2>
      {end}
    </header>
    {children}
  </section>
);

export const Empty = ({ children }: { children: ComponentChildren }) => <p class="empty">{children}</p>;

/** What the server said is wrong, and what to do. */
export const Problem = ({ error }: { error: Pick<ApiError, "message" | "hint"> }) => (
  <div class="problem" role="alert">
    <strong>{error.message}</strong>
    {error.hint !== "" && <p>{error.hint}</p>}
  </div>
);

/** What was loaded, or that it is loading, or why it cannot be. */
export const Loaded = <T,>({ from, children }: { from: Fetched<T>; children: (value: T) => ComponentChildren }) => {
  if (from.value !== undefined) return <>{children(from.value)}</>;
  if (from.error !== undefined) return <Problem error={from.error} />;
  return <Empty>Loading …</Empty>;
};

/** Cause, detail and remedy as `slipway why` says them. */
export const Why = ({ why, bad = false }: { why: WhyView; bad?: boolean }) => (
  <div class={bad ? "hint bad" : "hint"}>
    <strong>{why.cause}</strong>
    {why.detail !== "" && <p>{why.detail}</p>}
    {why.remedy !== "" && <p class="remedy">{why.remedy}</p>}
  </div>
);

type Fact = readonly [name: string, value: ComponentChildren];

/** Names and values; what is null, undefined or empty is left out. */
export const Facts = ({ of }: { of: readonly Fact[] }) => (
  <dl class="facts">
    {of
      .filter(([, value]) => value !== undefined && value !== null && value !== "")
      .map(([name, value]) => (
        <>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </>
      ))}
  </dl>
);

interface SegmentsProps<T extends string> {
  readonly label: string;
  readonly options: readonly T[];
  readonly value: T;
  readonly onChange: (value: T) => void;
}

/** One of a few. */
export const Segments = <T extends string>({ label, options, value, onChange }: SegmentsProps<T>) => (
  <div class="segments" role="group" aria-label={label}>
    {options.map((option) => (
      <button key={option} type="button" aria-pressed={option === value} onClick={() => onChange(option)}>
        {option}
      </button>
    ))}
  </div>
);

/** A block of text as it is: a script, a spec, output. */
export const TextBlock = ({ title, text, end }: { title: string; text: string; end?: ComponentChildren }) => (
  <Card title={title} end={end}>
    <div class="log" tabIndex={0} role="region" aria-label={title}>
      <pre>{text}</pre>
    </div>
  </Card>
);
