import { stringify } from "yaml";
import { encodeBase64 } from "../ignition/data-url.ts";

/**
 * The kubeconfig that a kubelet joins with. Names are the reference's: openshift/machine-config-operator
 * pkg/server/cluster_server.go (main).
 */
export function joiningKubeconfig({
  server,
  ca,
  token,
}: {
  readonly server: string;
  /** PEM */ readonly ca: string;
  readonly token: string;
}): string {
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      { name: "local", cluster: { server, "certificate-authority-data": encodeBase64(new TextEncoder().encode(ca)) } },
    ],
    users: [{ name: "kubelet", user: { token } }],
    contexts: [{ name: "kubelet", context: { cluster: "local", user: "kubelet" } }],
    "current-context": "kubelet",
  });
}
