import { describe, expect, test } from "vitest";
import { selfSigned } from "../../../test/support/self-signed.ts";
import { encodeBase64 } from "../../ignition/data-url.ts";
import { machineCertificates } from "./machine-certificates.ts";

const base64 = (text: string) => encodeBase64(new TextEncoder().encode(text));
const nothing = { kubeAPIServerServingCAData: "", cloudProviderCAData: null };
const filesOf = (given: ReturnType<typeof machineCertificates>) =>
  Object.fromEntries(given.files.map(({ path, contents, mode }) => [path, [new TextDecoder().decode(contents), mode]]));

describe("what a machine has from ControllerConfig itself", () => {
  test("has the reference's paths, a line feed at its end, and modes that credentials deserve [machine-certificates-1]", async () => {
    const pem = await selfSigned("CN=a");
    const made = machineCertificates({
      kubeAPIServerServingCAData: base64(pem.trimEnd()),
      cloudProviderCAData: base64(pem),
      internalRegistryPullSecret: base64('{"auths":{}}'),
      imageRegistryBundleData: [{ file: "image-registry.openshift-image-registry.svc..5000", data: base64(pem) }],
      imageRegistryBundleUserData: [{ file: "plain.example.com", data: base64(pem) }],
    });
    expect(made.problems).toEqual([]);
    expect(filesOf(made)).toEqual({
      "/etc/kubernetes/kubelet-ca.crt": [pem, 0o644],
      "/etc/kubernetes/static-pod-resources/configmaps/cloud-config/ca-bundle.pem": [pem, 0o644],
      "/etc/mco/internal-registry-pull-secret.json": ['{"auths":{}}\n', 0o600],
      "/etc/docker/certs.d/image-registry.openshift-image-registry.svc:5000/ca.crt": [pem, 0o644],
      "/etc/docker/certs.d/plain.example.com/ca.crt": [pem, 0o644],
    });
  });

  test("is nothing where ControllerConfig says nothing", () => {
    expect(machineCertificates(nothing)).toEqual({ files: [], problems: [] });
  });

  test("the user's certificate of a registry comes before the cluster's", async () => {
    const [cluster, user] = [await selfSigned("CN=cluster"), await selfSigned("CN=user")];
    const made = machineCertificates({
      ...nothing,
      imageRegistryBundleData: [{ file: "r..1", data: base64(cluster) }],
      imageRegistryBundleUserData: [{ file: "r..1", data: base64(user) }],
    });
    expect(filesOf(made)).toEqual({ "/etc/docker/certs.d/r:1/ca.crt": [user, 0o644] });
  });

  test.for(["..", "a..b..c", "a/b", "", ".", "-a", "a\nb"])(
    "no file outside of its folder comes from a registry called %j [machine-certificates-3]",
    async (file) => {
      const made = machineCertificates({
        ...nothing,
        imageRegistryBundleData: [{ file, data: base64(await selfSigned("CN=a")) }],
      });
      expect(made.files).toEqual([]);
      expect(made.problems).toHaveLength(1);
    },
  );

  test.for([
    {
      title: "a kubelet's authorities that are none",
      spec: { ...nothing, kubeAPIServerServingCAData: base64("canary") },
      path: "/etc/kubernetes/kubelet-ca.crt",
    },
    {
      title: "what is no base64",
      spec: { ...nothing, kubeAPIServerServingCAData: "canary!" },
      path: "/etc/kubernetes/kubelet-ca.crt",
    },
    {
      title: "credentials that are no JSON",
      spec: { ...nothing, internalRegistryPullSecret: base64("canary") },
      path: "/etc/mco/internal-registry-pull-secret.json",
    },
  ])("$title are not written, nor quoted [machine-certificates-2]", ({ spec, path }) => {
    const made = machineCertificates(spec);
    expect(made.files).toEqual([]);
    expect(made.problems.map((problem) => problem.path)).toEqual([path]);
    expect(JSON.stringify(made.problems)).not.toContain("canary");
  });
});
