import { describe, expect, test } from "vitest";
import type { ControllerConfig } from "../api/kinds/controller-config.ts";
import type { MachineConfiguration } from "../api/kinds/machine-configuration.ts";
import { annotations } from "../api/names.ts";
import { clusterStatus } from "../core/preview/cluster-status.ts";
import { drawStatus } from "./draw-status.ts";

const drawn = (
  ...conditions: readonly (readonly [type: string, status: string, reason: string, message: string])[]
) => {
  const machineConfiguration = {
    metadata: { name: "cluster" },
    status: {
      conditions: conditions.map(([type, status, reason, message]) => ({
        type,
        status,
        reason,
        message,
        lastTransitionTime: "",
      })),
    },
  } as unknown as MachineConfiguration;
  return drawStatus(
    clusterStatus({
      pools: [],
      nodes: [],
      machineConfigNodes: [],
      clusterOperators: [],
      machineConfigurations: [machineConfiguration],
    }),
    { colours: false, width: 100 },
  );
};

test("the status says that all parts of the suite are well, or which is not, and why", () => {
  const well = [
    ["OperatorHealthy", "True", "AsExpected", ""],
    ["StateKeeping", "True", "AsExpected", ""],
    ["BootstrapComplete", "False", "BootstrapJournalMissing", "none"],
  ] as const;
  expect(drawn(...well)).toContain("suite     well       Operator, StateKeeping");
  expect(
    drawn(
      ...well,
      ["DaemonsHealthy", "False", "DaemonSilent", "worker-0 since 10:00"],
      ["ControllerHealthy", "Unknown", "NotKnown", "nothing was heard"],
    ).filter((line) => line.startsWith("suite")),
  ).toEqual([
    "suite     Controller: NotKnown  nothing was heard",
    "suite     Daemons: DaemonSilent  worker-0 since 10:00",
  ]);
});

test("it says nothing of parts that nobody looks after, and takes no roll-out for a trouble", () => {
  expect(drawn(["Other", "False", "x", ""], ["UpdateProgressing", "False", "AsExpected", ""]).join()).not.toContain(
    "suite",
  );
});

describe("where machines join", () => {
  const joining = (notes: Readonly<Record<string, string>>, configServerAddress?: string, infra?: object) => {
    const machineConfiguration = {
      metadata: { name: "cluster", annotations: notes },
    } as unknown as MachineConfiguration;
    const controllerConfig = {
      metadata: { name: "machine-config-controller" },
      spec: { infra: infra ?? null },
    } as unknown as ControllerConfig;
    const status = clusterStatus({
      pools: [],
      nodes: [],
      machineConfigNodes: [],
      clusterOperators: [],
      machineConfigurations: [machineConfiguration],
      controllerConfigs: [controllerConfig],
      configServerAddress,
    });
    return {
      line: drawStatus(status, { colours: false, width: 120 }).filter((text) => text.startsWith("joining")),
      configServer: status.configServer,
    };
  };

  test("is said in one line, and what they show there", () => {
    expect(joining({}, "127.3.4.3")).toEqual({
      line: ["joining   https://127.3.4.3:22623  machines show a token or a certificate"],
      configServer: { url: "https://127.3.4.3:22623", access: "required" },
    });
  });

  test("is what the cluster says where it says something", () => {
    expect(
      joining({}, "127.3.4.3", { status: { apiServerInternalURI: "https://api-int.example.com:6443" } }).configServer
        .url,
    ).toBe("https://api-int.example.com:22623");
    expect(joining({ [annotations.configServerAddress]: "mcs.example.com:443" }, "127.3.4.3").configServer.url).toBe(
      "https://mcs.example.com:443",
    );
  });

  test("is called insecure where everybody is answered, also if nobody says where it is", () => {
    const insecure = { [annotations.configServerAccess]: "insecure" };
    expect(joining(insecure, "127.3.4.3")).toEqual({
      line: ["joining   insecure   https://127.3.4.3:22623  whoever asks is given configurations with their secrets"],
      configServer: { url: "https://127.3.4.3:22623", access: "insecure" },
    });
    expect(joining(insecure)).toEqual({
      line: ["joining   insecure   whoever asks is given configurations with their secrets"],
      configServer: { url: "", access: "insecure" },
    });
  });

  test("is not said where nobody knows", () => {
    expect(joining({})).toEqual({ line: [], configServer: { url: "", access: "required" } });
  });
});
