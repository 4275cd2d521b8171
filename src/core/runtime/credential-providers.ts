import { stringify } from "yaml";
import { oversizedReason, oversizedText } from "../../ignition/held-contents.ts";
import { type Decoded, type FieldProblem } from "../kubelet/decode-go.ts";
import type { GeneratedFile } from "../render/generated-config.ts";
import { lenientKubernetesYaml } from "../text/kubernetes-yaml.ts";
import { isNested } from "./registry-scopes.ts";

// Names and values: openshift/machine-config-operator pkg/controller/container-runtime-config/helpers.go (main).

const folder = "/etc/kubernetes/credential-providers";
/** Files by which kubelets of a platform know its own provider of credentials. */
export const platformProviderPaths: readonly string[] = ["ecr", "gcr", "acr"].map(
  (platform) => `${folder}/${platform}-credential-provider.yaml`,
);
/** The file of machines whose platform has none. */
export const genericProviderPath = `${folder}/generic-credential-provider.yaml`;
/** Names that file to the kubelet. */
export const providerDropInPath =
  "/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf";
/** The program that CRI-O brings, and where kubelets look for it. */
export const crioProvider = "crio-credential-provider";
export const providerFolder = "/usr/libexec/kubelet-image-credential-provider-plugins";

/** Without it, a kubelet refuses a provider that asks for tokens, and does not start. */
export const tokenGate = "KubeletServiceAccountTokenForCredentialProviders";

/** A file of providers that the base configuration has. */
export interface ProviderFile {
  readonly path: string;
  readonly text: string;
}

/** A match image that another provider answers already. */
export interface SkippedImage {
  readonly image: string;
  /** Its place in the object's list. */
  readonly index: number;
  readonly provider: string;
  readonly pattern: string;
}

export type ProviderFiles =
  | { readonly verdict: "files"; readonly files: readonly GeneratedFile[]; readonly skipped: readonly SkippedImage[] }
  | { readonly verdict: "refused"; readonly reason: string };

const label = "(?:\\*|[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)";
/** Source of the pattern: openshift/api config/v1/types_crio_credential_provider_config.go (master). */
const imagePattern = new RegExp(`^${label}(?:\\.${label})*(?::[0-9]+)?(?:/[-a-z0-9._/]*)?$`);
const longestImage = 512;
const mostImages = 50;

/**
 * The problems of match images. What passes is a URL without scheme to a kubelet, whose labels may each be `*`; it
 * would not start with anything that is none.
 */
export function matchImageProblems(images: readonly string[]): readonly FieldProblem[] {
  const path = (i: number) => `spec.matchImages[${i}]`;
  const problems = images.flatMap((image, i): readonly FieldProblem[] => {
    if (image === "*") return [{ path: path(i), reason: "must name a registry: * alone is not allowed" }];
    if (image.length > longestImage)
      return [{ path: path(i), reason: `has ${image.length} characters, more than ${longestImage}` }];
    if (images.indexOf(image) < i) return [{ path: path(i), reason: "stands in the list already" }];
    return imagePattern.test(image)
      ? []
      : [
          {
            path: path(i),
            reason: "must be a host name in lower case, whose labels may each be *, with or without port and path",
          },
        ];
  });
  return images.length > mostImages
    ? [...problems, { path: "spec.matchImages", reason: `has ${images.length} entries, more than ${mostImages}` }]
    : problems;
}

interface Provider {
  readonly name?: unknown;
  readonly matchImages?: unknown;
}

/**
 * The files by which kubelets ask CRI-O's provider for the credentials of images: the platform's file with it added, or
 * a file of its own with the drop-in that names it. Images that another provider answers are left out.
 *
 * @param images valid match images.
 * @param base the platform's file; `undefined`: it has none.
 */
export function providerFiles(images: readonly string[], base: ProviderFile | undefined): ProviderFiles {
  if (images.length === 0) return { verdict: "files", files: [], skipped: [] };
  const before = base === undefined ? { providers: [], others: {} } : readProviders(base.text);
  if (before === undefined)
    return {
      verdict: "refused",
      reason: `the base configuration's ${base?.path ?? ""} ${base?.text === oversizedText ? oversizedReason : "lists no providers"}`,
    };
  const others = before.providers.filter(({ name }) => name !== crioProvider);
  const skipped = images.flatMap((image, index) => {
    const found = others.flatMap(overlapsOf(image))[0];
    return found === undefined ? [] : [{ image, index, ...found }];
  });
  const kept = images.filter((image) => !skipped.some((one) => one.image === image)).toSorted();
  if (kept.length === 0) return { verdict: "files", files: [], skipped };
  const has = before.providers.find(({ name }) => name === crioProvider);
  const own = { ...(has ?? ownProvider), matchImages: kept };
  const text = stringify(
    {
      ...before.others,
      apiVersion: "kubelet.config.k8s.io/v1",
      kind: "CredentialProviderConfig",
      providers: has === undefined ? [...others, own] : before.providers.map((one) => (one === has ? own : one)),
    },
    { sortMapEntries: true, lineWidth: 0, singleQuote: true, indentSeq: false },
  );
  const file = { path: base?.path ?? genericProviderPath, mode: 0o644, text };
  return { verdict: "files", files: base === undefined ? [file, dropIn] : [file], skipped };
}

const dropIn: GeneratedFile = {
  path: providerDropInPath,
  mode: 0o644,
  text: `[Service]
# Names the credential provider of CRI-O to the kubelet.
Environment="KUBELET_CRIO_IMAGE_CREDENTIAL_PROVIDER_FLAGS=--image-credential-provider-bin-dir=${providerFolder} --image-credential-provider-config=${genericProviderPath}"
`,
};

/** Credentials are those of the pod's namespace, and are not kept for other pods. */
const ownProvider = {
  name: crioProvider,
  apiVersion: "credentialprovider.kubelet.k8s.io/v1",
  defaultCacheDuration: "1s",
  tokenAttributes: {
    cacheType: "Token",
    requireServiceAccount: false,
    serviceAccountTokenAudience: "https://kubernetes.default.svc",
  },
};

/** The patterns of a provider by which it answers for a match image, or the other way round. */
const overlapsOf =
  (image: string) =>
  ({ name, matchImages }: Provider): readonly Pick<SkippedImage, "provider" | "pattern">[] =>
    (Array.isArray(matchImages) ? (matchImages as readonly unknown[]) : []).flatMap((pattern) =>
      typeof pattern === "string" && (isNested(image, pattern) || isNested(pattern, image))
        ? [{ provider: String(name), pattern }]
        : [],
    );

/** @returns `undefined`: the text is no list of providers. */
function readProviders(
  text: string,
): { readonly providers: readonly (Provider & Decoded)[]; readonly others: Decoded } | undefined {
  const value = lenientKubernetesYaml(text)?.value;
  if (typeof value !== "object" || value === null) return undefined;
  const { providers, ...others } = value as Decoded;
  if (!Array.isArray(providers)) return undefined;
  const isProvider = (one: unknown) => typeof one === "object" && one !== null && !Array.isArray(one);
  return providers.every(isProvider) ? { providers: providers as (Provider & Decoded)[], others } : undefined;
}
