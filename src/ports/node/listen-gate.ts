import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { ListenLimits } from "../listener.ts";
import { SourceBuckets } from "../source-buckets.ts";

/** Sources whose requests are counted; the one that was quiet longest is forgotten first. */
const rememberedSources = 1000;

/** Holds a listener's clients to its limits. */
export class ListenGate {
  readonly limits: ListenLimits;
  readonly #buckets: SourceBuckets;
  #underWay = 0;

  constructor(limits: ListenLimits) {
    this.limits = limits;
    this.#buckets = new SourceBuckets({ ...limits, sources: rememberedSources });
  }

  /** Begins a request. @returns whether it continues; `false`: it was refused. */
  begins(incoming: IncomingMessage, outgoing: ServerResponse): boolean {
    const { limits } = this;
    if (Number(incoming.headers["content-length"] ?? 0) > limits.bodyBytes) {
      refuse(incoming, outgoing, 413, `the body is longer than ${limits.bodyBytes} bytes`);
      return false;
    }
    if (this.#buckets.take(this.#sourceOf(incoming.socket), performance.now()) > 0) {
      refuse(incoming, outgoing, 429, "this source sends more requests than it may");
      return false;
    }
    if (this.#underWay >= limits.requests) {
      refuse(incoming, outgoing, 503, "too many requests are under way");
      return false;
    }
    this.#underWay += 1;
    const late = setTimeout(
      () => refuse(incoming, outgoing, 503, `the request was not answered within ${limits.requestMs} ms`),
      limits.requestMs,
    );
    outgoing.once("close", () => {
      clearTimeout(late);
      this.#underWay -= 1;
    });
    return true;
  }

  #sourceOf(socket: Socket): string {
    return this.limits.sourceOf(socket.remoteAddress ?? "");
  }
}

/** Answers with a message and closes the connection, without reading what else the client sends. */
export function refuse(incoming: IncomingMessage, outgoing: ServerResponse, status: number, text: string): void {
  if (outgoing.headersSent) {
    incoming.destroy();
    return;
  }
  outgoing.writeHead(status, {
    "content-type": "text/plain",
    connection: "close",
    ...(status === 413 ? {} : { "retry-after": "1" }),
  });
  outgoing.end(`${text}\n`, () => incoming.destroy());
}
