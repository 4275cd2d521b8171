import { lenientKubernetesYaml } from "./kubernetes-yaml.ts";

/** Larger files are no kubeconfigs; so large a text is not parsed. */
const mostCharacters = 2 ** 20;

/** Whether a text is a kubeconfig, by which a program reaches an API server: k8s.io/client-go tools/clientcmd/api/v1. */
export function isKubeconfig(text: string): boolean {
  if (text.length > mostCharacters || !text.includes("Config") || !text.includes("clusters")) return false;
  const value = lenientKubernetesYaml(text)?.value as
    | { readonly kind?: unknown; readonly clusters?: unknown }
    | null
    | undefined;
  return value?.kind === "Config" && Array.isArray(value.clusters);
}
