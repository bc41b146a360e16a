import type { LaunchId } from "../../core/ids.ts";
/** The contents of a job's stream.json: enough to send its output, and good for nothing else (rule 16). */
export interface StreamSettings {
  readonly launch: LaunchId;
  /** Where the server publishes its current address; every server writes it again. */
  readonly endpointFile: string;
  /** Valid for this job's log only. */
  readonly token: string;
}
