import { isMap, isSeq } from "yaml";
import { base64OfText } from "../text/base64-of-text.ts";
import { editableYaml } from "../text/kubernetes-yaml.ts";
import { textOfBase64 } from "./base-configs.ts";
import { certificatesOf } from "../certificates/certificate-facts.ts";

const field = ["cluster", "certificate-authority-data"] as const;

/**
 * A kubeconfig that trusts every authority of `bundle`; everything else in it stays unchanged, comments included.
 *
 * @param kubeconfig YAML, as kubelets get it.
 * @param bundle PEM; blocks other than certificates are skipped.
 * @returns `undefined` if it trusts them all already, or is not a kubeconfig with inline authorities.
 */
export function withAuthorities(kubeconfig: string, bundle: string): string | undefined {
  const wanted = certificatesOf(bundle).map(({ pem }) => pem);
  const document = editableYaml(kubeconfig);
  const clusters = document.errors.length > 0 ? undefined : document.get("clusters");
  if (wanted.length === 0 || !isSeq(clusters)) return undefined;
  let changed = false;
  for (const cluster of clusters.items) {
    const has = isMap(cluster) ? cluster.getIn(field) : undefined;
    if (!isMap(cluster) || typeof has !== "string") continue;
    const known = new Set(certificatesOf(textOfBase64(has)).map(({ pem }) => pem));
    if (wanted.every((pem) => known.has(pem))) continue;
    cluster.setIn(field, base64OfText(wanted.join("")));
    changed = true;
  }
  return changed ? document.toString({ lineWidth: 0, indentSeq: false }) : undefined;
}
