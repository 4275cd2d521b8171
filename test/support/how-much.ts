/**
 * How much suites with many cases take: `make test` few, `make test-long` every one (`FAULTS=all`), and with `FAULTS=some`
 * a choice. A suite that is run alone, without `FAULTS`, takes what it takes by itself.
 */
const asked = process.env["FAULTS"];

/** Whether every case is asked for. */
export const wantsAll = asked === "all";
/** Whether a long suite takes a choice of its cases. */
export const wantsChoice = asked === "some";

/** The cases of `list`, and with `FAULTS=some` every `step`-th of them, from the first. */
export const choiceOf = <T>(list: readonly T[], step: number): readonly T[] =>
  wantsChoice ? list.filter((_, index) => index % step === 0) : list;
