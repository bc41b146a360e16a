import { nearest } from "../../config/nearest.ts";
import { SlipwayError } from "../../errors.ts";
import { type Parameter, type ParameterName, PARAMETERS, REFUSED } from "./parameters.ts";
import { readValue, type Value } from "./values.ts";

export interface Parameters {
  readonly given: ReadonlyMap<ParameterName, Value>;
  /** What a person should know, and what stops nothing. */
  readonly warnings: readonly string[];
}

const ALL: readonly (Parameter & { readonly name: ParameterName })[] = PARAMETERS;

/** Dashes and underscores are the same, as in Dask's own configuration. */
const canonical = (name: string): string => name.replaceAll("_", "-");
const BY_NAME = new Map(ALL.map((parameter) => [canonical(parameter.name), parameter]));

export const badParameter = (key: string, detail: string, remedy: string): SlipwayError =>
  new SlipwayError("bad-parameter", { key, detail, remedy });

const EXAMPLES: Partial<Record<ParameterName, string>> = {
  walltime: '"walltime": "01:00:00"',
  cores: '"cores": 4',
  memory: '"memory": "8GB"',
  maximum_jobs: '"maximum_jobs": 10',
};

const readOne = (parameter: Parameter, value: unknown): Value => {
  try {
    return readValue(parameter.type, value);
  } catch (error) {
    if (error instanceof RangeError)
      throw badParameter(
        parameter.name,
        error.message,
        `Correct ${parameter.name} in \`parameters\` of the status file.`,
      );
    throw error;
  }
};

/** Names each key that is missing or wrong; unknown ones are warned of. `spared`: keys that may be missing here. */
export const readParameters = (body: unknown, spared: readonly ParameterName[] = []): Parameters => {
  if (typeof body !== "object" || body === null || Array.isArray(body))
    throw badParameter(
      "parameters",
      body === undefined ? "is missing" : "must be a dict",
      'Write {"parameters": {"walltime": "01:00:00", "cores": 4, "memory": "8GB", "maximum_jobs": 10}} into the status file.',
    );
  const given = new Map<ParameterName, Value>();
  const warnings: string[] = [];
  for (const [name, value] of Object.entries(body)) {
    const refusal = REFUSED[canonical(name)];
    if (refusal !== undefined)
      throw badParameter(name, refusal, "Leave it out; extra_dask_config sets Dask's own keys for workers.");
    const parameter = BY_NAME.get(canonical(name));
    if (parameter === undefined) {
      const meant = nearest(canonical(name), BY_NAME.keys());
      const hint = meant === undefined ? "" : `; did you mean ${BY_NAME.get(meant)!.name}?`;
      warnings.push(`parameters: '${name}' is not known and does nothing${hint}`);
    } else if (given.has(parameter.name))
      throw badParameter(name, "is given twice, with dashes and with underscores", "Leave one of them out.");
    // null is how JSON says that an optional value is not given
    else if (value !== null) given.set(parameter.name, readOne(parameter, value));
  }
  const missing = ALL.filter(
    ({ name, default: value, optional }) =>
      !given.has(name) && value === undefined && optional !== true && !spared.includes(name),
  );
  if (missing.length > 0)
    throw badParameter(
      missing.map(({ name }) => name).join(", "),
      missing.length === 1 ? "is missing" : "are missing",
      `Write ${missing.map(({ name }) => EXAMPLES[name] ?? name).join(", ")} into \`parameters\` of the status file.`,
    );
  for (const parameter of ALL)
    if (parameter.default !== undefined && !given.has(parameter.name))
      given.set(parameter.name, readOne(parameter, parameter.default));
  return { given, warnings };
};
