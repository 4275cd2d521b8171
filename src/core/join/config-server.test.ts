import { describe, expect, test } from "vitest";
import { annotations } from "../../api/names.ts";
import {
  type ConfigServerFacts,
  apiServerForMachines,
  configServerAccess,
  configServerHosts,
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
      title: "tells machines the internal name of the API server",
      given: facts({
        controllerConfig: infra({ apiServerInternalURI: "https://api-int.example.com:6443" }),
        clusterInfo,
      }),
      server: "https://api-int.example.com:6443",
    },
    {
      title: "tells them what kubeadm published",
      given: facts({ clusterInfo }),
      server: "https://cp.example.com:6443",
    },
    {
      title: "tells them what it uses itself where nobody says more",
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

  test("is vouched for by every name and address that machines are told [join-config-server-1]", () => {
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

  test("asks for a credential unless somebody says otherwise, also where that is misspelt [join-config-server-2]", () => {
    expect(configServerAccess(undefined)).toEqual({ access: "required", problem: undefined });
    expect(configServerAccess(settings({ [annotations.configServerAccess]: "insecure" })).access).toBe("insecure");
    const misspelt = configServerAccess(settings({ [annotations.configServerAccess]: "Insecure" }));
    expect(misspelt.access).toBe("required");
    expect(misspelt.problem).toContain('"Insecure"');
  });
});
