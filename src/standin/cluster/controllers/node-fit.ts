import type { Node, Pod, Taint } from "../../../api/foreign/kubernetes.ts";
import { conditionOf } from "../../../api/schema/object.ts";
import { nodeTaints } from "../../../api/names.ts";
import { own } from "../../../api/schema/own.ts";

type Toleration = NonNullable<NonNullable<Pod["spec"]>["tolerations"]>[number];
type NodeSelectorTerm = { matchExpressions?: Requirement[]; matchFields?: Requirement[] };
interface Requirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

/** Whether a toleration covers a taint: k8s.io/api core/v1 toleration.go (master). */
export function tolerates(
  { key = "", operator = "Equal", value = "", effect = "" }: Toleration,
  taint: Taint,
): boolean {
  if (effect !== "" && effect !== taint.effect) return false;
  if (key === "") return operator === "Exists";
  return key === taint.key && (operator === "Exists" || value === (taint.value ?? ""));
}

export const toleratesTaint = (tolerations: readonly Toleration[] | undefined, taint: Taint): boolean =>
  (tolerations ?? []).some((toleration) => tolerates(toleration, taint));

export const isNodeReady = (node: Node): boolean => conditionOf(node.status?.conditions, "Ready")?.status === "True";

/** The taints of a node, including those that follow from its state but are not written yet. */
export function effectiveTaints(node: Node): readonly Taint[] {
  const taints: Taint[] = [...(node.spec?.taints ?? [])];
  const add = (key: string) => {
    if (!taints.some((taint) => taint.key === key && taint.effect === "NoSchedule"))
      taints.push({ key, effect: "NoSchedule" });
  };
  const ready = conditionOf(node.status?.conditions, "Ready")?.status;
  if (ready === "Unknown") add(nodeTaints.unreachable);
  else if (ready !== "True") add(nodeTaints.notReady);
  if (node.spec?.unschedulable === true) add(nodeTaints.unschedulable);
  return taints;
}

function satisfies({ key, operator, values = [] }: Requirement, found: string | undefined): boolean {
  switch (operator) {
    case "In":
      return found !== undefined && values.includes(found);
    case "NotIn":
      return found === undefined || !values.includes(found);
    case "Exists":
      return found !== undefined;
    case "DoesNotExist":
      return found === undefined;
    case "Gt":
      return found !== undefined && Number(found) > Number(values[0]);
    case "Lt":
      return found !== undefined && Number(found) < Number(values[0]);
    default:
      throw new Error(`a node selector does not know the operator "${operator}" (key ${key})`);
  }
}

/**
 * Terms are alternatives; an empty term matches nothing: k8s.io/component-helpers scheduling/corev1/nodeaffinity
 * (master).
 */
function termMatches({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm, node: Node): boolean {
  if (matchExpressions.length + matchFields.length === 0) return false;
  const field = (key: string) => (key === "metadata.name" ? node.metadata.name : undefined);
  return (
    matchExpressions.every((one) => satisfies(one, own(node.metadata.labels, one.key))) &&
    matchFields.every((one) => satisfies(one, field(one.key)))
  );
}

/** Whether `nodeSelector` and the required node affinity of a pod allow a node. */
export function nodeSelected(spec: Pod["spec"], node: Node): boolean {
  const labels = node.metadata.labels ?? {};
  if (!Object.entries(spec?.nodeSelector ?? {}).every(([key, value]) => labels[key] === value)) return false;
  const required = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return required === undefined || required.nodeSelectorTerms.some((term) => termMatches(term, node));
}

/** The one node that a pod's affinity pins it to by name, if every term of it does. */
export function pinnedNode(spec: Pod["spec"]): string | undefined {
  const terms = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  const names = new Set(
    terms.map(
      ({ matchFields = [] }) =>
        matchFields.find(
          ({ key, operator, values }) => key === "metadata.name" && operator === "In" && values?.length === 1,
        )?.values?.[0],
    ),
  );
  const [name] = names;
  return names.size === 1 ? name : undefined;
}
