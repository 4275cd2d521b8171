import { expect, test } from "vitest";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { type Context, type Controller, watching } from "../kube/controller.ts";
import { KubeError } from "../kube/kube-error.ts";
import { done } from "../kube/outcome.ts";
import type { Report } from "../kube/report.ts";
import { reportingFailures } from "./report-failing.ts";

/** A controller that fails for the keys in `broken`, and the lines that it reports. */
function harness() {
  const broken = new Map<string, Error>();
  const lines: string[] = [];
  const report = (({ path, mark, reason, message }: Record<string, string>) =>
    void lines.push(`${path} ${mark} ${reason}: ${message}`)) as unknown as Report;
  const controller: Controller = {
    name: "render",
    watches: [watching({ resource: MachineConfigPool, concerns: () => [] })],
    owns: [],
    reconcile: (key) => {
      const error = broken.get(key);
      return error === undefined ? Promise.resolve(done()) : Promise.reject(error);
    },
  };
  const reporting = reportingFailures(controller, report, "c-1");
  const context = { signal: new AbortController().signal } as Context;
  const pass = async (key: string, times = 1) => {
    for (let time = 0; time < times; time++) await reporting.reconcile(key, context).catch(() => undefined);
  };
  return { broken, lines, pass };
}

test("a controller's third failure in a row for an object is reported once, and so is its recovery [controller-failing-1]", async () => {
  const { broken, lines, pass } = harness();
  broken.set("worker", new Error("the template is broken"));
  await pass("worker", 2);
  expect(lines).toEqual([]);
  await pass("worker", 5);
  await pass("master");
  expect(lines).toEqual(["Child/render begin ChildFailing: worker: the template is broken"]);
  broken.set("master", new Error("another"));
  await pass("master", 3);
  broken.delete("worker");
  await pass("worker");
  expect(lines.slice(1)).toEqual(["Child/render retry ChildFailing: master: another"]);
  broken.clear();
  await pass("master");
  expect(lines.at(-1)).toBe("Child/render end Recovered: the controller render works for master again");
});

test("an unavailable API server is no failure of the controller [controller-failing-2]", async () => {
  const { broken, lines, pass } = harness();
  broken.set("worker", new KubeError(503, { message: "away" }, "GET /x"));
  await pass("worker", 10);
  expect(lines).toEqual([]);
});
