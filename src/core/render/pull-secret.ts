import type { Secret } from "../../api/foreign/kubernetes.ts";
import { isRecord } from "../../ignition/shape.ts";
import { textOfBase64 } from "./base-configs.ts";
import { inputNamespace, openshiftNamespaces } from "./openshift-inputs.ts";

/**
 * The cluster's pull secret, which machines have as the credentials of their kubelet and container runtime.
 *
 * @param onOpenShift whether the cluster is OpenShift's.
 */
export const pullSecretKey = (onOpenShift: boolean) =>
  ({ namespace: inputNamespace(openshiftNamespaces.config, onOpenShift), name: "pull-secret" }) as const;

const selectionOf = ({ namespace, name }: ReturnType<typeof pullSecretKey>) =>
  ({ namespace, fieldSelector: `metadata.name=${name}` }) as const;

/** Select that Secret alone, on OpenShift and elsewhere: rights to watch it name it. */
export const pullSecretSelections = [selectionOf(pullSecretKey(true)), selectionOf(pullSecretKey(false))] as const;
export const pullSecretSelection = (onOpenShift: boolean) => pullSecretSelections[onOpenShift ? 0 : 1];

export type PullSecret =
  | { readonly verdict: "absent" }
  /** `text`: JSON without space between its parts, as the reference writes it. */
  | { readonly verdict: "read"; readonly text: string }
  /** `problem` names no part of its contents. */
  | { readonly verdict: "refused"; readonly problem: string };

const type = "kubernetes.io/dockerconfigjson";
const key = ".dockerconfigjson";

/**
 * Judges the pull secret before it replaces the credentials of every machine. What is not part of `auths`, such as
 * `credHelpers`, stays as it is. Source: openshift/machine-config-operator pkg/controller/template/template_controller.go
 * (main, getPullSecretData), which compacts the JSON and takes any shape.
 */
export function pullSecretOf(secret: Pick<Secret, "type" | "data"> | undefined): PullSecret {
  if (secret === undefined) return { verdict: "absent" };
  const refused = (problem: string) => ({ verdict: "refused", problem }) as const;
  if (secret.type !== undefined && secret.type !== type) return refused(`it is of type ${secret.type}, not ${type}`);
  const encoded = secret.data?.[key] ?? "";
  if (encoded === "") return refused(`it has no ${key}`);
  const text = textOfBase64(encoded);
  const value = parsed(text);
  if (value === undefined) return refused(`its ${key} is no JSON`);
  if (!isRecord(value.json)) return refused(`its ${key} is no JSON object`);
  const { auths } = value.json;
  if (!isRecord(auths))
    return refused(
      auths === undefined
        ? `its ${key} has no field auths: registries stand below auths, as in {"auths": {"registry.example.com": {"auth": "…"}}}`
        : `auths of its ${key} is no object of registries`,
    );
  const odd = Object.entries(auths).find(([, entry]) => !isRecord(entry));
  return odd === undefined
    ? { verdict: "read", text: compactJson(text) }
    : refused(`auths of its ${key} has an entry that is no object: ${JSON.stringify(odd[0].slice(0, 100))}`);
}

function parsed(text: string): { readonly json: unknown } | undefined {
  try {
    return { json: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}

/** Valid JSON without the space between its parts; everything else stays, byte for byte (Go, encoding/json, Compact). */
export const compactJson = (text: string): string =>
  text.replaceAll(/"(?:[^"\\]|\\.)*"|[ \t\r\n]+/g, (part) => (part.startsWith('"') ? part : ""));
