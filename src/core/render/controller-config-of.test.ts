import { describe, expect, test } from "vitest";
import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import { annotations } from "../../api/names.ts";
import { openshift } from "../../api/foreign/openshift.ts";
import { selfSigned } from "../../../test/support/self-signed.ts";
import { encodeBase64 } from "../../ignition/data-url.ts";
import { encodeDataUrl } from "../../ignition/data-url.ts";
import { baseConfigs, textOfBase64 } from "./base-configs.ts";
import {
  type ClusterSources,
  certificateExpiries,
  controllerConfigOf,
  isCompleted,
  mergedRegistryCas,
  inputMapsOf,
  versionGate,
  sourceKinds,
  sourceMaps,
  templateStatus,
} from "./controller-config-of.ts";
import { renderPool } from "./render-pool.ts";

const base64 = (text: string) => encodeBase64(new TextEncoder().encode(text));
const release = { baseOSContainerImage: "os@sha256:0", baseOSExtensionsContainerImage: "" };
const rootMap = [sourceMaps.publishedRoot, { data: { "ca.crt": "-- root --\n" } }] as const;
const plain = (more: Partial<ClusterSources> = {}): ClusterSources => ({
  kinds: new Set(),
  dnsServiceAddresses: [],
  configMaps: new Map([rootMap]),
  bringUp: false,
  release,
  suiteImage: "suite",
  releaseImage: "release",
  ...more,
});

function known(sources: ClusterSources, before?: ControllerConfig["spec"]) {
  const made = controllerConfigOf(sources, before);
  if (made.verdict !== "known") throw new Error(made.message);
  return made;
}

const { spec } = known(plain());
const config = (more: Partial<ControllerConfig> = {}): ControllerConfig => ({
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "ControllerConfig",
  metadata: {
    name: "machine-config-controller",
    uid: "u",
    generation: 2,
    annotations: { [annotations.generatedByVersion]: "1" },
  },
  spec,
  ...more,
});
const now = Date.UTC(2030, 0, 1);
test("the status names every certificate that machines get, until when it is good, and where it comes from [render-controller-config-of-2]", async () => {
  const [api, registry] = [
    await selfSigned("CN=api", { notAfter: new Date("2031-02-03T04:05:06Z") }),
    await selfSigned("CN=registry"),
  ];
  const given = config({
    spec: {
      ...spec,
      kubeAPIServerServingCAData: base64(`${api}no certificate`),
      additionalTrustBundle: base64("-- none --"),
      imageRegistryBundleData: [{ file: "registry..5000", data: base64(registry) }],
    },
  });
  const status = templateStatus(given, { at: "completed", version: "1" }, now);
  expect((status.controllerCertificates ?? []).filter(({ bundleFile }) => bundleFile !== "RootCAData")).toEqual([
    {
      subject: "CN=api",
      signer: "CN=api",
      bundleFile: "KubeAPIServerServingCAData",
      notBefore: "2025-01-01T00:00:00Z",
      notAfter: "2031-02-03T04:05:06Z",
    },
    {
      subject: "CN=registry",
      signer: "CN=registry",
      bundleFile: "registry..5000",
      notBefore: "2025-01-01T00:00:00Z",
      notAfter: "2035-01-01T00:00:00Z",
    },
  ]);
  expect(certificateExpiries({ ...given, status })).toEqual([
    { bundle: "KubeAPIServerServingCAData", subject: "CN=api", expiry: "2031-02-03T04:05:06Z" },
  ]);
});

const completed = config({ status: templateStatus(config(), { at: "completed", version: "1" }, now) });

