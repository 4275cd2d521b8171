import type { Pod } from "../../api/foreign/kubernetes.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Files } from "../../ports/files.ts";
import type { HttpRequest, HttpResponse } from "../../ports/http.ts";

export interface LogOptions {
  readonly files: Files;
  readonly clock: Clock;
  podOf(key: string): Pod | undefined;
  logFile(pod: Pod, container: string): string;
}

/** How often a followed log is read. */
const followMs = 200;

/**
 * Answers `GET /containerLogs/<namespace>/<pod>/<container>` as a kubelet does: `tailLines`, `limitBytes`, `follow`
 * (kubernetes/kubernetes pkg/kubelet/server/server.go, main).
 */
export async function logResponse(
  request: HttpRequest,
  options: LogOptions,
  signal: AbortSignal,
): Promise<HttpResponse> {
  const url = new URL(request.target, "https://host");
  const [, root, namespace = "", name = "", container = ""] = url.pathname.split("/").map(decodeURIComponent);
  if (root !== "containerLogs" || request.method !== "GET") return { status: 404, headers: {}, body: "not found\n" };
  const pod = options.podOf(`${namespace}/${name}`);
  if (pod === undefined || !(pod.spec?.containers ?? []).some((each) => each.name === container))
    return { status: 404, headers: {}, body: `container "${container}" of pod "${namespace}/${name}" is not here\n` };
  const file = options.logFile(pod, container);
  let text = (await options.files.readText(file)) ?? "";
  let position = text.length;
  const tail = url.searchParams.get("tailLines");
  if (tail !== null) {
    const lines = text.split("\n");
    const complete = text.endsWith("\n") ? lines.slice(0, -1) : lines;
    const kept = Number(tail) <= 0 ? [] : complete.slice(-Number(tail));
    text = kept.length === 0 ? "" : `${kept.join("\n")}\n`;
  }
  const limit = url.searchParams.get("limitBytes");
  if (limit !== null) text = text.slice(0, Number(limit));
  const headers = { "content-type": "text/plain" };
  if (url.searchParams.get("follow") !== "true") return { status: 200, headers, body: text };

  async function* follow(): AsyncIterable<string> {
    if (text !== "") yield text;
    while (!signal.aborted && options.podOf(`${namespace}/${name}`)?.metadata.uid === pod?.metadata.uid) {
      const now = (await options.files.readText(file)) ?? "";
      if (now.length > position) yield now.slice(position);
      position = now.length;
      await options.clock.sleep(followMs, signal).catch(() => undefined);
    }
  }
  return { status: 200, headers, body: follow() };
}
