import { describe, expect, test } from "vitest";
import { labels } from "../api/names.ts";
import { type ClusterObjects, planCluster } from "../core/preview/plan-cluster.ts";
import { renderPool } from "../core/render/render-pool.ts";
import type { RenderRefusal } from "../core/render/render-pool.ts";
import { silentLogger } from "../ports/logger.ts";
import { answerReview } from "./admission-handler.ts";

const apiVersion = "machineconfiguration.openshift.io/v1";
const object = (kind: string, name: string, spec: object, role?: string) => ({
  apiVersion,
  kind,
  metadata: { name, ...(role === undefined ? {} : { labels: { [labels.role]: role } }) },
  spec,
});
const config = (name: string, spec: object, role = "worker") => object("MachineConfig", name, spec, role);
const ignition = (storage: object) => ({ config: { ignition: { version: "3.4.0" }, storage } });
const file = (path: string, source = "data:,x") => ignition({ files: [{ path, contents: { source } }] });
const pool = (name: string, machineConfigSelector: object, more: object = {}) =>
  object("MachineConfigPool", name, { machineConfigSelector, nodeSelector: { matchLabels: { [name]: "" } }, ...more });
const ofRoles = (...values: readonly string[]) => ({
  matchExpressions: [{ key: labels.role, operator: "In", values }],
});
const unlabelled = { matchExpressions: [{ key: labels.role, operator: "DoesNotExist" }] };

const base = config("00-worker", file("/etc/a"));
const current = renderPool({
  pool: { metadata: { name: "worker" } },
  members: [base] as never,
  controllerConfig: { spec: { baseOSContainerImage: "os@sha256:1" } },
});
if (current.verdict === "refused") throw new Error("the base does not render");

interface Case {
  /** The cluster before the write, beside a pool with one member. */
  readonly pools?: readonly object[];
  readonly configs?: readonly object[];
  readonly written: ReturnType<typeof object>;
  /** What the API server makes of the write. */
  readonly answer: "refused" | "warned of";
}

/** Every reason why a pool is not rendered, and a write that brings it. A reason without a row does not compile. */
const cases: Readonly<Record<Exclude<RenderRefusal["code"], "OutdatedMember">, Case>> = {
  NoMembers: { written: pool("infra", ofRoles("nobody")), answer: "warned of" },
  InvalidMember: { written: config("99-x", { kernelType: "Realtime" }), answer: "refused" },
  UnlabelledMember: {
    pools: [pool("infra", unlabelled)],
    written: object("MachineConfig", "99-x", file("/etc/b")),
    answer: "warned of",
  },
  KernelDevel: {
    configs: [config("50-kernel", { kernelType: "realtime" })],
    written: config("99-x", { extensions: ["kernel-devel"] }),
    answer: "warned of",
  },
  Unhashable: { written: config("99-x", { kernelArguments: ["\u007f"] }), answer: "warned of" },
  StreamAndImage: {
    pools: [pool("infra", ofRoles("worker", "infra"), { osImageStream: { name: "rhel-9" } })],
    written: config("99-x", { osImageURL: `registry.example/os@sha256:${"1".repeat(64)}` }, "infra"),
    answer: "warned of",
  },
  UnknownStream: {
    written: pool("infra", ofRoles("worker"), { osImageStream: { name: "rhel-7" } }),
    answer: "warned of",
  },
  TooLarge: { written: config("99-x", file("/etc/b", `data:,${"x".repeat(1_600_000)}`)), answer: "warned of" },
  PathConflict: { written: config("99-x", file("/etc/a/b")), answer: "refused" },
  NoContents: { written: config("99-x", ignition({ files: [{ path: "/etc/b", mode: 384 }] })), answer: "refused" },
  Irreconcilable: { written: config("99-x", ignition({ disks: [{ device: "/dev/vdb" }] })), answer: "warned of" },
};

const osImageStream = {
  ...object("OSImageStream", "cluster", {}),
  status: {
    defaultStream: "rhel-9",
    availableStreams: [{ name: "rhel-9", osImage: "os@sha256:1", osExtensionsImage: "e" }],
  },
};

describe("what prevents a pool from being rendered", () => {
  test.for(Object.entries(cases) as [RenderRefusal["code"], Case][])(
    "%s is reported before it happens [controller-refused-renders-1]",
    ([code, { pools = [], configs = [], written, answer }]) => {
      const worker = pool("worker", ofRoles("worker"), { configuration: { name: current.config.metadata.name } });
      const facts = {
        pools: [worker, ...pools],
        machineConfigs: [base, current.config, ...configs],
        machineConfiguration: undefined,
        controllerConfig: object("ControllerConfig", "machine-config-controller", {
          baseOSContainerImage: "os@sha256:1",
        }),
        nodes: [],
        osImageStream,
      } as unknown as ClusterObjects;
      const list = written.kind === "MachineConfigPool" ? "pools" : "machineConfigs";
      const after = { ...facts, [list]: [...facts[list], written] };
      const codesOf = (objects: ClusterObjects) =>
        planCluster(facts, objects).pools.flatMap((one) =>
          one.verdict === "refused" ? one.refusals.map((refusal) => refusal.code) : [],
        );
      expect(codesOf(facts)).not.toContain(code);
      expect(codesOf(after)).toContain(code);

      const body = JSON.stringify({
        apiVersion: "admission.k8s.io/v1",
        request: {
          uid: "u",
          kind: { group: "machineconfiguration.openshift.io", kind: written.kind },
          object: written,
          oldObject: null,
        },
      });
      const { body: text } = answerReview(body, { log: silentLogger, facts: () => facts });
      const { response } = JSON.parse(typeof text === "string" ? text : "") as {
        response: { allowed: boolean; warnings?: readonly string[] };
      };
      expect(response.allowed).toBe(answer === "warned of");
      if (answer === "warned of")
        expect(response.warnings).toContainEqual(expect.stringMatching(/^pool \w+ would not render: /));
    },
  );
});
