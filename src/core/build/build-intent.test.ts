import { describe, expect, test } from "vitest";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import { annotations } from "../../api/names.ts";
import { redactText } from "../text/redact.ts";
import { readContainerfile } from "./build-containerfile.ts";
import {
  type InputFacts,
  type IntentFacts,
  compileIntent,
  containerfileOf,
  contentModeOf,
  inputProblems,
  isOfReference,
  notAccepted,
} from "./build-intent.ts";
import { inputsValid } from "./input-problem.ts";

const full = {
  baseImagePullSecretName: "base",
  finalImagePushSecretName: "push",
  finalImagePullspec: "r.example.com/team/os:v4",
};
const poolOf = (
  has: Readonly<Record<string, string>> = {},
  poolLabels: Readonly<Record<string, string>> = {},
  name = "worker",
): MachineConfigPool => ({
  apiVersion: MachineConfigPool.apiVersion,
  kind: "MachineConfigPool",
  metadata: { name, annotations: { ...has }, labels: { ...poolLabels } },
  spec: {},
});
const configOf = (
  name = "worker",
  has: Readonly<Record<string, string>> = {},
  more: Partial<MachineOSConfig["spec"]> = {},
  created = "2026-01-01T00:00:00Z",
): MachineOSConfig => ({
  apiVersion: MachineOSConfig.apiVersion,
  kind: "MachineOSConfig",
  metadata: { name, annotations: { ...has }, creationTimestamp: created },
  spec: {
    machineConfigPool: { name: "worker" },
    imageBuilder: { imageBuilderType: "Job" },
    renderedImagePushSecret: { name: "push" },
    renderedImagePushSpec: "r.example.com/team/os:latest",
    ...more,
  },
});
const layering = annotations.layeringEnabled;
const made = (source: string) => configOf("worker", { [annotations.optInSource]: source });
const intent = (more: Partial<IntentFacts> = {}) =>
  compileIntent({
    pool: poolOf(),
    machineOSConfigs: [],
    buildConfig: undefined,
    customContainerfiles: undefined,
    ...more,
  });

