import { kubernetes } from "../api/foreign/kubernetes.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { usageError } from "./arguments.ts";

/**
 * The address to listen on: the one that was given, or that of the node that the pod runs on, because a pod's
 * environment may be made before its status knows the address.
 *
 * @param flag named when neither is known.
 */
export async function addressToListenOn(kube: KubeClient, given: string | undefined, flag: string): Promise<string> {
  if (given !== undefined && given !== "" && !given.startsWith("$(")) return given;
  const name = process.env["NODE_NAME"] ?? "";
  const [node] =
    name === "" ? [] : (await kube.list(kubernetes.Node, { fieldSelector: `metadata.name=${name}` })).items;
  const address = node?.status?.addresses?.find(({ type }) => type === "InternalIP")?.address;
  if (address === undefined)
    throw usageError(`${flag} is required: neither it nor the node says which address to listen on`);
  return address;
}
