import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import { objects } from "../../api/names.ts";

/** What a release says of the operating system of machines: pullspecs. */
export interface ReleaseImages {
  readonly baseOSContainerImage: string;
  readonly baseOSExtensionsContainerImage: string;
}

export type ReleaseOf =
  | { readonly verdict: "known"; readonly images: ReleaseImages }
  /** It is another version's: until that one's operator runs, machines keep what they have. */
  | { readonly verdict: "ahead"; readonly images: ReleaseImages; readonly message: string }
  /** Nothing is known that a machine could be given. `lasting`: somebody has to correct it. */
  | { readonly verdict: "unknown"; readonly lasting: boolean; readonly message: string };

/**
 * Which OS image the cluster is to have: what the release's ConfigMap says, once it is meant for this operator. A
 * release arrives object by object; an operator that took images of the next one would roll out a mixture of two.
 *
 * Keys: openshift/machine-config-operator install/0000_80_machine-config_05_osimageurl.yaml (main).
 *
 * @param data of the ConfigMap `machine-config-osimageurl`; `undefined` while there is none.
 * @param before what the ControllerConfig says now.
 */
export function releaseOf(
  data: Readonly<Record<string, string>> | undefined,
  version: string,
  before: ControllerConfig["spec"] | undefined,
): ReleaseOf {
  const images = imagesOf(data);
  if (images === undefined)
    return {
      verdict: "unknown",
      lasting: true,
      message: `the ConfigMap ${objects.osImageConfigMap} does not name baseOSContainerImage: the OS image of the cluster is not known`,
    };
  const meantFor = data?.["releaseVersion"] ?? "";
  if (meantFor !== "" && meantFor !== version) {
    const message = `the OS images in the ConfigMap ${objects.osImageConfigMap} are of release ${meantFor} and this operator is ${version}: machines keep theirs until its operator runs`;
    if (before === undefined) return { verdict: "unknown", lasting: false, message };
    return {
      verdict: "ahead",
      images: {
        baseOSContainerImage: before.baseOSContainerImage,
        baseOSExtensionsContainerImage: before.baseOSExtensionsContainerImage ?? "",
      },
      message,
    };
  }
  return { verdict: "known", images };
}

function imagesOf(data: Readonly<Record<string, string>> | undefined): ReleaseImages | undefined {
  const image = data?.["baseOSContainerImage"] ?? "";
  return image === ""
    ? undefined
    : { baseOSContainerImage: image, baseOSExtensionsContainerImage: data?.["baseOSExtensionsContainerImage"] ?? "" };
}

/**
 * A ControllerConfig as the operator would write it once a release's ConfigMap were applied; the same where it says
 * nothing of images.
 */
export function withRelease(
  config: ControllerConfig,
  data: Readonly<Record<string, string>> | undefined,
): ControllerConfig {
  const images = imagesOf(data);
  if (images === undefined) return config;
  const { baseOSExtensionsContainerImage: _, ...spec } = config.spec;
  return {
    ...config,
    spec: {
      ...spec,
      baseOSContainerImage: images.baseOSContainerImage,
      ...(images.baseOSExtensionsContainerImage === ""
        ? {}
        : { baseOSExtensionsContainerImage: images.baseOSExtensionsContainerImage }),
    },
  };
}