describe("whether a pool is opted in", () => {
  test.for([
    { title: "nothing asks", facts: {}, is: { opted: "out", reason: "NotAsked" } },
    {
      title: "the label asks",
      facts: { pool: poolOf({}, { [layering]: "" }), buildConfig: full },
      is: { opted: "in", source: "PoolLabel" },
    },
    {
      title: "the annotation asks",
      facts: { pool: poolOf({ [layering]: "yes" }), buildConfig: full },
      is: { opted: "in", source: "PoolLabel" },
    },
    {
      title: "a MachineOSConfig names the pool",
      facts: { machineOSConfigs: [configOf()] },
      is: { opted: "in", source: "MachineOSConfig" },
    },
    {
      title: "a MachineOSConfig takes precedence over the label",
      facts: { pool: poolOf({}, { [layering]: "" }), machineOSConfigs: [configOf()] },
      is: { opted: "in", source: "MachineOSConfig" },
    },
    {
      title: "the cluster's default asks",
      facts: { buildConfig: { ...full, defaultOptIn: "true" } },
      is: { opted: "in", source: "ClusterDefault" },
    },
    {
      title: "the cluster's default says no, and the label yes",
      facts: { pool: poolOf({}, { [layering]: "" }), buildConfig: { ...full, defaultOptIn: "false" } },
      is: { opted: "in", source: "PoolLabel" },
    },
    {
      title: "the ConfigMap is gone: a pool that was in by default stays in",
      facts: { machineOSConfigs: [made("ClusterDefault")] },
      is: { opted: "in", source: "ClusterDefault" },
    },
    {
      title: "the default is removed from the ConfigMap",
      facts: { machineOSConfigs: [made("ClusterDefault")], buildConfig: full },
      is: { opted: "out", reason: "NotAsked" },
    },
    {
      title: "the label is removed",
      facts: { machineOSConfigs: [made("PoolLabel")], buildConfig: full },
      is: { opted: "out", reason: "NotAsked" },
    },
    {
      title: "a MachineOSConfig that is being deleted does not count",
      facts: {
        machineOSConfigs: [
          { ...configOf(), metadata: { ...configOf().metadata, deletionTimestamp: "2026-01-02T00:00:00Z" } },
        ],
      },
      is: { opted: "out", reason: "NotAsked" },
    },
  ] satisfies readonly { title: string; facts: Partial<IntentFacts>; is: object }[])(
    "$title [build-intent-1]",
    ({ facts, is }) => {
      expect(intent(facts)).toMatchObject(is);
    },
  );

  test.for(["false", "False", "0", "no", "off", "disabled"])(
    "%s opts out, against the other place, a MachineOSConfig and the default [build-intent-2]",
    (no) => {
      const rest = { machineOSConfigs: [configOf()], buildConfig: { ...full, defaultOptIn: "true" } };
      expect(intent({ pool: poolOf({ [layering]: no }, { [layering]: "" }), ...rest })).toMatchObject({
        opted: "out",
        reason: "OptedOut",
      });
      expect(intent({ pool: poolOf({ [layering]: "true" }, { [layering]: no }), ...rest })).toMatchObject({
        opted: "out",
        reason: "OptedOut",
      });
    },
  );

  test("what two ConfigMaps say becomes a MachineOSConfig: the repository without its tag, and the pool's Containerfile [build-intent-3]", () => {
    const found = intent({
      pool: poolOf({}, { [layering]: "" }),
      buildConfig: { ...full, imageBuilderType: "custom-pod-builder" },
      customContainerfiles: { worker: "FROM configs\nRUN true", infra: "FROM os" },
    });
    expect(found).toMatchObject({
      problems: [],
      materialised: {
        machineConfigPool: { name: "worker" },
        imageBuilder: { imageBuilderType: "Job" },
        baseImagePullSecret: { name: "base" },
        renderedImagePushSecret: { name: "push" },
        renderedImagePushSpec: "r.example.com/team/os:latest",
        containerFile: [{ containerfileArch: "NoArch", content: "FROM configs\nRUN true" }],
      },
    });
  });

  test("a pool has no Containerfile but that of its own name, whatever that is [build-intent-12]", () => {
    const found = intent({
      pool: poolOf({}, { [layering]: "" }, "constructor"),
      buildConfig: { ...full, imageBuilderType: "custom-pod-builder" },
      customContainerfiles: { worker: "FROM configs" },
    });
    expect(found).toMatchObject({ materialised: { machineConfigPool: { name: "constructor" } } });
    expect(found).not.toHaveProperty("materialised.containerFile");
  });

  test("a Containerfile that is too long for a MachineOSConfig is read from its ConfigMap [build-intent-4]", () => {
    const long = `FROM configs\nRUN true ${"#".repeat(5000)}`;
    const found = intent({
      pool: poolOf({}, { [layering]: "" }),
      buildConfig: full,
      customContainerfiles: { worker: long },
    });
    expect(found).not.toHaveProperty("materialised.containerFile");
    expect(containerfileOf({ source: "PoolLabel", config: undefined }, "amd64", long)).toBe(long);
  });

  test("a missing ConfigMap, and every missing key, is reported, and the rest is not used [build-intent-5]", () => {
    expect(intent({ pool: poolOf({}, { [layering]: "" }) })).toMatchObject({
      problems: [{ code: "BuildConfigMissing" }],
    });
    const found = intent({
      pool: poolOf({}, { [layering]: "" }),
      buildConfig: { finalImagePullspec: "r.example.com/UPPER", imageBuilderType: "odd" },
    });
    expect(found).not.toHaveProperty("materialised");
    expect(found).toMatchObject({
      problems: [
        { code: "BuildConfigKeyMissing" },
        { code: "BuildConfigKeyMissing" },
        { code: "BuilderTypeInvalid" },
        { code: "PushSpecInvalid" },
      ],
    });
  });

  test("of two MachineOSConfigs the one with the pool's name counts, else the oldest; the other one reports it [build-intent-6]", () => {
    const [older, newer] = [
      configOf("x", {}, {}, "2026-01-01T00:00:00Z"),
      configOf("y", {}, {}, "2026-01-02T00:00:00Z"),
    ];
    expect(
      [...notAccepted({ pool: poolOf(), machineOSConfigs: [newer, older] })].map(([name, { reason }]) => [
        name,
        reason,
      ]),
    ).toEqual([["y", "DuplicateForPool"]]);
    expect([...notAccepted({ pool: poolOf(), machineOSConfigs: [configOf(), older] }).keys()]).toEqual(["x"]);
    expect(intent({ machineOSConfigs: [newer, older, configOf()] })).toMatchObject({
      config: { metadata: { name: "worker" } },
    });
  });

  test("a user's MachineOSConfig under a no is not accepted, and said to be opted out [build-intent-7]", () => {
    expect(
      notAccepted({ pool: poolOf({ [layering]: "false" }), machineOSConfigs: [configOf()] }).get("worker"),
    ).toMatchObject({ reason: "OptedOut" });
  });
});

