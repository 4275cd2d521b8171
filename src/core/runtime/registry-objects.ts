import {
  type ClusterVersion,
  type ImageConfig,
  type ImageContentSourcePolicy,
  type ImageDigestMirrorSet,
  type ImageMirrors,
  type ImagePolicy,
  type ImageTagMirrorSet,
  openshift,
} from "../../api/foreign/openshift.ts";
import { type KubeObject, type Resource, keyOf } from "../../api/schema/object.ts";
import type { MirrorRule } from "./merge-mirrors.ts";
import type { RegistriesInputs } from "./registries-config.ts";
import { roomOf } from "./tenant-policies.ts";

/** The objects of a cluster that say where machines pull images from, and which; a kind that it lacks has none. */
export interface RegistryObjects {
  /** The Image config `cluster`. */
  readonly image: ImageConfig | undefined;
  readonly digestMirrorSets: readonly ImageDigestMirrorSet[];
  readonly contentSourcePolicies: readonly ImageContentSourcePolicy[];
  readonly tagMirrorSets: readonly ImageTagMirrorSet[];
  readonly clusterImagePolicies: readonly ImagePolicy[];
  readonly imagePolicies: readonly KnownPolicy[];
  /** Of ClusterVersion `version`; `undefined` on clusters that have none. */
  readonly releaseImage: string | undefined;
}

/** An ImagePolicy as the controller's cache has it. */
export interface KnownPolicy extends ImagePolicy {
  /** Characters that it takes in a configuration: it is large, and its spec is read when it is written. */
  readonly room?: number;
}

/** Characters in a configuration from which a tenant's policy is large: of these few have room, however many there are. */
const largeRoom = 16 * 1024;

/** Kinds of objects about registries, mirrors and signatures. */
export const registryKinds = [
  openshift.Image,
  openshift.ImageDigestMirrorSet,
  openshift.ImageTagMirrorSet,
  openshift.ImageContentSourcePolicy,
  openshift.ClusterImagePolicy,
  openshift.ImagePolicy,
] as const;

/**
 * Trims an image policy to what decides about registries: a tenant makes thousands in its namespaces, each with annotations of
 * 256 KiB, and with scopes of 128 KiB. The other kinds are the administrator's. Every watch of such objects in one process
 * uses this.
 */
export function trimRegistryObject(object: KubeObject): KubeObject {
  if (object.kind !== openshift.ImagePolicy.kind && object.kind !== openshift.ClusterImagePolicy.kind) return object;
  const policy = trimPolicy(object as ImagePolicy);
  if (policy.kind !== openshift.ImagePolicy.kind) return policy;
  const room = roomOf({ spec: policy.spec ?? {} });
  if (room < largeRoom) return policy;
  const { spec: _, ...known } = policy;
  const sized: KnownPolicy = { ...known, room };
  return sized;
}

/** A policy without what its author hangs on it. */
export function trimPolicy({ apiVersion, kind, metadata, spec, status }: ImagePolicy): ImagePolicy {
  const { name, namespace, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp } = metadata;
  const fields = { namespace, uid, resourceVersion, generation, creationTimestamp, deletionTimestamp };
  return {
    apiVersion,
    kind,
    metadata: { name, ...Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) },
    ...(spec === undefined ? {} : { spec }),
    ...(status?.conditions === undefined ? {} : { status: { conditions: status.conditions } }),
  };
}

export const isRegistryObject = ({ apiVersion, kind }: KubeObject): boolean =>
  registryKinds.some((one) => one.kind === kind && one.apiVersion === apiVersion);

/** There is one Image config. */
export const imageConfigName = "cluster";

/** A cluster without such objects. */
export const noRegistries: RegistryObjects = {
  image: undefined,
  digestMirrorSets: [],
  tagMirrorSets: [],
  contentSourcePolicies: [],
  clusterImagePolicies: [],
  imagePolicies: [],
  releaseImage: undefined,
};

/** The objects with manifests applied to them. */
export function withRegistryManifests(
  manifests: readonly KubeObject[],
  before: RegistryObjects = noRegistries,
): RegistryObjects {
  const changed = <T extends KubeObject>(had: readonly T[], { kind, apiVersion }: Resource<T>): readonly T[] => {
    const own = manifests.filter(
      (one) => one.kind === kind && one.apiVersion === apiVersion,
    ) as unknown as readonly T[];
    const byKey = new Map([...had, ...own].map((one) => [keyOf(one), one]));
    return [...byKey.values()];
  };
  return {
    image: changed<ImageConfig>(before.image === undefined ? [] : [before.image], openshift.Image).find(
      ({ metadata }) => metadata.name === imageConfigName,
    ),
    digestMirrorSets: changed<ImageDigestMirrorSet>(before.digestMirrorSets, openshift.ImageDigestMirrorSet),
    tagMirrorSets: changed<ImageTagMirrorSet>(before.tagMirrorSets, openshift.ImageTagMirrorSet),
    contentSourcePolicies: changed<ImageContentSourcePolicy>(
      before.contentSourcePolicies,
      openshift.ImageContentSourcePolicy,
    ),
    clusterImagePolicies: changed<ImagePolicy>(before.clusterImagePolicies, openshift.ClusterImagePolicy),
    imagePolicies: changed<ImagePolicy>(before.imagePolicies, openshift.ImagePolicy),
    releaseImage: releaseImageOf(manifests) ?? before.releaseImage,
  };
}

