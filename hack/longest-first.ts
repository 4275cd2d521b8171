import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const root = join(import.meta.dirname, "..");

/** Seconds that files took when they were measured last (`make test-durations`); a file that is not named takes none. */
export const durationsPath = join(import.meta.dirname, "test-durations.json");
export const readDurations = (): Readonly<Record<string, number>> =>
  JSON.parse(readFileSync(durationsPath, "utf8")) as Readonly<Record<string, number>>;

/**
 * Begins the files that took longest first: begun last, one of them would be all that is still running. Files that share
 * their process come after the others and together, since a process goes on only with its like; they are the short ones,
 * and fill what is left.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const durations = readDurations();
    const seconds = ({ moduleId }: TestSpecification) => durations[relative(root, moduleId)] ?? 0;
    const shares = ({ project }: TestSpecification) => (project.config.isolate ? 0 : 1);
    return (await super.sort(files)).sort((a, b) => shares(a) - shares(b) || seconds(b) - seconds(a));
  }
}
