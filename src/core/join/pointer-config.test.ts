import { describe, expect, test } from "vitest";
import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import { annotations } from "../../api/names.ts";
import { parseIgnition } from "../../ignition/parse-ignition.ts";
import { configServerAuthority, pointerConfig, withPort } from "./pointer-config.ts";

const infra = (status: object) => ({ spec: { infra: { status } } }) as unknown as Pick<ControllerConfig, "spec">;
const machineConfiguration = (address: string) => ({
  metadata: { name: "cluster", annotations: { [annotations.configServerAddress]: address } },
});

describe("configServerAuthority", () => {
  test.for([
    {
      what: "the internal name of the API server",
      controllerConfig: infra({ apiServerInternalURI: "https://api-int.c.example.com:6443" }),
      is: "api-int.c.example.com:22623",
    },
    {
      what: "its internal address where machines know no name",
      controllerConfig: infra({
        apiServerInternalURI: "https://api-int.c.example.com:6443",
        platformStatus: { type: "BareMetal", baremetal: { apiServerInternalIPs: ["192.0.2.5", "2001:db8::5"] } },
      }),
      is: "192.0.2.5:22623",
    },
    {
      what: "an older field for it",
      controllerConfig: infra({ platformStatus: { type: "VSphere", vsphere: { apiServerInternalIP: "2001:db8::5" } } }),
      is: "[2001:db8::5]:22623",
    },
    {
      what: "the name where such a platform has no address",
      controllerConfig: infra({
        apiServerInternalURI: "https://api-int.c.example.com:6443",
        platformStatus: { type: "VSphere", vsphere: {} },
      }),
      is: "api-int.c.example.com:22623",
    },
    { what: "nothing where nobody says", controllerConfig: infra({}), is: undefined },
    { what: "nothing without settings", controllerConfig: undefined, is: undefined },
  ])("$what", ({ controllerConfig, is }) => {
    expect(configServerAuthority({ controllerConfig, machineConfiguration: undefined })).toBe(is);
  });

  test("what an administrator wrote counts first", () => {
    expect(
      configServerAuthority({
        controllerConfig: infra({ apiServerInternalURI: "https://api-int:6443" }),
        machineConfiguration: machineConfiguration("mcs.example.com:443"),
      }),
    ).toBe("mcs.example.com:443");
  });
});

test.for([
  ["a.example.com", "a.example.com:22623"],
  ["a.example.com:1", "a.example.com:1"],
  ["192.0.2.1", "192.0.2.1:22623"],
  ["2001:db8::1", "[2001:db8::1]:22623"],
  ["[2001:db8::1]", "[2001:db8::1]:22623"],
  ["[2001:db8::1]:1", "[2001:db8::1]:1"],
] as const)("%s is reached at %s", ([host, authority]) => {
  expect(withPort(host)).toBe(authority);
});

test("the pointer is a config that Ignition takes, and shows the token in a header, never in a URL", () => {
  const pointer = pointerConfig({
    server: "127.9.9.3:22623",
    pool: "worker",
    token: "id.secret",
    authorities: "-----BEGIN CERTIFICATE-----\n",
  });
  expect(parseIgnition(pointer)).toMatchObject({ verdict: "valid", warnings: [] });
  expect(pointer.ignition.config?.merge).toEqual([
    {
      source: "https://127.9.9.3:22623/config/worker",
      httpHeaders: [{ name: "Authorization", value: "Bearer id.secret" }],
    },
  ]);
});