describe("what images hold", () => {
  test.for([
    { title: "everything, where nothing is said", pool: {}, config: {}, mode: "full" },
    { title: "as the pool says", pool: { [annotations.imageContent]: "os-only" }, config: {}, mode: "os-only" },
    {
      title: "as the MachineOSConfig says, before the pool",
      pool: { [annotations.imageContent]: "os-only" },
      config: { [annotations.imageContent]: "full" },
      mode: "full",
    },
  ])("$title", ({ pool, config, mode }) => {
    expect(contentModeOf(poolOf(pool), configOf("worker", config))).toEqual({ verdict: "mode", mode });
  });

  test("another value is refused by name", () => {
    expect(contentModeOf(poolOf({ [annotations.imageContent]: "most" }), undefined)).toMatchObject({
      verdict: "refused",
      problem: { code: "ContentModeInvalid", message: expect.stringContaining('"most"') as string },
    });
  });
});

describe("the inputs", () => {
  const present = {
    is: "present",
    type: "kubernetes.io/dockerconfigjson",
    hosts: ["r.example.com"],
    pools: undefined,
  } as const;
  const good: InputFacts = {
    pool: "worker",
    config: configOf(),
    source: "MachineOSConfig",
    mode: { verdict: "mode", mode: "full" },
    containerfile: undefined,
    secrets: { push: present },
    nodes: [{ name: "w0", architecture: "amd64", imageBased: true }],
    extensions: [],
    kernelType: "default",
    extensionsImage: "",
    osImage: `b.example.com/os@sha256:${"b".repeat(64)}`,
    content: [],
    sourceOf: () => undefined,
    pushDenials: 0,
    preflight: [],
  };
  /** A policy.json that has the images of a scope verified with a key of the machine. */
  const verifiedBy = (scope: string) =>
    JSON.stringify({
      default: [{ type: "insecureAcceptAnything" }],
      transports: { docker: { [scope]: [{ type: "sigstoreSigned", keyPath: "/etc/pki/release.pub" }] } },
    });
  const demanding = (requirement: object) =>
    JSON.stringify({
      default: [{ type: "reject" }],
      transports: { docker: { "b.example.com/os": [requirement] } },
    });
  const withConfig = (more: Partial<MachineOSConfig["spec"]>) => ({ config: configOf("worker", {}, more) });

  test("that are good have no problem", () => {
    expect(inputProblems(good)).toEqual([]);
    expect(inputsValid([])).toEqual({ status: "True", reason: "AsExpected", message: "" });
  });

  test.for([
    { code: "SecretMissing", severity: "error", facts: { secrets: { push: { is: "absent" } } } },
    { code: "SecretType", severity: "error", facts: { secrets: { push: { ...present, type: "Opaque" } } } },
    { code: "SecretFormat", severity: "error", facts: { secrets: { push: { ...present, hosts: undefined } } } },
    {
      code: "SecretNoAuthForHost",
      severity: "warning",
      facts: { secrets: { push: { ...present, hosts: ["other"] } } },
    },
    {
      code: "SecretOfOtherPools",
      severity: "error",
      facts: { secrets: { push: { ...present, pools: ["infra", "master"] } } },
    },
    {
      code: "SecretOfOtherPools",
      severity: "error",
      facts: {
        ...withConfig({ baseImagePullSecret: { name: "base" } }),
        secrets: { push: { ...present, pools: ["worker"] }, pull: { ...present, pools: [] } },
      },
    },
    {
      code: "SecretMissing",
      severity: "error",
      facts: {
        ...withConfig({ baseImagePullSecret: { name: "base" } }),
        secrets: { push: present, pull: { is: "absent" } },
      },
    },
    {
      code: "PushSpecInvalid",
      severity: "error",
      facts: withConfig({ renderedImagePushSpec: "r.example.com/UPPER:1" }),
    },
    {
      code: "PushSpecInvalid",
      severity: "error",
      facts: withConfig({ renderedImagePushSpec: `r.example.com/os@sha256:${"a".repeat(64)}` }),
    },
    {
      code: "PushSpecInvalid",
      severity: "error",
      facts: withConfig({ renderedImagePushSpec: `r.example.com/${"a".repeat(500)}:1` }),
    },
    {
      code: "ContainerfileInvalid",
      severity: "error",
      facts: withConfig({ containerFile: [{ containerfileArch: "NoArch", content: "x".repeat(4097) }] }),
    },
    { code: "ContainerfileInvalid", severity: "error", facts: { containerfile: readContainerfile("FROM fedora") } },
    {
      code: "ContainerfileHeredoc",
      severity: "warning",
      facts: { containerfile: readContainerfile("FROM os\nRUN <<EOF\nx\nEOF") },
    },
    {
      code: "ArchDuplicate",
      severity: "error",
      facts: withConfig({
        containerFile: [
          { containerfileArch: "AMD64", content: "FROM os" },
          { containerfileArch: "AMD64", content: "FROM os" },
        ],
      }),
    },
    {
      code: "ArchInvalid",
      severity: "error",
      facts: withConfig({ containerFile: [{ containerfileArch: "VAX" as "AMD64", content: "FROM os" }] }),
    },
    {
      code: "BuilderTypeInvalid",
      severity: "error",
      facts: withConfig({ imageBuilder: { imageBuilderType: "Pod" as "Job" } }),
    },
    {
      code: "PoolHasUnsupportedNodes",
      severity: "error",
      facts: { nodes: [{ name: "rhel-1", architecture: "amd64", imageBased: false }] },
    },
    {
      code: "PoolMixedArchitectures",
      severity: "error",
      facts: {
        nodes: [
          { name: "a", architecture: "amd64", imageBased: true },
          { name: "b", architecture: "arm64", imageBased: true },
        ],
      },
    },
    { code: "ImageWorldReadable", severity: "warning", facts: { isWorldReadable: true } },
    { code: "BaseImageNotPinned", severity: "warning", facts: { osImage: "b.example.com/os:4.20" } },
    { code: "BaseImageMissing", severity: "error", facts: { osImage: "" } },
    { code: "SignatureKeyMissing", severity: "error", facts: { policy: verifiedBy("b.example.com/os") } },
    {
      code: "SignatureKeyMissing",
      severity: "error",
      facts: { policy: verifiedBy("x.example.com"), kernelType: "realtime", extensionsImage: "x.example.com/packages" },
    },
    { code: "SignatureUnverifiable", severity: "error", facts: { policy: demanding({ type: "signedBy" }) } },
    {
      code: "SignatureUnverifiable",
      severity: "error",
      facts: { policy: demanding({ type: "sigstoreSigned", keyData: "aw==", rekorPublicKeyPath: "/etc/rekor.pub" }) },
    },
    {
      code: "SignatureUnverifiable",
      severity: "error",
      facts: {
        policy: demanding({ type: "sigstoreSigned", keyData: "aw==", signedIdentity: { type: "matchExact" } }),
      },
    },
    { code: "PushTokenDenied", severity: "warning", facts: { mayPush: "denied", pushDenials: 3 } },
    { code: "PushTokenDenied", severity: "error", facts: { mayPush: "denied", pushDenials: 4 } },
    {
      code: "PathNotBakeable",
      severity: "error",
      facts: {
        content: [{ code: "PathNotBakeable", path: "/boot/x", detail: "no image carries it" }],
        sourceOf: () => "99-boot",
      },
    },
    {
      code: "OwnerUnknown",
      severity: "error",
      facts: { content: [{ code: "OwnerUnknown", path: "/etc/x", detail: "there is no user bob" }] },
    },
    { code: "ExtensionUnknown", severity: "error", facts: { extensions: ["emacs"], extensionsImage: "x" } },
    { code: "ExtensionsImageMissing", severity: "error", facts: { kernelType: "realtime" } },
    {
      code: "ContentModeInvalid",
      severity: "error",
      facts: { mode: contentModeOf(poolOf({ [annotations.imageContent]: "x" }), undefined) },
    },
    {
      code: "BuilderBinaryMissing",
      severity: "error",
      facts: { preflight: [{ code: "BuilderBinaryMissing", message: "there is no buildah" }] },
    },
  ] as readonly { code: string; severity: string; facts: Partial<InputFacts> }[])(
    "$code is reported as $severity, in words that no event masks [build-intent-8]",
    ({ code, severity, facts }) => {
      const problems = inputProblems({ ...good, ...facts });
      expect(problems).toMatchObject([{ code, severity }]);
      const { message } = inputsValid(problems);
      expect(redactText(message)).toBe(message);
    },
  );

  test("all problems are in one numbered list, and the reason is the first one that stops the build", () => {
    const problems = inputProblems({
      ...good,
      isWorldReadable: true,
      secrets: { push: { is: "absent" } },
      content: [{ code: "PathNotBakeable", path: "/boot/x", detail: "no image carries it" }],
      sourceOf: () => "99-boot",
    });
    const condition = inputsValid(problems);
    expect(condition).toMatchObject({ status: "False", reason: "SecretMissing" });
    expect(condition.message.split("\n").map((line) => line.slice(0, 28))).toEqual([
      "1. SecretMissing: spec.rende",
      "2. PathNotBakeable: /boot/x ",
      "3. (warning) ImageWorldReada",
    ]);
    expect(condition.message).toContain("/boot/x of MachineConfig 99-boot");
  });

  test("warnings stop nothing", () => {
    expect(inputsValid(inputProblems({ ...good, isWorldReadable: true }))).toMatchObject({
      status: "True",
      reason: "ImageWorldReadable",
    });
  });

  test("nodes of two architectures are named", () => {
    const [problem] = inputProblems({
      ...good,
      nodes: [
        { name: "b", architecture: "arm64", imageBased: true },
        { name: "a", architecture: "amd64", imageBased: true },
      ],
    });
    expect(problem?.message).toContain("(amd64: a; arm64: b); put each architecture into a pool of its own");
  });

  test("what an os-only image does not hold is no problem of it", () => {
    expect(
      inputProblems({
        ...good,
        mode: { verdict: "mode", mode: "os-only" },
        isWorldReadable: true,
        content: [{ code: "PathNotBakeable", path: "/boot/x", detail: "" }],
      }),
    ).toEqual([]);
  });
});

