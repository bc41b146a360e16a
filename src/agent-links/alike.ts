import type { Group } from "../core/run.ts";
import type { AlikeGroups, GroupTemplate } from "../protocol/messages.ts";

/**
 * Groups of single tasks as columns: a graph has as many as tasks, and most of them differ in name and command alone. What they
 * share is said once for all.
 */

/** How many kinds of groups are compared with: a graph that mixes more of them says some things more than once. */
const KINDS = 4;

const sameEnv = (a: Group["spec"]["env"] = {}, b: Group["spec"]["env"] = {}): boolean => {
  if (a === b) return true;
  let more = 0;
  for (const name in a) {
    if (a[name] !== b[name]) return false;
    more += 1;
  }
  for (const _ in b) more -= 1;
  return more === 0;
};

/** Whether a group has nothing but what is compared below, or is told one by one. */
const isPlain = ({ count, spec: { items, outputs, colsep } }: Group): boolean =>
  count === 1 && items.kind === "one" && outputs === undefined && colsep === undefined;

/** Of plain groups of one run, whose equal shapes are one object. */
const isLike = ({ shape, spec: a }: Group, { shape: other, spec: b }: Group): boolean =>
  shape === other &&
  a.executor === b.executor &&
  a.priority === b.priority &&
  a.cwd === b.cwd &&
  a.stdout === b.stdout &&
  a.stderr === b.stderr &&
  a.append === b.append &&
  a.timeLimit === b.timeLimit &&
  a.pin === b.pin &&
  sameEnv(a.env, b.env);

interface Columns extends AlikeGroups {
  readonly index: number[];
  readonly first: number[];
  readonly name: string[];
  readonly command: GroupTemplate["command"][];
}

/** Each group once: alone in `groups`, or in columns with others like it. */
export const inColumns = (
  groups: readonly Group[],
  template: (group: Group) => GroupTemplate,
): { readonly groups: readonly GroupTemplate[]; readonly alike: readonly AlikeGroups[] } => {
  const single: GroupTemplate[] = [];
  const alike: Columns[] = [];
  const kinds: { readonly of: Group; readonly columns: Columns }[] = [];
  for (const group of groups) {
    if (!isPlain(group)) {
      single.push(template(group));
      continue;
    }
    let columns = kinds.find(({ of }) => isLike(of, group))?.columns;
    if (columns === undefined) {
      const { index: _, first: __, name: ___, command: ____, ...like } = template(group);
      columns = { like, index: [], first: [], name: [], command: [] };
      alike.push(columns);
      if (kinds.length === KINDS) kinds.pop();
      kinds.unshift({ of: group, columns });
    }
    columns.index.push(group.index);
    columns.first.push(group.first);
    columns.name.push(group.spec.name);
    columns.command.push(group.spec.command);
  }
  return { groups: single, alike };
};
