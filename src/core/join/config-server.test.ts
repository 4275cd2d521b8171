import { describe, expect, test } from "vitest";
import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import { annotations } from "../../api/names.ts";
import {
  type ConfigServerFacts,
  apiServerForMachines,
  apiServerHosts,
  configServerAccess,
  configServerHosts,
  publishedApiServerHosts,
} from "./config-server.ts";

const facts = (more: Partial<ConfigServerFacts>): ConfigServerFacts => ({
  controllerConfig: undefined,
  machineConfiguration: undefined,
  clusterInfo: undefined,
  ownServer: "https://10.96.0.1:443",
  installedAddress: undefined,
  ...more,
});
const infra = (status: object) => ({ spec: { infra: { status } } }) as unknown as ConfigServerFacts["controllerConfig"];
const settings = (notes: Readonly<Record<string, string>>) => ({ metadata: { name: "cluster", annotations: notes } });
const clusterInfo = {
  data: { kubeconfig: 'apiVersion: v1\nclusters:\n- cluster:\n    server: https://cp.example.com:6443\n  name: ""\n' },
};

describe("the config server of a cluster", () => {
  test.for([
    {
      title: "gives machines the internal name of the API server",
      given: facts({
        controllerConfig: infra({ apiServerInternalURI: "https://api-int.example.com:6443" }),
        clusterInfo,
      }),
      server: "https://api-int.example.com:6443",
    },
    {
      title: "gives machines the address that kubeadm published",
      given: facts({ clusterInfo }),
      server: "https://cp.example.com:6443",
    },
    {
      title: "gives machines its own address by default",
      given: facts({}),
      server: "https://10.96.0.1:443",
    },
    {
      title: "passes over what is no kubeconfig",
      given: facts({ clusterInfo: { data: { kubeconfig: "{clusters: [" } } }),
      server: "https://10.96.0.1:443",
    },
    {
      title: "passes over a server that is no URL",
      given: facts({ clusterInfo: { data: { kubeconfig: "clusters: [{cluster: {server: cp}}]" } } }),
      server: "https://10.96.0.1:443",
    },
  ])("$title", ({ given, server }) => {
    expect(apiServerForMachines(given)).toBe(server);
  });

  test("passes over a published kubeconfig of many keys in bounded time [join-config-server-3]", () => {
    const kubeconfig = `{${Array.from({ length: 40_000 }, (_, i) => `k${i}`).join(",")}}`;
    const began = process.cpuUsage().user;
    expect(apiServerForMachines(facts({ clusterInfo: { data: { kubeconfig } } }))).toBe("https://10.96.0.1:443");
    expect((process.cpuUsage().user - began) / 1e6).toBeLessThan(4);
  });

  test("has a certificate for every name and address that machines get [join-config-server-1]", () => {
    const status = {
      apiServerInternalURI: "https://api-int.example.com:6443",
      platformStatus: { type: "BareMetal", baremetal: { apiServerInternalIPs: ["10.0.0.5", "fd00::5"] } },
    };
    expect(configServerHosts(facts({ controllerConfig: infra(status) }))).toEqual(["10.0.0.5", "fd00::5"]);
    expect(
      configServerHosts(
        facts({ controllerConfig: infra({ apiServerInternalURI: "https://api-int.example.com:6443" }) }),
      ),
    ).toEqual(["api-int.example.com"]);
    expect(
      configServerHosts(
        facts({
          machineConfiguration: settings({ [annotations.configServerAddress]: "[fd00::9]:22623" }),
          installedAddress: "127.3.4.3",
        }),
      ),
    ).toEqual(["fd00::9", "127.3.4.3"]);
    expect(configServerHosts(facts({}))).toEqual([]);
  });

  test("names every host of the API server, so that no node serves under one [attack-joining-17]", () => {
    const noted = publishedApiServerHosts({
      ...facts({ clusterInfo, ownServer: "https://[fd00::1]:6443" }),
      apiServerAddresses: ["10.0.0.7", "fd00::1"],
    });
    expect(noted).toEqual(["cp.example.com", "fd00::1", "10.0.0.7"]);
    const local = { ...facts({ ownServer: "https://127.0.0.1:6443" }), apiServerAddresses: ["127.0.0.1"] };
    expect(publishedApiServerHosts(local)).toEqual([]);
    const { spec } = infra({
      apiServerInternalURI: "https://[fd00::2]:6443",
      apiServerURL: "https://api.example.com:6443",
      platformStatus: {
        type: "VSphere",
        vsphere: { apiServerInternalIPs: ["10.0.0.5"], apiServerInternalIP: "10.0.0.5" },
      },
    }) as Pick<ControllerConfig, "spec">;
    const metadata = { name: "c", annotations: { [annotations.apiServerHosts]: noted.join(",") } };
    expect(apiServerHosts({ metadata, spec })).toEqual([
      "fd00::2",
      "api.example.com",
      "10.0.0.5",
      "cp.example.com",
      "fd00::1",
      "10.0.0.7",
    ]);
    expect(apiServerHosts(undefined)).toEqual([]);
  });

  test("requires a credential by default, also for a misspelt setting [join-config-server-2]", () => {
    expect(configServerAccess(undefined)).toEqual({ access: "required", problem: undefined });
    expect(configServerAccess(settings({ [annotations.configServerAccess]: "insecure" })).access).toBe("insecure");
    const misspelt = configServerAccess(settings({ [annotations.configServerAccess]: "Insecure" }));
    expect(misspelt.access).toBe("required");
    expect(misspelt.problem).toContain('"Insecure"');
  });
});