test("the custom Containerfile is that of the architecture, else the one for all", () => {
  const config = configOf(
    "worker",
    {},
    {
      containerFile: [
        { containerfileArch: "ARM64", content: "FROM os\nRUN arm" },
        { containerfileArch: "NoArch", content: "FROM os" },
      ],
    },
  );
  expect(containerfileOf({ source: "MachineOSConfig", config }, "arm64", undefined)).toBe("FROM os\nRUN arm");
  expect(containerfileOf({ source: "MachineOSConfig", config }, "amd64", undefined)).toBe("FROM os");
  expect(containerfileOf({ source: "MachineOSConfig", config: configOf() }, "amd64", "FROM configs")).toBeUndefined();
});

test("a MachineOSConfig that the reference rolled out is known until this suite has touched it", () => {
  const image = `r/os@sha256:${"a".repeat(64)}`;
  const rolledOut = {
    ...configOf("worker", { [annotations.currentMachineOSBuild]: "worker-1" }),
    status: { currentImagePullSpec: image },
  };
  expect(isOfReference(rolledOut, "f", () => false)).toBe(true);
  expect(isOfReference(rolledOut, "f", (name) => name === "worker-1")).toBe(false);
  expect(
    isOfReference({ ...rolledOut, metadata: { ...rolledOut.metadata, finalizers: ["f"] } }, "f", () => false),
  ).toBe(false);
  expect(isOfReference(configOf(), "f", () => false)).toBe(false);
});
