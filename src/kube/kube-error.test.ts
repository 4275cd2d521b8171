import { expect, test } from "vitest";
import { KubeError, isForbidden, isPassing, isUnauthorized } from "./kube-error.ts";

test("credentials that are not accepted are no missing right, and pass [kube-error-2]", () => {
  const expired = new KubeError(401, { reason: "Unauthorized", code: 401 }, "GET /");
  expect([isUnauthorized(expired), isPassing(expired), isForbidden(expired)]).toEqual([true, true, false]);
  const refused = new KubeError(403, { reason: "Forbidden", code: 403 }, "GET /");
  expect([isUnauthorized(refused), isPassing(refused), isForbidden(refused)]).toEqual([false, false, true]);
});
