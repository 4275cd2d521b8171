import { openshift } from "../api/foreign/openshift.ts";
import type { KubeObject, Resource } from "../api/schema/object.ts";
import type { ClusterObjects } from "../core/preview/plan-cluster.ts";
import { planRegistries } from "../core/preview/plan-registries.ts";
import {
  type RegistryObjects,
  imageConfigName,
  isRegistryObject,
  noRegistries,
  releaseImageOf,
  withRegistryManifests,
} from "../core/runtime/registry-objects.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { isForbidden, isNotFound } from "../kube/kube-error.ts";

/** The objects of a cluster. A kind that is not installed, or that the user may not read, has none. */
export async function readRegistryObjects(kube: KubeClient): Promise<RegistryObjects> {
  const list = async <T extends KubeObject>(resource: Resource<T>): Promise<readonly T[]> => {
    try {
      return (await kube.list(resource)).items;
    } catch (error) {
      if (isNotFound(error) || isForbidden(error)) return [];
      throw error;
    }
  };
  const [images, digests, tags, contents, clusterPolicies, policies, versions] = await Promise.all([
    list(openshift.Image),
    list(openshift.ImageDigestMirrorSet),
    list(openshift.ImageTagMirrorSet),
    list(openshift.ImageContentSourcePolicy),
    list(openshift.ClusterImagePolicy),
    list(openshift.ImagePolicy),
    list(openshift.ClusterVersion),
  ]);
  return {
    image: images.find(({ metadata }) => metadata.name === imageConfigName),
    digestMirrorSets: digests,
    tagMirrorSets: tags,
    contentSourcePolicies: contents,
    clusterImagePolicies: clusterPolicies,
    imagePolicies: policies,
    releaseImage: releaseImageOf(versions),
  };
}

/** Objects of files, with the MachineConfigs that the controller of a cluster would have made of their settings. */
export const withPlannedRegistries = (objects: ClusterObjects, manifests: readonly KubeObject[]): ClusterObjects =>
  manifests.some(isRegistryObject)
    ? {
        ...objects,
        machineConfigs: planRegistries({ before: noRegistries, after: withRegistryManifests(manifests) }, objects)
          .machineConfigs,
      }
    : objects;
