import type { LaunchId } from "../../core/ids.ts";
/** What stands in a job's stream.json: enough to send its output on, and good for nothing else (rule 16). */
export interface StreamSettings {
  readonly launch: LaunchId;
  /** Where the server says at which address it is now; written anew by every server. */
  readonly endpointFile: string;
  /** Good for this job's log alone. */
  readonly token: string;
}
