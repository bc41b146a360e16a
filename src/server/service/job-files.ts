import { open } from "node:fs/promises";
import { join } from "node:path";
import { MOST_TEXT } from "../../api/job-details.ts";

/** The beginning of a file of a job's directory; null: it is not there, or not ours to read. */
export const readStart = async (directory: string, name: string): Promise<string | null> => {
  try {
    const file = await open(join(directory, name), "r");
    try {
      const buffer = Buffer.alloc(MOST_TEXT);
      const { bytesRead } = await file.read(buffer, 0, MOST_TEXT, 0);
      return buffer.toString("utf8", 0, bytesRead);
    } finally {
      await file.close();
    }
  } catch {
    return null;
  }
};
