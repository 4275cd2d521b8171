/**
 * What a cluster has chosen of OpenShift's features, as its FeatureGate says. Source: openshift/api
 * config/v1/types_feature.go (master).
 */
export interface ChosenFeatures {
  readonly spec?: {
    readonly featureSet?: string | undefined;
    readonly customNoUpgrade?: { readonly enabled?: readonly string[] | undefined } | null | undefined;
  };
  readonly status?:
    | {
        readonly featureGates?:
          | readonly { readonly enabled?: readonly { readonly name: string }[] | undefined }[]
          | undefined;
      }
    | undefined;
}

const previews = ["TechPreviewNoUpgrade", "DevPreviewNoUpgrade"] as const;

/**
 * The features without which a field of the suite's kinds does not exist, and the sets of features that have them; a
 * cluster that chose none is of the set Default. Fields of features that Default has are there in every cluster.
 * Source: openshift/api payload-manifests/featuregates, 2a3d73913b5a.
 */
export const apiGates = {
  GomaxprocsInjection: previews,
  TLSGroupPreferences: previews,
} as const satisfies Readonly<Record<string, readonly string[]>>;

export type ApiGate = keyof typeof apiGates;

const names = Object.keys(apiGates) as readonly ApiGate[];

/** Where a schema names the feature that its field belongs to; no definition shows it. */
export const gateKeyword = "x-feature-gate";

/** The features that a cluster has. The list of its own operator counts; elsewhere the set that was chosen. */
export function apiGatesOf(chosen: ChosenFeatures | undefined): ReadonlySet<ApiGate> {
  const lists = chosen?.status?.featureGates ?? [];
  const { featureSet = "", customNoUpgrade } = chosen?.spec ?? {};
  const isOn = (gate: ApiGate): boolean => {
    // One list for each version that machines of the cluster run: a field goes away with the last that has it.
    if (lists.length > 0) return lists.some(({ enabled = [] }) => enabled.some(({ name }) => name === gate));
    if (featureSet === "CustomNoUpgrade") return customNoUpgrade?.enabled?.includes(gate) === true;
    return apiGates[gate].some((set) => set === featureSet);
  };
  return new Set(names.filter(isOn));
}

/** Every feature: definitions that have all of them lose no field of any object. */
export const allApiGates: ReadonlySet<ApiGate> = new Set(names);

/** Those of a cluster that chose none. */
export const defaultApiGates: ReadonlySet<ApiGate> = apiGatesOf(undefined);
