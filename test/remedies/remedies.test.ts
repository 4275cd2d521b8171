import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { bookSections } from "../../src/api/books/report-table.ts";
import { definedResources } from "../../src/api/index.ts";
import { errorCodes } from "../../src/api/errors.ts";
import { failureClasses } from "../../src/core/build/build-failures.ts";
import { upgradeBlockerReasons } from "../../src/core/pool/image-blocker.ts";
import { poolBlockerReasons } from "../../src/core/pool/pool-progress.ts";
import { nodePlaces } from "../../src/core/pool/pool-queries.ts";
import { waitReasons } from "../../src/core/pool/rollout-holds.ts";
import { root } from "../guards/source-files.ts";
import { updatedPool } from "../support/control-plane-harness.ts";
import { bootImageRows } from "./boot-image-rows.ts";
import { bookRows, healthPairs, healthRows, healthTexts } from "./health-rows.ts";
import { failureRows, imageKindRows, imageWaitRows, someFailureRows, upgradeRows } from "./image-rows.ts";
import { codeTexts, machineRows } from "./machine-rows.ts";
import { objectRows, objectTexts } from "./object-rows.ts";
import { poolRows, waitRows } from "./roll-out-rows.ts";
import { type Table, checkRow, checkText, explained, tables } from "./row.ts";

const rows = [
  ...waitRows,
  ...poolRows,
  ...imageWaitRows,
  ...someFailureRows,
  ...machineRows,
  ...healthRows,
  ...bookRows,
  ...objectRows,
  ...bootImageRows,
];
const texts = [...healthTexts, ...codeTexts, ...objectTexts];

describe("the next step of a state that is not settled is true, and ends it", () => {
  // `remedies-of-all.test.ts` checks the others.
  test.for(rows.filter(({ isLong }) => isLong !== true))("$title [remedies-1]", (row) => checkRow(row));
  test.for(texts)("$title [remedies-2]", (row) => checkText(row));
});

/** Every reason of every table. */
const reasons: Readonly<Record<Table, readonly string[]>> = {
  wait: waitReasons,
  blocker: poolBlockerReasons,
  upgrade: upgradeBlockerReasons,
  // A machine that is idle has what it should.
  place: nodePlaces.filter((place) => place !== "Idle"),
  degraded: [...bookSections.node.Degraded.Failed, ...bookSections.node.Drift.Detected],
  failure: Object.keys(failureClasses),
  code: Object.keys(errorCodes),
  health: healthPairs,
  kind: definedResources.map(({ kind }) => kind),
};

test("the page on updates names every reason to wait [remedies-5]", () => {
  const page = readFileSync(join(root, "docs/os-updates.md"), "utf8");
  expect(waitReasons.filter((reason) => !page.includes(`\`${reason}\``))).toEqual([]);
});

test("every kind that is installed is explained by each of its names [remedies-4]", async () => {
  const { harness } = await updatedPool(["w0"]);
  for (const resource of definedResources) {
    const { shortNames = [] } = resource.crd().spec["names"] as { readonly shortNames?: readonly string[] };
    for (const word of [resource.kind, resource.singular, resource.plural, ...shortNames])
      expect(await explained(harness, `${word}/nobody`), word).toBeUndefined();
  }
});

describe("every reason has a row", () => {
  test.for(Object.keys(tables) as Table[])("of the table of %s [remedies-3]", (table) => {
    const prefix = `${table}/`;
    const covered = [...rows, ...imageKindRows, ...upgradeRows, ...failureRows, ...texts]
      .flatMap((row) => row.reasons)
      .filter((reason) => reason.startsWith(prefix))
      .map((reason) => reason.slice(prefix.length));
    expect([...new Set(covered)].sort()).toEqual([...new Set(reasons[table])].sort());
  });
});
