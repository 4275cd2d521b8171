import { rm } from "node:fs/promises";

/** Removes, at the end of a run, what its scenarios left for the test of the rights. */
export default function setup(): () => Promise<void> {
  const { MCO_AUDIT_FOLDER: folder } = process.env;
  return async () => {
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  };
}
