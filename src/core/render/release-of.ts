import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import { objects } from "../../api/names.ts";

/** The OS images of a release, as pullspecs. */
export interface ReleaseImages {
  readonly baseOSContainerImage: string;
  readonly baseOSExtensionsContainerImage: string;
}

export type ReleaseOf =
  | { readonly verdict: "known"; readonly images: ReleaseImages }
  /** The images are another version's: machines keep theirs until that version's operator runs. */
  | { readonly verdict: "ahead"; readonly images: ReleaseImages; readonly message: string }
  /** No image is known. `lasting`: an administrator has to correct it. */
  | { readonly verdict: "unknown"; readonly lasting: boolean; readonly message: string };

/**
 * The OS images of the cluster: those of the release's ConfigMap, once its version is this operator's. The objects of a
 * release arrive one by one; an operator that used images of the next release would roll out a mixture of two.
 *
 * Keys: openshift/machine-config-operator install/0000_80_machine-config_05_osimageurl.yaml (main).
 *
 * @param data of the ConfigMap `machine-config-osimageurl`; `undefined` while there is none.
 * @param before the present images of the ControllerConfig.
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
 * The ControllerConfig that the operator would write for a release's ConfigMap; unchanged where the ConfigMap names no
 * images.
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
