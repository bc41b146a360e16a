import { type Parameter, PARAMETERS } from "./parameters.ts";

/** Types whose values are text, also where they look like a number. */
const TEXT: readonly Parameter["type"][] = ["word", "size", "walltime", "duration", "port-range"];

/** `key=value` of a command line. Values of texts are themselves; all others are JSON. Throws a RangeError. */
export const parseAssignment = (assignment: string): readonly [string, unknown] => {
  const [matched, name = "", text = ""] = /^([\w-]+)=(.*)$/s.exec(assignment) ?? [];
  if (matched === undefined) throw new RangeError(`takes KEY=VALUE, not '${assignment}'`);
  const known: Parameter | undefined = PARAMETERS.find(
    (one) => one.name.replaceAll("_", "-") === name.replaceAll("_", "-"),
  );
  if (known === undefined) throw new RangeError(`'${name}' is not a parameter; docs/dask.md lists them`);
  if (TEXT.includes(known.type)) return [known.name, text];
  try {
    return [known.name, JSON.parse(text)];
  } catch {
    // the check of the parameter says what it should have been
    return [known.name, text];
  }
};
