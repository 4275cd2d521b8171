import { describe, expect, test } from "vitest";
import type { Node } from "../api/foreign/kubernetes.ts";
import type { ControllerConfig } from "../api/kinds/controller-config.ts";
import type { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
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
      now: 0,
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

test("it omits unmanaged parts, and does not show a roll-out as a problem", () => {
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
      now: 0,
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

  test("is shown as insecure if it serves every client, even with an unknown address", () => {
    const insecure = { [annotations.configServerAccess]: "insecure" };
    expect(joining(insecure, "127.3.4.3")).toEqual({
      line: ["joining   insecure   https://127.3.4.3:22623  every client gets configurations with their secrets"],
      configServer: { url: "https://127.3.4.3:22623", access: "insecure" },
    });
    expect(joining(insecure)).toEqual({
      line: ["joining   insecure   every client gets configurations with their secrets"],
      configServer: { url: "", access: "insecure" },
    });
  });

  test("is omitted if it is unknown", () => {
    expect(joining({})).toEqual({ line: [], configServer: { url: "", access: "required" } });
  });
});

test("a machine in no pool is shown as that, whatever it has of earlier times [cli-draw-status-unassigned-1]", () => {
  const worker = {
    metadata: { name: "worker" },
    spec: { nodeSelector: { matchLabels: { "node-role.kubernetes.io/worker": "" } } },
  } as unknown as MachineConfigPool;
  const node = {
    metadata: {
      name: "w1",
      annotations: {
        [annotations.currentConfig]: "rendered-worker-a",
        [annotations.desiredConfig]: "rendered-worker-b",
      },
    },
    status: { conditions: [{ type: "Ready", status: "True" }] },
  } as unknown as Node;
  const status = clusterStatus({
    now: 0,
    pools: [worker],
    nodes: [node],
    machineConfigNodes: [],
    clusterOperators: [],
  });
  expect(status.nodes).toMatchObject([
    { phase: "Unassigned", reason: "no pool selects it; what puts it into one: mco explain node/w1" },
  ]);
  expect(drawStatus(status, { colours: false, width: 160 }).join("\n")).toMatch(
    /in no pool\n {2}w1 +Unassigned .*mco explain node\/w1$/,
  );
});

test("a machine that waits for an image of its configuration needs an update, and says what it waits for [draw-status-1]", () => {
  const node = {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name: "worker-0",
      labels: { role: "" },
      annotations: {
        [annotations.currentConfig]: "rendered-worker-a",
        [annotations.desiredConfig]: "rendered-worker-a",
        [annotations.state]: "Done",
      },
    },
    status: { conditions: [{ type: "Ready", status: "True" }] },
  } as unknown as Node;
  const pool = (labels: Readonly<Record<string, string>>) =>
    ({
      metadata: { name: "worker", labels },
      spec: { nodeSelector: { matchLabels: { role: "" } }, configuration: { name: "rendered-worker-a" } },
    }) as unknown as MachineConfigPool;
  const of = (labels: Readonly<Record<string, string>>) =>
    clusterStatus({ now: 0, pools: [pool(labels)], nodes: [node], machineConfigNodes: [], clusterOperators: [] }).nodes;
  expect(of({})).toMatchObject([{ phase: "Updated", reason: "" }]);
  expect(of({ [annotations.layeringEnabled]: "" })).toMatchObject([
    { phase: "NeedsUpdate", reason: expect.stringContaining("opted in to images") as string },
  ]);
});

test("kinds of OpenShift that the cluster lacks are one line, and no problem [cli-draw-status-absent-1]", () => {
  const facts = { now: 0, pools: [], nodes: [], machineConfigNodes: [], clusterOperators: [] };
  const lines = (absentKinds: readonly string[]) =>
    drawStatus(clusterStatus({ ...facts, absentKinds }), { colours: false, width: 100 });
  expect(lines(["Image", "ImageDigestMirrorSet", "FeatureGate", "APIServer"])).toContain(
    "settings  the cluster has no Image, ImageDigestMirrorSet, FeatureGate and 1 more: none is needed",
  );
  expect(lines([]).filter((line) => line.startsWith("settings"))).toEqual([]);
});

test("a pool with pinned images says how many machines have them, and why others do not [draw-status-2]", () => {
  const pool = (is: "True" | "False", have: number, sets: readonly string[] = ["a"]) =>
    ({
      metadata: { name: "worker" },
      spec: { pinnedImageSets: sets.map((name) => ({ name })) },
      status: {
        conditions: [{ type: "PinnedImageSetsDegraded", status: is, message: is === "True" ? "no such image" : "" }],
        poolSynchronizersStatus: [
          { poolSynchronizerType: "PinnedImageSets", machineCount: 3, updatedMachineCount: have },
        ],
      },
    }) as unknown as MachineConfigPool;
  const lines = (of: MachineConfigPool) =>
    drawStatus(clusterStatus({ now: 0, pools: [of], nodes: [], machineConfigNodes: [], clusterOperators: [] }), {
      colours: false,
      width: 100,
    }).filter((line) => line.includes("pinned"));
  expect(lines(pool("False", 2))).toEqual(["  pinned images on 2 of 3 machines"]);
  expect(lines(pool("True", 0))).toEqual(["  pinned images on 0 of 3 machines  no such image"]);
  expect(lines(pool("False", 3, []))).toEqual([]);
});
