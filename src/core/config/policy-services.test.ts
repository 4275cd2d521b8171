import { expect, test } from "vitest";
import { nodeConfigOf } from "./node-config.ts";
import { problemOfService, problemsOfServices } from "./policy-services.ts";

const configWith = (...units: readonly object[]) => {
  const ignition = { ignition: { version: "3.4.0" }, systemd: { units } } as never;
  const read = nodeConfigOf({ metadata: { name: "x" }, spec: { config: ignition } } as never, ignition);
  if (read.verdict !== "decoded") throw new Error(JSON.stringify(read));
  return read.config;
};
const text = "[Service]\nExecStart=/bin/true\n";

test.each([
  ["app.service", [{ name: "app.service", contents: text }]],
  ["app@a.service", [{ name: "app@.service", contents: text }]],
  ["crio.service", []],
  ["coreos-update-ca-trust.service", []],
])("%s is on the machines [policy-services-1]", (service, units) => {
  expect(problemOfService(service, [configWith(...units)], "pool worker")).toBe(undefined);
});

test.each([
  ["app-typo.service", [], "no MachineConfig of pool worker brings app-typo.service", "correct the name"],
  ["ap.service", [{ name: "app.service", contents: text }], "no MachineConfig", "did you mean app.service?"],
  ["my-ap.service", [{ name: "my-app.service", contents: text }], "no MachineConfig", "did you mean my-app.service?"],
  ["chornyd.service", [], "no MachineConfig", "did you mean chronyd.service?"],
  ["app.service", [{ name: "app.service", enabled: true }], "no MachineConfig", "correct the name"],
  ["crio.service", [{ name: "crio.service", mask: true }], "pool worker masks crio.service", "take away the mask"],
  ["app@.service", [{ name: "app@.service", contents: text }], "app@.service is a template", "app@a.service"],
  ["app", [], "app is no name of a unit", "suffix"],
])("%s is not [policy-services-2]", (service, units, reason, remedy) => {
  const problem = problemOfService(service, [configWith(...units)], "pool worker");
  expect(problem?.reason).toContain(reason);
  expect(problem?.remedy).toContain(remedy);
});

test("each action's field is named [policy-services-3]", () => {
  const policies = {
    files: [
      {
        path: "/etc/a",
        actions: [
          { type: "DaemonReload" },
          { type: "Restart", restart: { serviceName: "a.service" } },
          { type: "Reload", reload: { serviceName: "crio.service" } },
        ],
      },
    ],
    units: [{ name: "b.service", actions: [{ type: "Reload", reload: { serviceName: "b.service" } }] }],
    sshkey: { actions: [{ type: "Restart", restart: { serviceName: "c.service" } }] },
  };
  expect(problemsOfServices(policies as never, [configWith()], "the cluster")).toMatchObject([
    { path: "spec.nodeDisruptionPolicy.files[0].actions[1].restart.serviceName", severity: "warning" },
    { path: "spec.nodeDisruptionPolicy.units[0].actions[0].reload.serviceName", service: "b.service" },
    { path: "spec.nodeDisruptionPolicy.sshkey.actions[0].restart.serviceName" },
  ]);
});
