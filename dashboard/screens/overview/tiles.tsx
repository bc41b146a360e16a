import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import type { OverviewView } from "../../../src/api/overview.ts";
import { serverNow } from "../../data/clock.ts";
import { count, percent, perSecond } from "../../format/numbers.ts";
import { createRateMeter } from "../../format/rate.ts";

/** The numbers of now. */

interface TileProps {
  readonly label: string;
  readonly state?: string;
  readonly under?: ComponentChildren;
  readonly children: ComponentChildren;
}

const Tile = ({ label, state, under, children }: TileProps) => (
  <div class="tile">
    <span class="label">
      {state !== undefined && <i class="swatch" data-state={state} />}
      {label}
    </span>
    <span class="value">{children}</span>
    {under !== undefined && <span class="under">{under}</span>}
  </div>
);

/** What all clusters have of a resource, and what is in use. */
const amountOf = (resources: OverviewView["resources"], name: string) => {
  const own = resources.filter(({ resource }) => resource === name);
  return { used: own.reduce((sum, { used }) => sum + used, 0), total: own.reduce((sum, { total }) => sum + total, 0) };
};

const InUse = ({ label, used, total }: { label: string; used: number; total: number }) => (
  <Tile label={label} under={total === 0 ? "none connected" : `${percent(used, total)} in use`}>
    {total === 0 ? (
      "–"
    ) : (
      <>
        {count(used)}
        <span class="dim"> / {count(total)}</span>
      </>
    )}
  </Tile>
);

export const Tiles = ({ of: { tasks, ended, resources } }: { of: OverviewView }) => {
  const meter = useRef(createRateMeter());
  const rate = meter.current(serverNow(), ended.done + ended.failed + ended.cancelled);
  return (
    <section class="tiles" aria-label="Now">
      <Tile
        label="Running"
        state="running"
        under={tasks.starting > 0 ? `${count(tasks.starting)} starting` : undefined}
      >
        {count(tasks.running)}
      </Tile>
      <Tile label="Ready" state="ready" under="wait for a place">
        {count(tasks.ready)}
      </Tile>
      <Tile label="Waiting" state="waiting" under="for other tasks">
        {count(tasks.waiting)}
      </Tile>
      <Tile label="Ended" state="done" under="since its start">
        {count(ended.done + ended.failed + ended.cancelled)}
      </Tile>
      <Tile label="Failed" state="failed" under={percent(ended.failed, ended.done + ended.failed + ended.cancelled)}>
        {count(ended.failed)}
      </Tile>
      <Tile label="Throughput" under="over 10 s">
        {rate === undefined ? "–" : perSecond(rate)}
      </Tile>
      <InUse label="Cores" {...amountOf(resources, "cpus")} />
      <InUse label="GPUs" {...amountOf(resources, "gpus")} />
    </section>
  );
};
