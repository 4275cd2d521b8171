import { expect, test } from "vitest";
import type { NodeConfig } from "../core/config/node-config.ts";
import { phasesApplied, phasesApplying } from "./phase-reports.ts";

const config = (imageContent: NodeConfig["imageContent"]) =>
  ({ name: "rendered-worker-b", imageContent }) as unknown as NodeConfig;
const words = (phases: ReturnType<typeof phasesApplied>) => phases.map(({ status, reason }) => `${status} ${reason}`);
const files = "AppliedFilesAndOSAppliedFiles";
const os = "AppliedFilesAndOSAppliedOSImage";

test.for([
  { changes: { files: true, os: false }, first: [`Unknown ${files}`, "False NotRequired"], last: `True ${files}` },
  { changes: { files: false, os: true }, first: ["False NotRequired", `Unknown ${os}`], last: "False NotRequired" },
  {
    changes: { files: false, os: false },
    first: ["False NotRequired", "False NotRequired"],
    last: "False NotRequired",
  },
])("a phase is of a change that there is: $changes [daemon-phase-reports-1]", ({ changes, first, last }) => {
  expect(words(phasesApplying(config("os-only"), changes))).toEqual(first);
  expect(words(phasesApplied(config("os-only"), changes))).toEqual([
    last,
    changes.os ? `True ${os}` : "False NotRequired",
  ]);
  expect(words(phasesApplied(config("full"), changes))[0]).toBe("False NotRequired");
});
