import { describe, expect, test } from "vitest";
import type { KubeletConfig } from "../../api/kinds/kubelet-config.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { fileText } from "../render/config-file.ts";
import { type KubeletConfigView, decideKubeletConfig } from "./decide-kubelet-config.ts";
import { kubeletBase } from "./kubelet-base.ts";
import { mostTextCharacters } from "../../ignition/held-contents.ts";

const pool = (name: string): MachineConfigPool => ({
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineConfigPool",
  metadata: { name, labels: { pool: name, all: "" } },
  spec: {},
});
const pools = ["master", "worker", "infra"].map(pool);

interface Given {
  readonly name?: string;
  readonly day?: number;
  readonly kubeletConfig?: Record<string, unknown>;
  readonly selector?: Record<string, string>;
  readonly finalizers?: string[];
  readonly isDeleted?: boolean;
}

const config = (given: Given = {}): KubeletConfig => {
  const { name = "limits", day = 1, kubeletConfig = {}, selector = { pool: "worker" }, finalizers = [] } = given;
  return {
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "KubeletConfig",
    metadata: {
      name,
      uid: `uid-${name}`,
      generation: 3,
      creationTimestamp: `2026-01-0${day}T00:00:00Z`,
      finalizers,
      ...(given.isDeleted === true ? { deletionTimestamp: "2026-01-09T00:00:00Z" } : {}),
    },
    spec: { kubeletConfig, machineConfigPoolSelector: { matchLabels: selector } },
  };
};

const base = `
kind: KubeletConfiguration
apiVersion: kubelet.config.k8s.io/v1beta1
serializeImagePulls: true
maxPods: 250
systemCgroups: /system.slice
cgroupRoot: /
`;
const decide = (object: KubeletConfig, others: readonly KubeletConfig[] = [], given: Partial<KubeletConfigView> = {}) =>
  decideKubeletConfig({
    object,
    pools,
    others,
    baseOf: (name) =>
      kubeletBase({
        text: base,
        tls: { minVersion: "VersionTLS12", cipherSuites: [] },
        gates: { enabled: ["NodeSwap"] },
        latencyProfile: undefined,
        pool: name,
      }),
    holderOf: () => "nothing",
    held: [],
    overriddenOf: () => [],
    generatorVersion: "v1",
    now: Date.parse("2026-01-09T00:00:00Z"),
    ...given,
  });
const saysOf = (decision: ReturnType<typeof decide>) =>
  "status" in decision
    ? decision.status.conditions?.map(({ type, status, reason, message }) => `${type} ${status} ${reason}: ${message}`)
    : undefined;