/** There is one ClusterVersion. */
const versionName = "version";

/** The image of the cluster's release, as far as one of the objects is the ClusterVersion. */
export function releaseImageOf(objects: readonly KubeObject[]): string | undefined {
  const { kind, apiVersion } = openshift.ClusterVersion;
  const version = objects.find(
    (one) => one.kind === kind && one.apiVersion === apiVersion && one.metadata.name === versionName,
  ) as ClusterVersion | undefined;
  // Of a file, it may be anything.
  const image: unknown = version?.status?.desired?.image;
  return typeof image === "string" ? image : undefined;
}

/** The objects without one of them. */
export function withoutRegistryObject(gone: KubeObject, objects: RegistryObjects): RegistryObjects {
  const left = <T extends KubeObject>(list: readonly T[]) =>
    list.filter((one) => objectNameOf(one) !== objectNameOf(gone));
  return {
    image: left(objects.image === undefined ? [] : [objects.image])[0],
    digestMirrorSets: left(objects.digestMirrorSets),
    contentSourcePolicies: left(objects.contentSourcePolicies),
    tagMirrorSets: left(objects.tagMirrorSets),
    clusterImagePolicies: left(objects.clusterImagePolicies),
    imagePolicies: left(objects.imagePolicies),
    releaseImage: objects.releaseImage,
  };
}

/** The name of an object in problems: `ImageDigestMirrorSet/name`, `ImagePolicy/namespace/name`. */
export const objectNameOf = (object: Pick<KubeObject, "kind" | "metadata">): string =>
  `${object.kind}/${keyOf(object)}`;

/** All objects, of whatever kind. */
export const allObjects = (objects: RegistryObjects): readonly KubeObject[] => [
  ...(objects.image === undefined ? [] : [objects.image]),
  ...objects.digestMirrorSets,
  ...objects.contentSourcePolicies,
  ...objects.tagMirrorSets,
  ...objects.clusterImagePolicies,
  ...objects.imagePolicies,
];

/** What the objects say. Their order in a cluster does not matter: they are read by name. */
export function settingsOf(objects: RegistryObjects): Omit<RegistriesInputs, "registries" | "policy"> {
  const { ImageDigestMirrorSet: digest, ImageContentSourcePolicy: content, ImageTagMirrorSet: tag } = openshift;
  return {
    sources: objects.image?.spec?.registrySources ?? {},
    releaseImage: objects.releaseImage,
    rules: [
      ...byName(objects.digestMirrorSets).flatMap((one) =>
        rulesOf(one, digest.kind, "imageDigestMirrors", one.spec?.imageDigestMirrors),
      ),
      ...byName(objects.contentSourcePolicies).flatMap((one) =>
        rulesOf(one, content.kind, "repositoryDigestMirrors", one.spec?.repositoryDigestMirrors),
      ),
      ...byName(objects.tagMirrorSets).flatMap((one) =>
        rulesOf(one, tag.kind, "imageTagMirrors", one.spec?.imageTagMirrors),
      ),
    ],
    policies: [
      ...policiesOf(objects.clusterImagePolicies, openshift.ClusterImagePolicy.kind),
      ...policiesOf(objects.imagePolicies, openshift.ImagePolicy.kind),
    ],
  };
}

const byName = <T extends KubeObject>(objects: readonly T[]): readonly T[] =>
  objects.toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));

const rulesOf = (
  { metadata }: KubeObject,
  kind: string,
  field: string,
  mirrors: readonly ImageMirrors[] = [],
): readonly MirrorRule[] =>
  mirrors.map(({ source, mirrors: own = [], mirrorSourcePolicy }, i) => ({
    object: `${kind}/${metadata.name}`,
    path: `spec.${field}[${i}]`,
    of: kind === openshift.ImageTagMirrorSet.kind ? "tag" : "digest",
    source,
    mirrors: own,
    // The older kind has no such field: an API server drops it.
    policy: kind === openshift.ImageContentSourcePolicy.kind ? undefined : mirrorSourcePolicy,
  }));

const policiesOf = (policies: readonly KnownPolicy[], kind: string): RegistriesInputs["policies"] =>
  byName(policies).map((policy) => ({
    object: `${kind}/${keyOf(policy)}`,
    namespace: policy.metadata.namespace ?? "",
    spec: policy.spec ?? {},
    ...(policy.room === undefined ? {} : { room: policy.room }),
  }));
