import { own } from "./own.ts";

/** The fields of every Kubernetes object. Field names and meaning: Kubernetes apimachinery meta/v1. */
export interface ObjectMeta {
  name: string;
  namespace?: string;
  generateName?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
  managedFields?: unknown[];
}

/** Characters of an object's name: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/ */
export const longestObjectName = 253;

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
}

export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: "In" | "NotIn" | "Exists" | "DoesNotExist"; values?: string[] }[];
}

/** A condition like `metav1.Condition`; pools and kinds of config.openshift.io v1 omit `observedGeneration`. */
export interface Condition {
  type: string;
  status: "True" | "False" | "Unknown";
  reason: string;
  message: string;
  lastTransitionTime: string;
  observedGeneration?: number;
}

/** A kind as clients need it: URL parts and object type. */
export interface Resource<T extends KubeObject = KubeObject> {
  readonly group: string;
  readonly version: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** Never present at run time: carries the type. */
  readonly objectType?: T;
}

/** Declares a kind that this suite reads or writes but does not define. */
export function resource<T extends KubeObject>(
  apiVersion: string,
  kind: string,
  plural: string,
  scope: "Cluster" | "Namespaced",
): Resource<T> {
  const [group = "", version] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion];
  return { group, version: version ?? "", apiVersion, kind, plural, namespaced: scope === "Namespaced" };
}

/** Whether `labels` satisfy `selector`. An empty selector matches everything; an absent one matches nothing. */
export function selectorMatches(
  selector: LabelSelector | undefined,
  labels: Readonly<Record<string, string>> | undefined,
): boolean {
  if (selector === undefined) return false;
  const has = labels ?? {};
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) if (has[key] !== value) return false;
  for (const { key, operator, values = [] } of selector.matchExpressions ?? []) {
    const value = own(has, key);
    const inValues = value !== undefined && values.includes(value);
    if (operator === "In" && !inValues) return false;
    if (operator === "NotIn" && inValues) return false;
    if (operator === "Exists" && value === undefined) return false;
    if (operator === "DoesNotExist" && value !== undefined) return false;
  }
  return true;
}

/** Whether a selector is present but empty; pools refuse such a selector. */
export function selectorIsEmpty(selector: LabelSelector): boolean {
  return Object.keys(selector.matchLabels ?? {}).length === 0 && (selector.matchExpressions ?? []).length === 0;
}

/** `ns/name`, or `name` of a cluster-scoped object: the key of caches and queues. */
export function keyOf(object: { readonly metadata: { readonly name: string; readonly namespace?: string } }): string {
  const { name, namespace } = object.metadata;
  return namespace === undefined || namespace === "" ? name : `${namespace}/${name}`;
}

export function conditionOf<C extends { type: string }>(
  conditions: readonly C[] | undefined,
  type: string,
): C | undefined {
  return conditions?.find((condition) => condition.type === type);
}

/** The reference that makes `owner` the controller of another object. */
export function controlledBy(owner: KubeObject): OwnerReference {
  return {
    apiVersion: owner.apiVersion,
    kind: owner.kind,
    name: owner.metadata.name,
    uid: owner.metadata.uid ?? "",
    controller: true,
    blockOwnerDeletion: true,
  };
}

/** A time as objects store it: RFC 3339 in UTC, to the second (apimachinery `metav1.Time`). */
export const timestampOf = (milliseconds: number): string => `${new Date(milliseconds).toISOString().slice(0, 19)}Z`;
