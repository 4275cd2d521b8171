/** Where pods of a cluster reach its own registry: openshift/machine-config-operator pkg/operator/sync.go (main). */
const internalRegistry = "image-registry.openshift-image-registry.svc:5000";
const publicRegistry = (baseDomain: string) => `default-route-openshift-image-registry.apps.${baseDomain}`;

export interface PullSecretSources {
  /** JSON of the account's Secrets of type kubernetes.io/dockercfg: registry → entry. */
  readonly ofAccount: readonly string[];
  /** JSON of the cluster's pull secret, `{"auths": …}`. */
  readonly ofCluster: string | undefined;
  readonly baseDomain: string | undefined;
}

export type MergedPullSecret =
  | { readonly verdict: "merged"; readonly json: string | undefined }
  | { readonly verdict: "refused"; readonly problem: string };

type Entries = Readonly<Record<string, unknown>>;

function entriesOf(json: string, under: "auths" | undefined): Entries | undefined {
  try {
    const whole = JSON.parse(json) as unknown;
    const found =
      under === undefined || typeof whole !== "object" || whole === null ? whole : ((whole as Entries)[under] ?? {});
    return typeof found === "object" && found !== null && !Array.isArray(found) ? (found as Entries) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The credentials with which machines also pull from the cluster's own registry: the puller account's, the cluster's,
 * and the former again under the registry's public name, because a first boot reaches it only from outside. Registries
 * are sorted, so that equal inputs give equal bytes. Problems never quote contents.
 */
export function mergedPullSecret({ ofAccount, ofCluster, baseDomain }: PullSecretSources): MergedPullSecret {
  const parts: Entries[] = [];
  for (const json of ofAccount) {
    const entries = entriesOf(json, undefined);
    if (entries === undefined)
      return { verdict: "refused", problem: "a pull secret of the account machine-os-puller is no JSON object" };
    parts.push(entries);
  }
  if (ofCluster !== undefined && ofCluster.trim() !== "") {
    const entries = entriesOf(ofCluster, "auths");
    if (entries === undefined)
      return { verdict: "refused", problem: "the cluster's Secret pull-secret is no docker configuration" };
    parts.push(entries);
  }
  const all: Record<string, unknown> = Object.assign({}, ...parts) as Record<string, unknown>;
  const own = all[internalRegistry];
  if (own !== undefined && baseDomain !== undefined && baseDomain !== "") all[publicRegistry(baseDomain)] = own;
  const auths = Object.fromEntries(Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1)));
  return { verdict: "merged", json: Object.keys(auths).length === 0 ? undefined : JSON.stringify({ auths }) };
}
