import type { Pod } from "../../../api/foreign/kubernetes.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Files } from "../../../ports/files.ts";
import type { HttpRequest, HttpResponse } from "../../../ports/http.ts";

export interface LogOptions {
  readonly files: Files;
  readonly clock: Clock;
  podOf(key: string): Pod | undefined;
  logFile(pod: Pod, container: string): string;
}

/** How often a followed log is read. */
const followMs = 200;
/** Of a log that is in memory: it may be larger than the memory. */
const chunkBytes = 256 * 1024;
const lineFeed = 0x0a;

/**
 * Answers `GET /containerLogs/<namespace>/<pod>/<container>` as a kubelet does: `tailLines`, `limitBytes`, `follow`
 * (kubernetes/kubernetes pkg/kubelet/server/server.go, main). The log is sent as it is read, in chunks. A followed log ends
 * with its container.
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
  if (
    pod === undefined ||
    ![...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])].some((each) => each.name === container)
  )
    return { status: 404, headers: {}, body: `container "${container}" of pod "${namespace}/${name}" is not here\n` };
  const asked = askedOf(url.searchParams);
  if (asked === undefined) return { status: 400, headers: {}, body: "tailLines and limitBytes are no numbers\n" };
  const { files, clock } = options;
  const file = options.logFile(pod, container);
  const hasEnded = (): boolean => {
    const now = options.podOf(`${namespace}/${name}`);
    const statuses = [...(now?.status?.initContainerStatuses ?? []), ...(now?.status?.containerStatuses ?? [])];
    return (
      now?.metadata.uid !== pod.metadata.uid ||
      statuses.some((status) => status.name === container && status.state?.terminated !== undefined)
    );
  };

  async function* text({ tailLines, limitBytes, follow }: Asked): AsyncGenerator<Uint8Array> {
    const sizeBytes = (await files.stat(file))?.sizeBytes ?? 0;
    let position = tailLines === undefined ? 0 : await tailStart(files, file, sizeBytes, tailLines);
    // Without `follow`, a container that prints without end does not make an answer without end.
    let left = Math.min(limitBytes ?? Infinity, follow ? Infinity : sizeBytes - position);
    while (left > 0 && !signal.aborted) {
      // Asked before the last read, which thus finds all that the container has printed.
      const isLast = !follow || hasEnded();
      const part = await files.readFrom(file, position, Math.min(chunkBytes, left));
      if (part !== undefined && part.length > 0) {
        yield part;
        position += part.length;
        left -= part.length;
        continue;
      }
      if (isLast) return;
      await clock.sleep(followMs, signal).catch(() => undefined);
      // An emptied log begins again.
      if (((await files.stat(file))?.sizeBytes ?? position) < position) position = 0;
    }
  }
  return { status: 200, headers: { "content-type": "text/plain" }, body: text(asked) };
}

/** What of a log a request asks for. */
interface Asked {
  readonly follow: boolean;
  readonly tailLines: number | undefined;
  readonly limitBytes: number | undefined;
}

/** `undefined`: a number is none. */
function askedOf(query: URLSearchParams): Asked | undefined {
  const numbers = ["tailLines", "limitBytes"].map((name) => query.get(name));
  if (numbers.some((text) => text !== null && !/^\d{1,15}$/.test(text))) return undefined;
  const [tailLines, limitBytes] = numbers.map((text) => (text === null ? undefined : Number(text)));
  return { follow: query.get("follow") === "true", tailLines, limitBytes };
}

/** Where the last lines of a file begin, in bytes. It is read from its end, a chunk at a time. */
async function tailStart(files: Files, file: string, sizeBytes: number, lines: number): Promise<number> {
  if (lines === 0) return sizeBytes;
  let found = 0;
  for (let end = sizeBytes; end > 0;) {
    const begin = Math.max(0, end - chunkBytes);
    const part = (await files.readFrom(file, begin, end - begin)) ?? new Uint8Array();
    for (let at = part.lastIndexOf(lineFeed); at >= 0; at = at === 0 ? -1 : part.lastIndexOf(lineFeed, at - 1)) {
      // The one that ends the last line begins none.
      if (begin + at === sizeBytes - 1) continue;
      found += 1;
      if (found === lines) return begin + at + 1;
    }
    end = begin;
  }
  return 0;
}
