import type { Service } from "../../api/service.ts";
import { buildRun } from "../../config/build-run.ts";
import type { Excerpt } from "../../config/excerpt.ts";
import { createProblems } from "../../config/problems.ts";
import { readRunFile } from "../../config/read-run-file.ts";
import { readRunBody } from "../../config/run-file.ts";
import { SlipwayError, SlipwayErrors } from "../../errors.ts";
import { createPreviewer } from "../../preview/preview.ts";
import type { ServiceContext } from "./context.ts";

/** A run that is looked at, not taken in: by the clusters of this server. */

const problemView = (error: SlipwayError): ReturnType<Service["validate"]>["errors"][number] => {
  const { line, column, text } = (error.facts["at"] ?? {}) as Partial<Excerpt>;
  const place = { line: line ?? null, column: column ?? null, text: text ?? null };
  return { code: error.code, message: error.message, hint: error.hint, ...place };
};

export const createValidate = ({
  engine: { state },
  clusters,
  largest,
  shared,
  standings: { described },
}: ServiceContext): Pick<Service, "validate"> => ({
  validate: ({ text, file, document: body, cwd }) => {
    if ((text === undefined) === (body === undefined))
      throw new SlipwayError("bad-request", { detail: "give either text or document" });
    try {
      const document = text === undefined ? readRunBody(body, createProblems()) : readRunFile(text, file);
      const built = buildRun(document, { cwd, env: {}, limit: clusters.limits.tasksPerRun });
      const hasRun = (id: number): boolean => state.runs.has(id) || state.archived.has(id);
      const previewer = createPreviewer(document, built, { clusters, largest, shared, described, hasRun });
      for (const [group, input] of built.items) if (input.kind === "values") previewer.add(group, [...input.values]);
      return { valid: true, errors: [], plan: previewer.end() };
    } catch (error) {
      if (!(error instanceof SlipwayError) || error.row.exit !== 2) throw error;
      const all = error instanceof SlipwayErrors ? error.all : [error];
      return { valid: false, errors: all.map(problemView), plan: null };
    }
  },
});