describe("the fence before rendering", () => {
  test.for([
    { title: "no ControllerConfig yet", given: undefined, reason: "ControllerConfigAbsent" },
    {
      title: "another version's",
      given: { ...completed, metadata: { ...completed.metadata, annotations: {} } },
      reason: "ControllerConfigOfOtherVersion",
    },
    { title: "one that was not processed", given: config(), reason: "ControllerConfigNotCompleted" },
    {
      title: "one being worked on",
      given: config({ status: templateStatus(config(), { at: "running" }, now) }),
      reason: "ControllerConfigNotCompleted",
    },
    {
      title: "one that failed",
      given: config({ status: templateStatus(config(), { at: "failing", message: "x" }, now) }),
      reason: "ControllerConfigNotCompleted",
    },
    {
      title: "one whose newest generation is still ahead",
      given: { ...completed, metadata: { ...completed.metadata, generation: 3 } },
      reason: "ControllerConfigNotCompleted",
    },
  ])("is closed for $title [render-controller-config-of-7]", ({ given, reason }) => {
    expect(versionGate(given, "1")).toMatchObject({ verdict: "closed", reason });
  });

  test("opens when this version has completed the newest generation [render-controller-config-of-8]", () => {
    expect(versionGate(completed, "1")).toEqual({ verdict: "open" });
    expect(isCompleted(completed)).toBe(true);
  });
});

test("a second, different failure is reported [render-controller-config-of-1]", () => {
  const first = config({ status: templateStatus(config(), { at: "failing", message: "one" }, now) });
  expect(
    templateStatus(first, { at: "failing", message: "two" }, now + 5000).conditions?.find(
      ({ type }) => type === "TemplateControllerFailing",
    ),
  ).toMatchObject({ status: "True", message: "two", lastTransitionTime: "2030-01-01T00:00:00Z" });
});

