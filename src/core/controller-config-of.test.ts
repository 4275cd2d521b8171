import { describe, expect, test } from "vitest";
import type { ControllerConfig } from "../api/controller-config.ts";
import { annotations } from "../api/names.ts";
import { baseConfigs } from "./base-configs.ts";
import { controllerConfigOf, isCompleted, renderFence, templateStatus } from "./controller-config-of.ts";
import { renderPool } from "./render-pool.ts";

const spec = controllerConfigOf({ dnsServiceIP: undefined, rootCa: "", userCa: undefined, osImage: "os@sha256:0", extensionsImage: undefined, image: "suite", releaseImage: "release" });
const config = (more: Partial<ControllerConfig> = {}): ControllerConfig => ({
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "ControllerConfig",
  metadata: { name: "machine-config-controller", uid: "u", generation: 2, annotations: { [annotations.generatedByVersion]: "1" } },
  spec,
  ...more,
});
const now = Date.UTC(2030, 0, 1);
const completed = config({ status: templateStatus(config(), { at: "completed", version: "1" }, now) });

describe("the fence before rendering", () => {
  test.for([
    { title: "no ControllerConfig yet", given: undefined, reason: "ControllerConfigAbsent" },
    { title: "another version's", given: { ...completed, metadata: { ...completed.metadata, annotations: {} } }, reason: "ControllerConfigOfOtherVersion" },
    { title: "one that nobody worked on", given: config(), reason: "ControllerConfigNotCompleted" },
    { title: "one being worked on", given: config({ status: templateStatus(config(), { at: "running" }, now) }), reason: "ControllerConfigNotCompleted" },
    { title: "one that failed", given: config({ status: templateStatus(config(), { at: "failing", message: "x" }, now) }), reason: "ControllerConfigNotCompleted" },
    { title: "one whose newest generation is still ahead", given: { ...completed, metadata: { ...completed.metadata, generation: 3 } }, reason: "ControllerConfigNotCompleted" },
  ])("is closed for $title", ({ given, reason }) => {
    expect(renderFence(given, "1")).toMatchObject({ verdict: "closed", reason });
  });

  test("opens when this version has completed the newest generation", () => {
    expect(renderFence(completed, "1")).toEqual({ verdict: "open" });
    expect(isCompleted(completed)).toBe(true);
  });
});

test("a second, different failure is told", () => {
  const first = config({ status: templateStatus(config(), { at: "failing", message: "one" }, now) });
  expect(templateStatus(first, { at: "failing", message: "two" }, now + 5000).conditions?.find(({ type }) => type === "TemplateControllerFailing")).toMatchObject({ status: "True", message: "two", lastTransitionTime: "2030-01-01T00:00:00Z" });
});

describe("base configurations", () => {
  const inputs = { controllerConfig: config({ spec: { ...spec, additionalTrustBundle: "LS0gYSBidW5kbGUgLS0K" } }), pullSecret: '{"auths":{}}', generatorVersion: "g" };
  const pathsOf = (name: string) => {
    const found = baseConfigs(inputs).find(({ metadata }) => metadata.name === name);
    const ignition = found?.spec.config as { storage: { files: { path: string; contents: { source: string } }[] } } | undefined;
    return new Map(ignition?.storage.files.map(({ path, contents }) => [path, contents.source]));
  };

  test("the same inputs give the same bytes", () => {
    expect(JSON.stringify(baseConfigs(inputs))).toBe(JSON.stringify(baseConfigs(structuredClone(inputs))));
  });

  test("the pull secret and the trust bundle are there when the cluster has them, and only then", () => {
    expect(pathsOf("00-worker").get("/var/lib/kubelet/config.json")).toBe("data:,%7B%22auths%22%3A%7B%7D%7D");
    expect(pathsOf("00-worker").get("/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt")).toBe("data:,--%20a%20bundle%20--%0A");
    const bare = baseConfigs({ ...inputs, controllerConfig: config(), pullSecret: undefined });
    expect(JSON.stringify(bare)).not.toMatch(/config\.json|ca-trust/);
  });

  test("no unit runs a program", () => {
    expect(baseConfigs(inputs).every((each) => (each.spec.config as { systemd?: unknown }).systemd === undefined)).toBe(true);
  });

  test("they render for both roles", () => {
    for (const role of ["master", "worker"]) {
      const members = baseConfigs(inputs).filter(({ metadata }) => metadata.labels?.["machineconfiguration.openshift.io/role"] === role);
      expect(renderPool({ pool: { metadata: { name: role } }, members, controllerConfig: config(), generatorVersion: "g" }).verdict).toBe("rendered");
    }
  });
});