describe("a KubeletConfig", () => {
  test("makes a MachineConfig for each pool that it selects, holds it by a finalizer, and says so [decide-kubelet-config-1]", () => {
    const decision = decide(config({ kubeletConfig: { maxPods: 64 }, selector: { all: "" } }));
    expect(decision).toMatchObject({
      do: "apply",
      stale: [],
      finalizers: ["99-master-generated-kubelet", "99-worker-generated-kubelet", "99-infra-generated-kubelet"],
      status: { observedGeneration: 3 },
    });
    expect(saysOf(decision)).toEqual([
      "Effective True AsWritten: ",
      "Accepted True Applied: Success",
      "Reconciling False UpToDate: ",
      "Stalled False UpToDate: ",
      "Success True Applied: Success",
    ]);
  });

  test.for([
    {
      title: "that a kubelet refuses",
      kubeletConfig: { maxPods: -1 },
      says: "spec.kubeletConfig.maxPods must be at least 0",
    },
    {
      title: "whose value has another type",
      kubeletConfig: { maxPods: "many" },
      says: 'spec.kubeletConfig.maxPods must be a whole number from -2147483648 to 2147483647, not "many"',
    },
    {
      title: "that sets what the cluster owns",
      kubeletConfig: { clusterDNS: ["10.0.0.1"] },
      says: "spec.kubeletConfig.clusterDNS must not be set: the cluster's own DNS decides it",
    },
    {
      title: "that only together with the base is refused",
      kubeletConfig: { imageGCHighThresholdPercent: 75 },
      says: "spec.kubeletConfig.imageGCLowThresholdPercent must be below imageGCHighThresholdPercent; they are 80 and 75",
    },
    {
      title: "that selects no pool",
      selector: { pool: "gpu" },
      says: "spec.machineConfigPoolSelector selects none of the pools infra, master, worker; give one of them the label, or change the selector",
    },
  ])(
    "$title is refused with its reason, and what it made before stays [decide-kubelet-config-2]",
    ({ says, ...given }) => {
      const decision = decide(config({ ...given, finalizers: ["99-worker-generated-kubelet"] }));
      expect(decision.do).toBe("refuse");
      expect(saysOf(decision)?.at(-1)).toBe(`Failure True Invalid: ${says}`);
    },
  );

  test("says which fields change nothing [decide-kubelet-config-3]", () => {
    const kubeletConfig = { serializeImagePulls: false, MAXPODS: 3, maxPod: 3, x: 1, logging: { verbosiy: 1 } };
    const says = (field: string, what: string) => `spec.kubeletConfig.${field} ${what}`;
    const ignored = "is no field of kubelet 1.34, which ignores it";
    expect(saysOf(decide(config({ kubeletConfig })))?.[0]).toBe(
      `Effective False FieldsWithoutEffect: ${[
        says("MAXPODS", `${ignored}: write maxPods`),
        says("logging.verbosiy", `${ignored}: write verbosity`),
        says("maxPod", `${ignored}: write maxPods`),
        says("x", `${ignored}: take it out`),
        says(
          "serializeImagePulls",
          "changes nothing: false does not replace true of the base: take it out; no KubeletConfig turns it off",
        ),
      ].join("; ")}`,
    );
  });

  test("that is older than another one of its pool says which one decides, and the newer one that it is in effect [decide-kubelet-config-4]", () => {
    const [older, newer] = [
      config({ name: "older", day: 1, finalizers: ["99-worker-generated-kubelet"] }),
      config({ name: "newer", day: 2 }),
    ];
    expect(saysOf(decide(older, [newer]))?.[0]).toContain(
      "Effective False Overridden: newer objects decide kubelet.conf: pool worker by newer",
    );
    expect(saysOf(decide(newer, [older]))?.[0]).toBe("Effective True AsWritten: ");
  });

  test("gives up what it made for a pool that it no longer selects [decide-kubelet-config-5]", () => {
    const made = ["99-worker-generated-kubelet", "99-infra-generated-kubelet", "someone.example/else"];
    expect(decide(config({ finalizers: made }))).toMatchObject({
      stale: ["99-infra-generated-kubelet"],
      finalizers: ["99-worker-generated-kubelet", "someone.example/else"],
    });
  });

  test("keeps off a MachineConfig of its name that another writer made [decide-kubelet-config-7]", () => {
    const taken = (...names: string[]) => ({
      holderOf: (name: string) => (names.includes(name) ? ("another" as const) : ("nothing" as const)),
    });
    const decision = decide(config(), [], taken("99-worker-generated-kubelet"));
    const [made] = decision.do === "apply" ? decision.configs : [];
    expect(made?.metadata.name).toMatch(/^99-worker-generated-kubelet-t[\da-z]{15}$/);
    const refused = decide(config(), [], taken("99-worker-generated-kubelet", made?.metadata.name ?? ""));
    expect(saysOf(refused)?.at(-1)).toContain(
      `Failure True Invalid: metadata.name leads to the MachineConfig ${made?.metadata.name ?? ""}, which another writer made`,
    );
  });

  test("whose MachineConfig has a name too long for a finalizer finds it by its owner [decide-kubelet-config-8]", () => {
    const long = pool("a-pool-whose-name-is-longer-than-the-reference-allows");
    const name = `99-${long.metadata.name}-generated-kubelet`;
    const object = config({ selector: { pool: long.metadata.name } });
    const decision = decide(object, [], { pools: [long] });
    expect(decision).toMatchObject({
      do: "apply",
      configs: [{ metadata: { name } }],
      finalizers: ["machineconfiguration.openshift.io/generated-configs"],
    });
    const finalizers = decision.do === "apply" ? [...decision.finalizers] : [];
    const leaving = config({ finalizers, isDeleted: true });
    expect(decide(leaving, [], { held: [name] })).toEqual({ do: "remove", configs: [name], finalizers: [] });
  });

  test("is judged without the gates that only the cluster's own kubelets know [decide-kubelet-config-9]", () => {
    const gates = { enabled: ["RouteExternalCertificate", "NodeLogQuery"] };
    const decision = decide(config({ kubeletConfig: { enableSystemLogQuery: true } }), [], {
      baseOf: (name) =>
        kubeletBase({
          text: base,
          tls: { minVersion: "VersionTLS12", cipherSuites: [] },
          gates,
          latencyProfile: undefined,
          pool: name,
        }),
    });
    expect(decision.do).toBe("apply");
  });

  test("goes where kubeadm has the file, which holds all of it; what nothing there reads is said [decide-kubelet-config-10]", () => {
    const object = config({ kubeletConfig: { systemReserved: { memory: "2Gi" } } });
    const decision = decide({ ...object, spec: { ...object.spec, logLevel: 4 } }, [], {
      baseOf: (name) => {
        const tls = { minVersion: "VersionTLS12", cipherSuites: [] };
        const reading = kubeletBase({ text: base, tls, gates: {}, latencyProfile: undefined, pool: name });
        return reading.verdict === "read" ? { ...reading, path: "/var/lib/kubelet/config.yaml" } : reading;
      },
    });
    const [made] = decision.do === "apply" ? decision.configs : [];
    const files = (made?.spec.config as { storage: { files: { path: string }[] } } | undefined)?.storage.files;
    expect(files?.map(({ path }) => path)).toEqual(["/var/lib/kubelet/config.yaml"]);
    expect(fileText(made, "/var/lib/kubelet/config.yaml", mostTextCharacters)).toContain(
      "systemReserved:\n  memory: 2Gi\n",
    );
    expect(saysOf(decision)?.[0]).toContain("FieldsWithoutEffect: spec.logLevel changes nothing");
  });

  test("that is being deleted takes its MachineConfigs with it, and leaves others' finalizers [decide-kubelet-config-6]", () => {
    const finalizers = ["99-worker-generated-kubelet-2", "someone.example/else", "99-infra-generated-kubelet"];
    expect(decide(config({ finalizers, isDeleted: true }))).toEqual({
      do: "remove",
      configs: ["99-worker-generated-kubelet-2", "99-infra-generated-kubelet"],
      finalizers: ["someone.example/else"],
    });
  });

  test("with ten thousands of wrong or unknown fields says so in a message that its object can hold [decide-kubelet-config-11]", () => {
    const many = <T>(of: (i: number) => T) => Array.from({ length: 20_000 }, (_, i) => of(i));
    const wrong = { reservedMemory: many(() => ({ numaNode: 0, limits: { memory: "1Gi" } })) };
    const unknown = Object.fromEntries(many((i) => [`unknown${i}`, 1]));
    for (const kubeletConfig of [wrong, unknown]) {
      const says = (saysOf(decide(config({ kubeletConfig }))) ?? []).join("\n");
      expect(says).toMatch(/and \d+ more/);
      expect(says.length).toBeLessThan(32_768);
    }
  });
});
