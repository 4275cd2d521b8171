import { expect, test } from "vitest";
import { emptyNodeConfig } from "../config/node-config.ts";
import { type ChangePlan, describeDeployment, machineForecast } from "./describe-plan.ts";

const words = (prefix: string) => Array.from({ length: 100_000 }, (_, index) => `${prefix}${index}`);
const deployment = (kernelArguments: readonly string[]) => ({
  image: "i",
  kernelArguments,
  packages: [],
  kernelType: "default" as const,
});

test("a hundred thousand kernel arguments are counted and compared in bounded time [machine-describe-plan-1]", () => {
  const [from, to] = [words("a"), [...words("b"), "a1"]];
  const plan: unknown = { verdict: "change", changes: [{ kind: "kernelArguments", from, to }], steps: [], because: [] };
  const forecast = machineForecast(plan as ChangePlan, deployment(from) as never, emptyNodeConfig);
  expect(forecast).toMatchObject({ kernelArguments: "+100000 -99999" });
  const text = describeDeployment(deployment(from) as never, deployment(to) as never);
  expect(text.split(", ")).toHaveLength(100_000);
});
