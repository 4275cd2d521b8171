import { describe, expect, test } from "vitest";
import type { Secret } from "../../api/foreign/kubernetes.ts";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import type { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import { annotations, namespace, objects } from "../../api/names.ts";
import { type CredentialFacts, buildCredentials, credentialChanges } from "./build-credentials.ts";

const secret = (name: string, type = "kubernetes.io/dockerconfigjson", content = name): Secret => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name, namespace },
  type,
  data: { key: btoa(content) },
});
const config = (push: string, pull?: string): MachineOSConfig => ({
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "MachineOSConfig",
  metadata: { name: "worker" },
  spec: {
    machineConfigPool: { name: "worker" },
    imageBuilder: { imageBuilderType: "Job" },
    renderedImagePushSecret: { name: push },
    renderedImagePushSpec: "r.example.com/os:latest",
    ...(pull === undefined ? {} : { baseImagePullSecret: { name: pull } }),
  },
});
const build = (push: string) =>
  ({ metadata: { name: "b", annotations: { [annotations.pushSecret]: push } } }) as unknown as MachineOSBuild;
const copies = (facts: Partial<CredentialFacts>) =>
  buildCredentials({ machineOSConfigs: [], builds: [], buildConfig: undefined, secrets: [], ...facts });
const seen = (secrets: readonly Secret[]) =>
  secrets.map(({ metadata, type, data }) => [metadata.name, type, data === undefined ? "empty" : "whole"]);

describe("the Secrets that are copied for builds", () => {
  test.for<{ title: string; facts: Partial<CredentialFacts>; copied: readonly unknown[] }>([
    {
      title: "those that a MachineOSConfig names, and no other",
      facts: { machineOSConfigs: [config("push", "pull")], secrets: [secret("pull"), secret("push"), secret("other")] },
      copied: [
        ["pull", "kubernetes.io/dockerconfigjson", "whole"],
        ["push", "kubernetes.io/dockerconfigjson", "whole"],
      ],
    },
    {
      title: "those that the build settings name, before a MachineOSConfig is made of them",
      facts: {
        buildConfig: { finalImagePushSecretName: "push" },
        secrets: [secret("push", "kubernetes.io/dockercfg")],
      },
      copied: [["push", "kubernetes.io/dockercfg", "whole"]],
    },
    {
      title: "what an image was pushed with, while its build is there",
      facts: { builds: [build("old")], secrets: [secret("old")] },
      copied: [["old", "kubernetes.io/dockerconfigjson", "whole"]],
    },
    {
      title: "what steps of the named pools see",
      facts: {
        machineOSConfigs: [config("push")],
        secrets: ["worker", "infra"].map((pool) => secret(`${objects.entitlementPrefix}${pool}`, "Opaque")),
      },
      copied: [[`${objects.entitlementPrefix}worker`, "Opaque", "whole"]],
    },
    {
      title: "of a key that is named as a credential nothing but its type",
      facts: {
        machineOSConfigs: [config(objects.configServerCa, "token")],
        secrets: [
          secret(objects.configServerCa, "kubernetes.io/tls"),
          secret("token", "kubernetes.io/service-account-token"),
        ],
      },
      copied: [
        [objects.configServerCa, "Opaque", "empty"],
        ["token", "Opaque", "empty"],
      ],
    },
    {
      title: "the operator's own copies whatever their type, as what they are for",
      facts: {
        machineOSConfigs: [config("push")],
        secrets: [
          secret(`${objects.entitlementPrefix}worker`, "kubernetes.io/tls"),
          { ...secret(objects.globalPullSecret, "Opaque"), data: { ".dockerconfigjson": btoa("{}") } },
        ],
      },
      copied: [
        [`${objects.entitlementPrefix}worker`, "Opaque", "whole"],
        [objects.globalPullSecret, "kubernetes.io/dockerconfigjson", "whole"],
      ],
    },
    {
      title: "of a pull secret of the cluster that holds no credentials for registries nothing but its type",
      facts: { secrets: [secret(objects.globalPullSecret, "example.com/other")] },
      copied: [[objects.globalPullSecret, "Opaque", "empty"]],
    },
    {
      title: "no certificate under the name of what steps see",
      facts: { secrets: [secret(objects.rpmGpg, "kubernetes.io/tls")] },
      copied: [[objects.rpmGpg, "Opaque", "empty"]],
    },
  ])("$title", ({ facts, copied }) => {
    expect(seen(copies(facts))).toEqual(copied);
  });

  test("say for which pools they are, and again when that changes", () => {
    const kept = (pools: string): Secret => {
      const push = secret("push");
      return { ...push, metadata: { ...push.metadata, annotations: { [annotations.secretPools]: pools, other: "" } } };
    };
    const made = (pools: string) => copies({ machineOSConfigs: [config("push")], secrets: [kept(pools)] });
    expect(made("infra")[0]?.metadata.annotations).toEqual({ [annotations.secretPools]: "infra" });
    expect(credentialChanges(made("infra"), made("worker")).apply).toEqual(made("infra"));
  });

  test("are left alone when they are right, replaced when they changed, made again for another type, and removed", () => {
    const made = (type?: string, content?: string) =>
      copies({ machineOSConfigs: [config("push")], secrets: [secret("push", type, content)] });
    const names = ({ apply, remove }: ReturnType<typeof credentialChanges>) => [
      apply.map(({ metadata }) => metadata.name),
      remove,
    ];
    expect(names(credentialChanges(made(), made()))).toEqual([[], []]);
    expect(names(credentialChanges(made(), []))).toEqual([["push"], []]);
    expect(names(credentialChanges(made(undefined, "rotated"), made()))).toEqual([["push"], []]);
    expect(names(credentialChanges(made("kubernetes.io/tls"), made()))).toEqual([["push"], ["push"]]);
    expect(names(credentialChanges([], made()))).toEqual([[], ["push"]]);
  });
});
