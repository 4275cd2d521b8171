import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Those that wait for whole clusters, and those that repeat a run for every fault: begun last, one of them would be all
 * that is still running.
 */
const long = ["test/faults/", "test/scenario/", "test/crash/", "test/simulation/", "test/sessions/", "test/contract/"];

/** Begins the long files first, and the others as vitest would. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const index = long.findIndex((folder) => moduleId.includes(`/${folder}`));
      return index === -1 ? long.length : index;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}
