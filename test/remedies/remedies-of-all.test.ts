import { describe, test } from "vitest";
import { bookRows, healthRows } from "./health-rows.ts";
import { failureRows, imageKindRows, upgradeRows } from "./image-rows.ts";
import { machineRows } from "./machine-rows.ts";
import { objectRows } from "./object-rows.ts";
import { poolRows, waitRows } from "./roll-out-rows.ts";
import { checkRow } from "./row.ts";

const neighbours = [...waitRows, ...poolRows, ...machineRows, ...healthRows, ...bookRows, ...objectRows].filter(
  ({ isLong }) => isLong === true,
);

describe("the next step of a state that is not settled is true, and ends it", () => {
  test.for(neighbours)("$title [remedies-of-all-1]", (row) => checkRow(row));
  test.for([...imageKindRows, ...upgradeRows, ...failureRows])("$title [remedies-of-all-2]", (row) => checkRow(row));
});
