import type { Secret } from "../../api/foreign/kubernetes.ts";
import type { MachineOSBuild } from "../../api/kinds/machine-os-build.ts";
import type { MachineOSConfig } from "../../api/kinds/machine-os-config.ts";
import { annotations, buildNamespace, labels, objects } from "../../api/names.ts";
import { equalValues } from "../../ignition/canonical.ts";
import { buildConfigKeys } from "../build/build-settings.ts";
import { defined } from "../../api/schema/defined.ts";

/** What names credentials of builds, and the Secrets of the suite's namespace. */
export interface CredentialFacts {
  readonly machineOSConfigs: readonly MachineOSConfig[];
  readonly builds: readonly MachineOSBuild[];
  /** `data` of the ConfigMap on-cluster-build-config. */
  readonly buildConfig: Readonly<Record<string, string>> | undefined;
  readonly secrets: readonly Secret[];
}

/** The types of Secrets with credentials for registries. */
export const registryTypes: ReadonlySet<string> = new Set([
  "kubernetes.io/dockerconfigjson",
  "kubernetes.io/dockercfg",
]);
const opaque = "Opaque";
/** The type that a Secret with such a key should have. */
const typesOfData = {
  ".dockerconfigjson": "kubernetes.io/dockerconfigjson",
  ".dockercfg": "kubernetes.io/dockercfg",
} as const;

/**
 * The copies of Secrets that lie beside the builds, where the builder reads them: it reads none of the suite's own
 * namespace. Names come from objects that the builder may write itself, so that a name alone gives no Secret away: by
 * name it gets credentials of registries only. Of a Secret of another type the copy says the type, and holds nothing. The
 * operator's own copies of the cluster's pull secret and entitlement are judged by their names, which only they have: they
 * keep the type that the first of their sources had.
 */
export function buildCredentials({
  machineOSConfigs,
  builds,
  buildConfig = {},
  secrets,
}: CredentialFacts): readonly Secret[] {
  const registry = new Set(
    [
      objects.globalPullSecret,
      buildConfig[buildConfigKeys.basePullSecret],
      buildConfig[buildConfigKeys.pushSecret],
      ...machineOSConfigs.flatMap(({ spec }) => [spec.baseImagePullSecret?.name, spec.renderedImagePushSecret.name]),
      // Images of builds are deleted with what they were pushed with.
      ...builds.map(({ metadata }) => metadata.annotations?.[annotations.pushSecret]),
    ].flatMap((name) => (name === undefined || name === "" ? [] : [name])),
  );
  const entitlements = new Set(
    machineOSConfigs.map(({ spec }) => `${objects.entitlementPrefix}${spec.machineConfigPool.name}`),
  );
  return secrets.flatMap((secret) => {
    const { name } = secret.metadata;
    const type = typeOf(secret);
    const pools = secret.metadata.annotations?.[annotations.secretPools];
    if (registry.has(name) && registryTypes.has(type))
      return [copyOf(name, type, secret.data, pools === undefined ? undefined : { [annotations.secretPools]: pools })];
    if (entitlements.has(name) || (name === objects.rpmGpg && type === opaque))
      return [copyOf(name, opaque, secret.data)];
    return registry.has(name) || name === objects.rpmGpg
      ? [copyOf(name, opaque, undefined, { [annotations.secretType]: type })]
      : [];
  });
}

function typeOf({ metadata, type = opaque, data = {} }: Secret): string {
  if (metadata.name !== objects.globalPullSecret || registryTypes.has(type)) return type;
  return Object.entries(typesOfData).find(([key]) => key in data)?.[1] ?? type;
}

const copyOf = (
  name: string,
  type: string,
  data: Secret["data"],
  notes?: Readonly<Record<string, string>>,
): Secret => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: {
    name,
    namespace: buildNamespace,
    labels: { [labels.buildCredential]: "" },
    ...(notes === undefined ? {} : { annotations: { ...notes } }),
  },
  type,
  ...defined({ data }),
});

export interface CredentialChanges {
  readonly apply: readonly Secret[];
  /** Names. One whose type changes is made again: the type of a Secret cannot change. */
  readonly remove: readonly string[];
}

/** What makes the copies that there are those that are wanted. */
export function credentialChanges(wanted: readonly Secret[], found: readonly Secret[]): CredentialChanges {
  const before = new Map(found.map((secret) => [secret.metadata.name, secret]));
  const names = new Set(wanted.map(({ metadata }) => metadata.name));
  const contents = ({ type, data, metadata }: Secret) => [
    type,
    data ?? {},
    metadata.annotations?.[annotations.secretType],
    metadata.annotations?.[annotations.secretPools],
    metadata.labels?.[labels.buildCredential],
  ];
  const differing = wanted.filter((secret) => {
    const there = before.get(secret.metadata.name);
    return there === undefined || !equalValues(contents(secret), contents(there));
  });
  return {
    apply: differing,
    remove: [
      ...found.filter(({ metadata }) => !names.has(metadata.name)).map(({ metadata }) => metadata.name),
      ...differing.flatMap(({ metadata, type }) => {
        const there = before.get(metadata.name);
        return there === undefined || there.type === type ? [] : [metadata.name];
      }),
    ],
  };
}
