import { describe, expect, test } from "vitest";
import { lenientKubernetesYaml } from "../text/kubernetes-yaml.ts";
import {
  genericProviderPath,
  matchImageProblems,
  platformProviderPaths,
  providerDropInPath,
  providerFiles,
} from "./credential-providers.ts";

const [ecr = ""] = platformProviderPaths;
const platform = {
  path: ecr,
  text: `apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
  - name: ecr-credential-provider
    matchImages: ["*.dkr.ecr.us-east-1.example.com", "gcr.example.com"]
    defaultCacheDuration: "12h"
    apiVersion: credentialprovider.kubelet.k8s.io/v1
    args: [get-credentials]
`,
};
const made = (images: readonly string[], base?: typeof platform) => {
  const result = providerFiles(images, base);
  if (result.verdict === "refused") throw new Error(result.reason);
  return result;
};
const valueOf = (text: string | undefined) => lenientKubernetesYaml(text ?? "")?.value as Record<string, unknown>;

describe("match images", () => {
  test.for([
    "quay.io",
    "*.azurecr.io",
    "*.*.registry.io",
    "k8s.*",
    "registry.io:8080/path",
    "registry.io/a_b/c.d-e",
    "localhost:5000",
    "a".repeat(512),
  ])("%s is accepted [credential-providers-1]", (image) => {
    expect(matchImageProblems([image])).toEqual([]);
  });

  test.for([
    "*",
    "",
    "Quay.io",
    "exa*mple.com",
    "quay.io:*",
    "quay.io/*",
    "https://quay.io",
    "quay.io:a",
    "-a.io",
    "quay.io/A",
    "a b",
    "a".repeat(513),
    "quay.io\n",
  ])("%j is refused, with its place [credential-providers-2]", (image) => {
    expect(matchImageProblems(["quay.io", image]).map(({ path }) => path)).toEqual(["spec.matchImages[1]"]);
  });

  test("one that stands there twice, and more than 50, are refused [credential-providers-3]", () => {
    expect(matchImageProblems(["a.io", "b.io", "a.io"])).toEqual([
      { path: "spec.matchImages[2]", reason: "stands in the list already" },
    ]);
    const many = (count: number) => matchImageProblems(Array.from({ length: count }, (_, i) => `r${i}.io`));
    expect(many(50)).toEqual([]);
    expect(many(51)).toEqual([{ path: "spec.matchImages", reason: "has 51 entries, more than 50" }]);
  });
});

describe("the files of providers", () => {
  test("without a platform's file there is one of its own, and a drop-in names it to the kubelet [credential-providers-4]", () => {
    const { files, skipped } = made(["quay.io/team", "docker.io"]);
    expect(files.map(({ path }) => path)).toEqual([genericProviderPath, providerDropInPath]);
    expect(skipped).toEqual([]);
    expect(files[0]?.text).toBe(`apiVersion: kubelet.config.k8s.io/v1
kind: CredentialProviderConfig
providers:
- apiVersion: credentialprovider.kubelet.k8s.io/v1
  defaultCacheDuration: 1s
  matchImages:
  - docker.io
  - quay.io/team
  name: crio-credential-provider
  tokenAttributes:
    cacheType: Token
    requireServiceAccount: false
    serviceAccountTokenAudience: https://kubernetes.default.svc
`);
    expect(files[1]?.text).toContain(`--image-credential-provider-config=${genericProviderPath}"\n`);
  });

  test("a platform's file keeps its own provider as it is, and needs no drop-in [credential-providers-5]", () => {
    const { files } = made(["quay.io"], platform);
    expect(files.map(({ path }) => path)).toEqual([ecr]);
    const { providers } = valueOf(files[0]?.text) as { providers: readonly object[] };
    expect(providers).toMatchObject([
      ...(valueOf(platform.text)["providers"] as readonly object[]),
      { name: "crio-credential-provider", matchImages: ["quay.io"] },
    ]);
    // Once more over its own result: the same bytes, and no second provider.
    expect(made(["quay.io"], { path: ecr, text: files[0]?.text ?? "" }).files).toEqual(files);
  });

  test("images that another provider answers, or a part of them, are left out and named [credential-providers-6]", () => {
    const images = ["quay.io", "1.dkr.ecr.us-east-1.example.com/a", "gcr.example.com/team", "example.com"];
    const { files, skipped } = made(images, platform);
    expect(skipped).toEqual([
      {
        image: "1.dkr.ecr.us-east-1.example.com/a",
        index: 1,
        provider: "ecr-credential-provider",
        pattern: "*.dkr.ecr.us-east-1.example.com",
      },
      { image: "gcr.example.com/team", index: 2, provider: "ecr-credential-provider", pattern: "gcr.example.com" },
    ]);
    expect(files[0]?.text).toContain("  matchImages:\n  - example.com\n  - quay.io\n  name: crio-credential-provider");
    // A wildcard of ours that covers the platform's.
    expect(made(["*.example.com"], platform)).toMatchObject({ files: [], skipped: [{ index: 0 }] });
  });

  test("no images make no file; a platform's file that is none is refused [credential-providers-7]", () => {
    expect(made([], platform)).toEqual({ verdict: "files", files: [], skipped: [] });
    for (const text of ["", "a: [", "providers: 1", "providers: [1]", "[]"])
      expect(providerFiles(["quay.io"], { path: ecr, text })).toEqual({
        verdict: "refused",
        reason: `the base configuration's ${ecr} lists no providers`,
      });
  });
});
