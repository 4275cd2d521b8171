import type { HttpResponse } from "../../../ports/http.ts";
import { ShareCounts } from "../http/share-counts.ts";
import type { Share } from "../schema/contract.ts";
import { tooManyRequests } from "../schema/status.ts";

/** How many answers with logs of one kubelet may be under way at once, some of them for hours. */
export interface LogLimits {
  readonly ofOneUser: number;
  readonly ofOneNode: number;
  /** Of all users for whom nothing is kept. */
  readonly ofOthers: number;
  readonly ofNodes: number;
}

/** A kubelet answers 256 requests at once, all of them ours: most of these are kept for components and administrators. */
export const logLimits: LogLimits = { ofOneUser: 16, ofOneNode: 8, ofOthers: 64, ofNodes: 32 };

const retryAfterSeconds = 5;

/** Whose log of what is read. */
export interface LogReading {
  /** Its address and port: a node may name those of another one. */
  readonly kubelet: string;
  readonly nodeName: string;
  readonly reader: Share;
}

/**
 * Shares the requests that a kubelet answers at once among those who read its logs: to the kubelet, they are all of one
 * client.
 */
export class LogReaders {
  readonly #limits: LogLimits;
  /** By kubelet; those that nobody reads are absent. */
  readonly #kubelets = new Map<string, ShareCounts>();

  constructor(limits: LogLimits) {
    this.#limits = limits;
  }

  /** Answers with `ask` where the reader's share has room: 429 otherwise. The share is taken until the answer has ended. */
  async read(reading: LogReading, ask: () => Promise<HttpResponse>, signal: AbortSignal): Promise<HttpResponse> {
    const full = this.#fullFor(reading);
    if (full !== undefined) return tooManyRequests(full, retryAfterSeconds).response();
    const end = this.#begin(reading, signal);
    try {
      const answer = await ask();
      if (typeof answer.body === "string" || answer.body instanceof Uint8Array || signal.aborted) {
        end();
        return answer;
      }
      return { ...answer, body: untilEnd(answer.body, end) };
    } catch (error) {
      end();
      throw error;
    }
  }

  /** Why there is no room, and what helps. */
  #fullFor({ kubelet, nodeName, reader }: LogReading): string | undefined {
    const readers = this.#kubelets.get(kubelet);
    if (readers === undefined || reader.part === "cluster") return undefined;
    const { ofOneUser, ofOneNode, ofOthers, ofNodes } = this.#limits;
    const [own, all, everybody] =
      reader.part === "nodes" ? ([ofOneNode, ofNodes, "machines"] as const) : ([ofOneUser, ofOthers, "users"] as const);
    if (readers.ofUser(reader) >= own)
      return `you read ${own} logs from node ${nodeName} already, as many as you may at once: stop one that you follow, then try again`;
    if (readers.ofPart(reader) >= all)
      return `all ${everybody} together read ${all} logs from node ${nodeName} already, as many as they may at once: try again when others have stopped following theirs, or ask an administrator, for whom there is room`;
    return undefined;
  }

  /** @returns what ends it, as does the signal. */
  #begin({ kubelet, reader }: LogReading, signal: AbortSignal): () => void {
    const readers = this.#kubelets.get(kubelet) ?? new ShareCounts();
    this.#kubelets.set(kubelet, readers);
    const giveBack = readers.take(reader, 1);
    const end = () => {
      signal.removeEventListener("abort", end);
      giveBack();
      if (readers.all === 0 && this.#kubelets.get(kubelet) === readers) this.#kubelets.delete(kubelet);
    };
    signal.addEventListener("abort", end, { once: true });
    return end;
  }
}

/** The same pieces; `ended` is called when there are no more of them, or nobody wants any. */
async function* untilEnd<T>(pieces: AsyncIterable<T>, ended: () => void): AsyncGenerator<T> {
  try {
    yield* pieces;
  } finally {
    ended();
  }
}
