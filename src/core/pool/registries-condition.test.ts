import { expect, test } from "vitest";
import { conditionOf } from "../../api/schema/object.ts";
import { registriesStatus } from "./registries-condition.ts";

const stated = (type: string, status: "True" | "False") => ({
  type,
  status,
  reason: "AsExpected",
  message: "",
  lastTransitionTime: "2026-01-01T00:00:00Z",
});

const poolWith = (...conditions: readonly ReturnType<typeof stated>[]) => ({
  apiVersion: "machineconfiguration.openshift.io/v1" as const,
  kind: "MachineConfigPool" as const,
  metadata: { name: "worker" },
  spec: {},
  status: { conditions: [...conditions] },
});

const says = (status: ReturnType<typeof registriesStatus>, type: string) =>
  conditionOf(status?.conditions as { type: string; status?: string }[], type)?.status;

test("a pool is degraded by its registries, and well again, with the condition that sums it up [registries-condition-1]", () => {
  const refused = registriesStatus(poolWith(stated("Degraded", "False")), "no room", 0);
  expect([says(refused, "RegistriesDegraded"), says(refused, "Degraded")]).toEqual(["True", "True"]);
  const degraded = poolWith(stated("Degraded", "True"), stated("RegistriesDegraded", "True"));
  const corrected = registriesStatus(degraded, undefined, 0);
  expect([says(corrected, "RegistriesDegraded"), says(corrected, "Degraded")]).toEqual(["False", "False"]);
  const other = poolWith(
    stated("Degraded", "True"),
    stated("NodeDegraded", "True"),
    stated("RegistriesDegraded", "True"),
  );
  expect(says(registriesStatus(other, undefined, 0), "Degraded")).toBe("True");
});

test("a pool that was never judged does not say that it is degraded as a whole [registries-condition-2]", () => {
  const refused = registriesStatus(poolWith(), "no room", 0);
  expect([says(refused, "RegistriesDegraded"), says(refused, "Degraded")]).toEqual(["True", undefined]);
});

test("a pool whose registries were never refused gets no condition [registries-condition-3]", () => {
  expect(registriesStatus(poolWith(stated("Degraded", "False")), undefined, 0)).toBeUndefined();
});