describe("base configurations", () => {
  const inputs = {
    controllerConfig: config({ spec: { ...spec, additionalTrustBundle: "LS0gYSBidW5kbGUgLS0K" } }),
    pullSecret: '{"auths":{}}',
    generatorVersion: "g",
  };
  const pathsOf = (name: string) => {
    const found = baseConfigs(inputs).find(({ metadata }) => metadata.name === name);
    const ignition = found?.spec.config as
      | { storage: { files: { path: string; contents: { source: string } }[] } }
      | undefined;
    return new Map(ignition?.storage.files.map(({ path, contents }) => [path, contents.source]));
  };

  test("the same inputs give the same bytes [render-controller-config-of-4]", () => {
    expect(JSON.stringify(baseConfigs(inputs))).toBe(JSON.stringify(baseConfigs(structuredClone(inputs))));
  });

  test("the pull secret and the trust bundle are there when the cluster has them, and only then [render-controller-config-of-3]", () => {
    expect(pathsOf("00-worker").get("/var/lib/kubelet/config.json")).toBe("data:,%7B%22auths%22%3A%7B%7D%7D");
    expect(pathsOf("00-worker").get("/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt")).toBe(
      "data:,--%20a%20bundle%20--%0A",
    );
    const bare = baseConfigs({ ...inputs, controllerConfig: config(), pullSecret: undefined });
    expect(JSON.stringify(bare)).not.toMatch(/config\.json|ca-trust/);
  });

  test("on machines of kubeadm nothing below /etc/kubernetes and /var/lib/kubelet is written but the kubelet's settings [render-controller-config-of-28]", () => {
    const kubeadmKubelet = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
    const files = baseConfigs({ ...inputs, kubeadmKubelet }).flatMap(
      (each) =>
        (each.spec.config as { storage: { files: { path: string; contents: { source: string } }[] } }).storage.files,
    );
    const kubelets = files.filter(({ path }) => /^\/(?:etc\/kubernetes|var\/lib\/kubelet)\//.test(path));
    expect(kubelets.map(({ path }) => path)).toEqual(["/var/lib/kubelet/config.yaml", "/var/lib/kubelet/config.yaml"]);
    expect(new Set(kubelets.map(({ contents }) => contents.source))).toEqual(new Set([encodeDataUrl(kubeadmKubelet)]));
  });

  test("no unit runs a program [render-controller-config-of-6]", () => {
    expect(baseConfigs(inputs).every((each) => (each.spec.config as { systemd?: unknown }).systemd === undefined)).toBe(
      true,
    );
  });

  test("they render for both roles [render-controller-config-of-5]", () => {
    for (const role of ["master", "worker"]) {
      const members = baseConfigs(inputs).filter(
        ({ metadata }) => metadata.labels?.["machineconfiguration.openshift.io/role"] === role,
      );
      expect(
        renderPool({ pool: { metadata: { name: role } }, members, controllerConfig: config(), generatorVersion: "g" })
          .verdict,
      ).toBe("rendered");
    }
  });
});

const object = <Kind extends keyof typeof openshift>(kind: Kind, more: object) => ({
  apiVersion: "config.openshift.io/v1",
  kind: openshift[kind].kind,
  metadata: { name: "cluster", uid: "u", resourceVersion: "77", labels: {} },
  ...more,
});
const maps = (entries: Readonly<Record<string, Readonly<Record<string, string>>>>) =>
  new Map<string, { data?: Record<string, string>; binaryData?: Record<string, string> }>([
    rootMap,
    [sourceMaps.initialServingCa, { data: { "ca-bundle.crt": "-- installed --\n" } }],
    ...Object.entries(entries).map(([key, data]) => [key, { data: { ...data } }] as const),
  ]);
const openShift = (more: Partial<ClusterSources> = {}): ClusterSources =>
  plain({
    kinds: new Set(sourceKinds),
    infrastructure: object("Infrastructure", {
      spec: { cloudConfig: { name: "" } },
      status: { platformStatus: { type: "None" }, controlPlaneTopology: "HighlyAvailable" },
    }),
    network: object("Network", {
      spec: { serviceNetwork: ["172.31.0.0/16"], networkType: "asked" },
      status: { networkType: "OVNKubernetes" },
    }),
    dns: object("Dns", { spec: { baseDomain: "example.com" } }),
    proxy: object("Proxy", { spec: { trustedCA: { name: "" } }, status: {} }),
    image: object("Image", { spec: {} }),
    clusterVersion: object("ClusterVersion", {}),
    configMaps: maps({}),
    ...more,
  });

describe("ControllerConfig on plain Kubernetes", () => {
  test("has the defaults of what has no source there [render-controller-config-of-11]", () => {
    expect(spec).toMatchObject({
      clusterDNSIP: "172.30.0.10",
      ipFamilies: "IPv4",
      networkType: "",
      cloudProviderConfig: "",
      proxy: null,
      infra: null,
      dns: null,
      additionalTrustBundle: null,
      baseOSContainerImage: "os@sha256:0",
    });
    expect([spec.kubeAPIServerServingCAData, spec.rootCAData].map(textOfBase64)).toEqual([
      "-- root --\n",
      "-- root --\n",
    ]);
    expect("internalRegistryPullSecret" in spec).toBe(false);
  });

  test("has the addresses of the cluster's DNS service, and keeps them while that is gone [render-controller-config-of-12]", () => {
    const having = known(plain({ dnsServiceAddresses: ["10.96.0.10", "fd00::a"] })).spec;
    expect(having).toMatchObject({ clusterDNSIP: "10.96.0.10", ipFamilies: "DualStack" });
    expect(known(plain(), having).spec).toMatchObject({ clusterDNSIP: "10.96.0.10", ipFamilies: "DualStack" });
    expect(known(plain({ dnsServiceAddresses: ["None"] }), having).spec.clusterDNSIP).toBe("10.96.0.10");
  });

  test("lets kubelets believe who the API server believes its clients by [render-controller-config-of-13]", () => {
    const configMaps = maps({ [sourceMaps.authentication]: { "client-ca-file": "clients\n" } });
    expect(textOfBase64(known(plain({ configMaps })).spec.kubeAPIServerServingCAData)).toBe("clients\n");
  });

  test.for([
    { title: "neither object of OpenShift's", identity: {} },
    { title: "an Infrastructure alone", identity: { infrastructure: object("Infrastructure", { status: {} }) } },
    { title: "a ClusterVersion alone", identity: { clusterVersion: object("ClusterVersion", {}) } },
  ])(
    "takes nothing from OpenShift's namespaces where there is $title, but the same names from the suite's own [render-controller-config-of-33]",
    async ({ identity }) => {
      const [ours, others] = [await selfSigned("CN=ours"), await selfSigned("CN=others")];
      const ofOthers = {
        [sourceMaps.initialServingCa]: { "ca-bundle.crt": others },
        [sourceMaps.clientCa]: { "ca-bundle.crt": others },
        [sourceMaps.kubeletSigner]: { "ca-bundle.crt": others },
        [sourceMaps.userCa]: { "ca-bundle.crt": others },
        [sourceMaps.registryCa]: { "quay.io": others },
        [sourceMaps.cloudConfig]: { "cloud.conf": "others", "ca-bundle.pem": others },
      };
      const bare = known(plain(identity)).spec;
      expect(bare.pullSecret).toMatchObject({ namespace: "openshift-machine-config-operator" });
      expect(known(plain({ ...identity, configMaps: maps(ofOthers) })).spec).toEqual(bare);
      const places = inputMapsOf(identity);
      const own = known(
        plain({
          ...identity,
          configMaps: maps({
            ...ofOthers,
            [places.userCa]: { "ca-bundle.crt": ours },
            [places.registryCa]: { "quay.io": ours },
          }),
        }),
      ).spec;
      expect(textOfBase64(own.additionalTrustBundle ?? "")).toBe(ours);
      expect(own.imageRegistryBundleData?.map(({ data }) => textOfBase64(data))).toEqual([ours]);
      expect(own.kubeAPIServerServingCAData).toBe(bare.kubeAPIServerServingCAData);
    },
  );

  test("waits for the cluster's root certificate [render-controller-config-of-14]", () => {
    expect(controllerConfigOf(plain({ configMaps: new Map() }), undefined)).toMatchObject({
      verdict: "waiting",
      message: expect.stringContaining("kube-root-ca.crt"),
    });
  });
});

describe("ControllerConfig where there are kinds of config.openshift.io", () => {
  test("says what they say [render-controller-config-of-9]", () => {
    const made = known(openShift({ proxy: object("Proxy", { status: { httpProxy: "http://p", noProxy: ".svc" } }) }));
    expect(made.problems).toEqual([]);
    expect(made.spec).toMatchObject({
      clusterDNSIP: "172.31.0.10",
      ipFamilies: "IPv4",
      networkType: "OVNKubernetes",
      platform: "none",
      proxy: { httpProxy: "http://p", noProxy: ".svc" },
      dns: {
        apiVersion: "config.openshift.io/v1",
        kind: "DNS",
        metadata: { name: "cluster" },
        spec: { baseDomain: "example.com" },
      },
      infra: {
        apiVersion: "config.openshift.io/v1",
        kind: "Infrastructure",
        status: { platformStatus: { type: "None" }, controlPlaneTopology: "HighlyAvailable" },
      },
    });
    expect(known(openShift()).spec.proxy).toBeNull();
  });

  test("is the same when nothing but a resource version moved [render-controller-config-of-17]", () => {
    const moved = openShift();
    const other = {
      ...moved,
      infrastructure: {
        ...object("Infrastructure", moved.infrastructure ?? {}),
        metadata: { name: "cluster", resourceVersion: "78" },
      },
    };
    expect(known(other).spec).toEqual(known(moved).spec);
  });

  test.for(sourceKinds)(
    "waits for %s, whatever it was made from before: nothing falls back to defaults because an answer is missing [render-controller-config-of-15]",
    (kind) => {
      const key = {
        Infrastructure: "infrastructure",
        Network: "network",
        DNS: "dns",
        Proxy: "proxy",
        Image: "image",
        ClusterVersion: "clusterVersion",
      }[kind];
      expect(controllerConfigOf(openShift({ [key]: undefined }), spec)).toEqual({
        verdict: "waiting",
        message: `waiting for ${kind}/${kind === "ClusterVersion" ? "version" : "cluster"}`,
      });
    },
  );

  test("waits for no Image on a cluster that has only this one of OpenShift's kinds [render-controller-config-of-27]", () => {
    expect(controllerConfigOf(plain({ kinds: new Set(["Image"]) }), undefined).verdict).toBe("known");
  });

  test("does not need the kinds that the server does not have [render-controller-config-of-16]", () => {
    expect(
      known(
        plain({
          kinds: new Set(["Network"]),
          network: object("Network", { spec: { serviceNetwork: ["fd02::/112"] } }),
        }),
      ).spec,
    ).toMatchObject({ clusterDNSIP: "fd02::a", ipFamilies: "IPv6", infra: null });
  });

  test.for([
    {
      title: "before the network operator said anything, what was asked for",
      network: { spec: { serviceNetwork: ["10.0.0.0/16"], networkType: "asked" } },
      type: "asked",
      mtu: undefined,
    },
    {
      title: "what is, not what was asked for",
      network: { spec: { serviceNetwork: ["10.0.0.0/16"], networkType: "asked" }, status: { networkType: "is" } },
      type: "is",
      mtu: undefined,
    },
    {
      title: "during a migration, where it goes",
      network: {
        spec: { serviceNetwork: ["10.0.0.0/16"] },
        status: { networkType: "is", migration: { networkType: "to" } },
      },
      type: "to",
      mtu: undefined,
    },
    {
      title: "during a migration of the MTU, both figures",
      network: {
        spec: { serviceNetwork: ["10.0.0.0/16"] },
        status: { networkType: "is", migration: { mtu: { machine: { from: 1500, to: 9000 } } } },
      },
      type: "is",
      mtu: { mtuMigration: { machine: { from: 1500, to: 9000 } } },
    },
  ])("networks: $title [render-controller-config-of-10]", ({ network, type, mtu }) => {
    const made = known(openShift({ network: object("Network", network) })).spec;
    expect([made.networkType, made.network]).toEqual([type, mtu]);
  });

  test("a network that is not said yet is waited for", () => {
    expect(controllerConfigOf(openShift({ network: object("Network", { spec: {} }) }), undefined)).toMatchObject({
      verdict: "waiting",
      message: expect.stringContaining("service network"),
    });
  });

  test("cloud.conf and its authority are included; if a required one is missing, machines keep theirs and it is reported [render-controller-config-of-26]", () => {
    const infrastructure = object("Infrastructure", { spec: {}, status: { platform: "Azure" } });
    const made = known(
      openShift({
        infrastructure,
        configMaps: maps({ [sourceMaps.cloudConfig]: { "cloud.conf": "c", "ca-bundle.pem": "pem\n" } }),
      }),
    );
    expect(made).toMatchObject({
      problems: [],
      spec: {
        platform: "azure",
        cloudProviderConfig: "c",
        cloudProviderCAData: base64("pem\n"),
        infra: { status: { platformStatus: { type: "Azure" } } },
      },
    });
    const without = known(openShift({ infrastructure }), made.spec);
    expect(without.spec).toMatchObject({ cloudProviderConfig: "c", cloudProviderCAData: base64("pem\n") });
    expect(without.problems).toEqual([expect.stringMatching(/kube-cloud-config is missing.*Azure/)]);
    expect(known(openShift({ infrastructure, configMaps: maps({ [sourceMaps.cloudConfig]: {} }) })).problems).toEqual([
      expect.stringContaining("has no cloud.conf"),
    ]);
    expect(
      known(
        openShift({
          infrastructure: object("Infrastructure", { spec: { cloudConfig: { name: "cloud" } }, status: {} }),
        }),
      ).problems,
    ).toHaveLength(1);
  });
});

describe("authorities in ControllerConfig", () => {
  test("the config server's own comes before the cluster's [render-controller-config-of-20]", () => {
    const rootOf = (entries: Readonly<Record<string, Readonly<Record<string, string>>>>) =>
      textOfBase64(known(openShift({ configMaps: maps(entries) })).spec.rootCAData);
    expect(
      rootOf({ [sourceMaps.serverCa]: { "ca-bundle.crt": "server" }, [sourceMaps.rootCa]: { "ca.crt": "cluster" } }),
    ).toBe("server");
    expect(rootOf({ [sourceMaps.rootCa]: { "ca.crt": "cluster" } })).toBe("cluster");
    expect(rootOf({})).toBe("-- root --\n");
  });

  test("during bring-up kubelets keep what they were installed with, with its signer as it is now; after it they get the cluster's [render-controller-config-of-18]", async () => {
    const [other, old, fresh] = [
      await selfSigned("CN=other"),
      await selfSigned("CN=kube-apiserver-to-kubelet-signer"),
      await selfSigned("CN=kube-apiserver-to-kubelet-signer"),
    ];
    const initial = { [sourceMaps.initialServingCa]: { "ca-bundle.crt": `${other}${old}` } };
    const serving = (entries: Readonly<Record<string, Readonly<Record<string, string>>>>, bringUp: boolean) =>
      textOfBase64(
        known(openShift({ configMaps: maps({ ...initial, ...entries }), bringUp })).spec.kubeAPIServerServingCAData,
      );
    expect(serving({}, true)).toBe(`${other}${old}`);
    const after = {
      [sourceMaps.kubeletSigner]: { "ca-bundle.crt": fresh },
      [sourceMaps.clientCa]: { "ca-bundle.crt": "current" },
    };
    expect(serving(after, true)).toBe(`${other}${fresh}`);
    expect(serving({ ...after, [sourceMaps.bootstrapped]: {} }, true)).toBe(`${other}${fresh}`);
    expect(serving(after, false)).toBe(`${other}${fresh}`);
    expect(serving({ ...after, [sourceMaps.bootstrapped]: {} }, false)).toBe("current");
  });

  test("an initial bundle with something else than certificates in it comes to an end [render-controller-config-of-19]", async () => {
    const [other, fresh] = [await selfSigned("CN=other"), await selfSigned("CN=kube-apiserver-to-kubelet-signer")];
    const key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    const broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    const servedFrom = (initial: string) => {
      const configMaps = maps({
        [sourceMaps.initialServingCa]: { "ca-bundle.crt": initial },
        [sourceMaps.kubeletSigner]: { "ca-bundle.crt": fresh },
      });
      return textOfBase64(known(openShift({ configMaps, bringUp: true })).spec.kubeAPIServerServingCAData);
    };
    expect(servedFrom(`${key}${other}`)).toBe(other);
    // No authority is lost unseen: machines keep their files and report what they cannot read.
    expect(servedFrom(`${broken}${other}`)).toBe(`${broken}${other}`);
  });

  test("nothing of what was read is changed [render-controller-config-of-25]", async () => {
    const sources = openShift({
      configMaps: maps({
        [sourceMaps.initialServingCa]: { "ca-bundle.crt": await selfSigned("CN=a") },
        [sourceMaps.registryCa]: { "b..5000": "pem b" },
      }),
    });
    const before = known(sources).spec;
    const [asRead, asWritten] = [structuredClone(sources), structuredClone(before)];
    controllerConfigOf(sources, before);
    expect([sources, before]).toEqual([asRead, asWritten]);
  });

  test("one that disappears after bring-up keeps its value, and it is reported [render-controller-config-of-23]", () => {
    const configMaps = maps({
      [sourceMaps.initialServingCa]: { "ca-bundle.crt": "initial" },
      [sourceMaps.bootstrapped]: {},
    });
    const made = known(openShift({ configMaps }), { ...spec, kubeAPIServerServingCAData: base64("current") });
    expect(textOfBase64(made.spec.kubeAPIServerServingCAData)).toBe("current");
    expect(made.problems).toEqual([expect.stringContaining("kube-apiserver-client-ca")]);
  });

  test("the user's and the proxy's come together, each in lines of its own, and the same one once [render-controller-config-of-21]", async () => {
    const [user, ofProxy] = [await selfSigned("CN=user"), await selfSigned("CN=proxy")];
    const proxy = (name: string) => object("Proxy", { spec: { trustedCA: { name } }, status: {} });
    const configMaps = maps({
      [sourceMaps.userCa]: { "ca-bundle.crt": user.trimEnd() },
      "openshift-config/proxy-ca": { "ca-bundle.crt": ofProxy },
    });
    const bundle = (name: string) =>
      textOfBase64(known(openShift({ proxy: proxy(name), configMaps })).spec.additionalTrustBundle ?? "");
    expect(bundle("proxy-ca")).toBe(`${user}${ofProxy}`);
    expect(bundle("user-ca-bundle")).toBe(user.trimEnd());
    expect(bundle("")).toBe(user.trimEnd());
  });

  test("a user's bundle under a misspelt key takes no trust from machines, and is told with the key [render-controller-config-of-29]", () => {
    const before = { ...spec, additionalTrustBundle: base64("before") };
    const configMaps = maps({ [sourceMaps.userCa]: { "ca-bundel.crt": "x" } });
    const made = known(openShift({ configMaps }), before);
    expect(made.spec.additionalTrustBundle).toBe(before.additionalTrustBundle);
    expect(made.problems).toEqual([
      expect.stringMatching(/openshift-config\/user-ca-bundle has no ca-bundle.crt, but ca-bundel.crt/),
    ]);
    // One without anything, or none, is a decision.
    for (const data of [{}, { "ca-bundle.crt": "" }]) {
      const none = known(openShift({ configMaps: maps({ [sourceMaps.userCa]: data }) }), before);
      expect(none).toMatchObject({ spec: { additionalTrustBundle: null }, problems: [] });
    }
  });

  test.for([
    {
      title: "is no PEM",
      data: { "ca-bundle.crt": "secret words" },
      says: /openshift-config\/proxy-ca holds no certificate/,
    },
    { title: "has no bundle", data: {}, says: /openshift-config\/proxy-ca.*has no ca-bundle.crt/ },
  ])(
    "a bundle that $title changes no machine, and is reported without its contents [render-controller-config-of-22]",
    ({ data, says }) => {
      const proxy = object("Proxy", { spec: { trustedCA: { name: "proxy-ca" } }, status: {} });
      const made = known(
        openShift({
          proxy,
          configMaps: maps({
            "openshift-config/proxy-ca": data,
            [sourceMaps.bootstrapped]: {},
            [sourceMaps.clientCa]: { "ca-bundle.crt": "rotated" },
          }),
        }),
        { ...spec, additionalTrustBundle: base64("before") },
      );
      expect(textOfBase64(made.spec.additionalTrustBundle ?? "")).toBe("before");
      expect(made.problems).toEqual([expect.stringMatching(says)]);
      expect(JSON.stringify(made.problems)).not.toContain("secret words");
      // Other certificates are not kept waiting.
      expect(textOfBase64(made.spec.kubeAPIServerServingCAData)).toBe("rotated");
    },
  );

  test("of each that cannot be read, machines keep the last one that could, and it is told with its object [render-controller-config-of-30]", async () => {
    const [one, two] = [await selfSigned("CN=one"), await selfSigned("CN=two")];
    const image = object("Image", { spec: { additionalTrustedCA: { name: "registries" } } });
    const withBundles = (bundle: string) =>
      openShift({
        image,
        configMaps: maps({
          [sourceMaps.serverCa]: { "ca-bundle.crt": bundle },
          [sourceMaps.clientCa]: { "ca-bundle.crt": bundle },
          [sourceMaps.bootstrapped]: {},
          [sourceMaps.cloudConfig]: { "ca-bundle.pem": bundle },
          [sourceMaps.registryCa]: { "a..5000": bundle, b: two },
          "openshift-config/registries": { c: bundle },
        }),
      });
    const before = known(withBundles(one));
    expect(before.problems).toEqual([]);
    for (const bad of ["secret words", "", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]) {
      const made = known(withBundles(bad), before.spec);
      expect(made.spec).toEqual(before.spec);
      expect(made.problems).toEqual([
        expect.stringMatching(
          /^the authority of the config server .*; machines keep what they have until it is fixed$/,
        ),
        expect.stringMatching(/^the authorities by which kubelets know the API server /),
        expect.stringMatching(/^ca-bundle.pem of the ConfigMap openshift-config-managed\/kube-cloud-config /),
        expect.stringMatching(/^a..5000 of the ConfigMap openshift-config-managed\/image-registry-ca /),
        expect.stringMatching(/^c of the ConfigMap openshift-config\/registries /),
      ]);
      expect(JSON.stringify(made.problems)).not.toContain("secret words");
    }
    // A good one replaces it at once.
    expect(known(withBundles(two), before.spec)).toMatchObject({ problems: [], spec: { rootCAData: base64(two) } });
  });

  test("a registry's under a key that names none is told, and a service network that is none leaves machines their DNS [render-controller-config-of-31]", async () => {
    const ca = await selfSigned("CN=one");
    const odd = known(openShift({ configMaps: maps({ [sourceMaps.registryCa]: { my_registry: ca } }) }));
    expect(odd.problems).toEqual([
      "my_registry of the ConfigMap openshift-config-managed/image-registry-ca is no name of a registry: it must be HOST or HOST..PORT",
    ]);
    const network = (serviceNetwork: string[]) => object("Network", { spec: { serviceNetwork } });
    const before = known(openShift({ network: network(["fd02::/112"]) })).spec;
    const bad = known(openShift({ network: network(["10.0.0.0/33"]) }), before);
    expect(bad.spec).toMatchObject({ clusterDNSIP: "fd02::a", ipFamilies: "IPv6" });
    expect(bad.problems).toEqual([
      'spec.serviceNetwork[0] of Network/cluster, "10.0.0.0/33", is no network with an address for the cluster\'s DNS; machines keep fd02::a',
    ]);
  });

  test("a proxy's address that is none leaves machines the one that they have, and is told without its password [render-controller-config-of-32]", () => {
    const withProxy = (status: object) => openShift({ proxy: object("Proxy", { status }) });
    const before = known(withProxy({ httpProxy: "http://p:1", noProxy: ".svc" })).spec;
    for (const status of [
      { httpProxy: "user:hunter2@p:1" },
      { httpProxy: "http://p:1", httpsProxy: "http://u:hunter2@p\nX=1" },
      { httpProxy: "http://p:1", noProxy: "hunter2\nX=1" },
    ]) {
      const made = known(withProxy(status), before);
      expect(made.spec.proxy).toEqual({ httpProxy: "http://p:1", noProxy: ".svc" });
      expect(made.problems).toEqual([expect.stringMatching(/^status\.\w+ of Proxy\/cluster is no /)]);
      expect(JSON.stringify(made.problems)).not.toContain("hunter2");
    }
    expect(known(withProxy({ httpProxy: "" }), before)).toMatchObject({ spec: { proxy: null }, problems: [] });
  });

  test("registries' are carried by file name, whether they were written as text, base64 or bytes; the last one that goes leaves none [render-controller-config-of-24]", () => {
    const image = object("Image", { spec: { additionalTrustedCA: { name: "registries" } } });
    const configMaps = maps({ "openshift-config/registries": { "user.example.com..5000": base64("packed pem") } });
    configMaps.set(sourceMaps.registryCa, { data: { "b..5000": "pem b\n" }, binaryData: { a: base64("pem a\n") } });
    const made = known(openShift({ image, configMaps })).spec;
    expect(made.imageRegistryBundleData).toEqual([
      { file: "a", data: base64("pem a\n") },
      { file: "b..5000", data: base64("pem b\n") },
    ]);
    expect(made.imageRegistryBundleUserData).toEqual([{ file: "user.example.com..5000", data: base64("packed pem") }]);
    expect(mergedRegistryCas(made)).toEqual({
      a: "pem a\n",
      "b..5000": "pem b\n",
      "user.example.com..5000": "packed pem",
    });
    expect(mergedRegistryCas(known(openShift(), made).spec)).toEqual({});
    const lacking = known(openShift({ image }), made);
    expect(lacking.spec.imageRegistryBundleUserData).toEqual(made.imageRegistryBundleUserData);
    expect(lacking.problems).toEqual([expect.stringContaining("openshift-config/registries")]);
  });
});
