import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { isIP } from "node:net";
import type { HttpResponse } from "../../../ports/http.ts";
import type { KubeObject } from "../schema/contract.ts";
import { isObject } from "../schema/json-values.ts";
import type { LogSource } from "../requests/pods.ts";
import { internalError } from "../schema/status.ts";
import { logLimits, LogReaders } from "./log-readers.ts";

export interface KubeletLogsOptions {
  readonly nodeOf: (name: string) => KubeObject | undefined;
  /** PEM: whom we believe to be a kubelet, and who we are to it. */
  readonly tls: { readonly ca: string; readonly certificate: string; readonly key: string };
}

/**
 * Passes requests for logs on to the kubelet of the pod's node, at the address and port of its status, as far as the reader's
 * share of what that kubelet answers has room.
 */
export function kubeletLogs({ nodeOf, tls }: KubeletLogsOptions): LogSource {
  const readers = new LogReaders(logLimits);
  return ({ namespace, pod, container, nodeName, query, reader }, signal) => {
    const endpoint = endpointOf(nodeOf(nodeName));
    if (endpoint === undefined)
      return Promise.resolve(internalError(`no address of a kubelet is known for node ${nodeName}`).response());
    const asked = new URLSearchParams(query);
    asked.delete("container");
    const parameters = asked.toString();
    const url = `https://${endpoint}/containerLogs/${encodeURIComponent(namespace)}/${encodeURIComponent(pod)}/${encodeURIComponent(container)}${parameters === "" ? "" : `?${parameters}`}`;
    const ask = () =>
      new Promise<HttpResponse>((resolve) => {
        const fail = (error: Error) =>
          resolve(internalError(`Get ${JSON.stringify(url)}: ${error.message}`).response());
        const call = request(
          url,
          { signal, ca: tls.ca, cert: tls.certificate, key: tls.key },
          (answer: IncomingMessage) => {
            resolve({
              status: answer.statusCode ?? 502,
              headers: { "content-type": answer.headers["content-type"] ?? "text/plain" },
              body: answer as AsyncIterable<Uint8Array>,
            });
          },
        );
        call.on("error", fail);
        call.end();
      });
    return readers.read({ kubelet: endpoint, nodeName, reader }, ask, signal);
  };
}

function endpointOf(node: KubeObject | undefined): string | undefined {
  const status = node?.["status"];
  if (!isObject(status)) return undefined;
  const endpoints = isObject(status["daemonEndpoints"]) ? status["daemonEndpoints"] : {};
  const kubelet = isObject(endpoints["kubeletEndpoint"]) ? endpoints["kubeletEndpoint"] : {};
  const port = kubelet["Port"];
  const addresses = Array.isArray(status["addresses"]) ? status["addresses"].filter(isObject) : [];
  const chosen =
    addresses.find((one) => one["type"] === "InternalIP") ?? addresses.find((one) => one["type"] === "Hostname");
  if (typeof port !== "number" || !Number.isInteger(port) || port <= 0 || typeof chosen?.["address"] !== "string")
    return undefined;
  const host = chosen["address"];
  // A kubelet writes its own address: with a path in it, it would choose what is asked of whom.
  if (isIP(host) === 0 && !/^[A-Za-z0-9][-A-Za-z0-9.]*$/.test(host)) return undefined;
  return `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}
