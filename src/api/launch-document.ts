import { z } from "@hono/zod-openapi";
import { FileInput, LaunchInput } from "../launch/plan/launch-schema.ts";

/** A launch as a request carries it: what a file may say, less what only files have. It describes the shape. */
export const LaunchRequest = LaunchInput.extend({
  // the server does not read its clients' files
  files: z.array(FileInput.omit({ from: true })).optional(),
}).openapi("LaunchDocument", {
  description: "A launch's file as JSON (docs/launch.md), with `uuid`: a repeated uuid is the same launch",
});
