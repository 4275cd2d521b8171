import { McoError } from "../api/errors.ts";
import { hostOfPullspec } from "../core/images/image-reference.ts";
import type { Clock } from "../ports/clock.ts";
import type { ImageStore } from "../registry/image-store.ts";
import type { ProxySettings } from "../registry/wire.ts";
import { ImageSearches } from "./image-searches.ts";

/** The queries to registries. */
export type Images = Pick<ImageStore, "resolve" | "inspect" | "readFiles" | "delete" | "mayPush" | "isWorldReadable">;

/** Settings for queries to registries: texts in the format of a machine's files. */
export interface ImageAccess {
  /** For whom the queries are. */
  readonly pool: string;
  /** Auth files. */
  readonly pull: string | undefined;
  readonly push: string | undefined;
  /** registries.conf and policy.json of the configuration. */
  readonly registries: string | undefined;
  readonly policy: string | undefined;
  /** PEM texts by host, and those for every host. */
  readonly certificates: Readonly<Record<string, readonly string[]>>;
  readonly trust: readonly string[];
  /** `amd64`, `arm64`, … */
  readonly architecture: string;
  readonly proxy?: ProxySettings | undefined;
}

export type OpenImages = (access: ImageAccess) => Images;

/** Everything that a query needs, the registry's and its token service's retries included. */
const queryMs = 30_000;
/** A registry that did not answer in time is not asked again before this, and then beside other work. */
const restMs = 60_000;
const mostResting = 256;
const tooLate = "the registry did not answer in time";

/**
 * Limits the time of each query: a registry that answers byte by byte costs its own pools half a minute, and holds up no others.
 * What does not answer in time is unreachable (`MCO_IMAGE_UNREACHABLE`) for those who ask the same registry in the same way,
 * until it answers again: after a while it is asked once more, and nobody waits for that. A search for files has an hour, as a
 * large layer takes on a slow line; who wants it is told that it is under way, and asks again later ({@link ImageSearches}).
 *
 * @param stop ends searches, and queries that nobody waits for.
 */
export function withDeadlines(open: OpenImages, clock: Clock, stop: AbortSignal): OpenImages {
  /** When each may be asked again; never while it is being asked. */
  const resting = new Map<string, { readonly until: number }>();
  const searches = new ImageSearches(clock, stop);
  const unreachable = (image: string, cause?: unknown) =>
    new McoError("MCO_IMAGE_UNREACHABLE", { image, problem: tooLate, retryable: true }, { cause });
  function rest(key: string): void {
    resting.delete(key);
    resting.set(key, { until: clock.monotonic() + restMs });
    const oldest = resting.keys().next();
    if (resting.size > mostResting && oldest.done !== true) resting.delete(oldest.value);
  }
  async function askAgain(key: string, ask: (until: AbortSignal) => Promise<unknown>): Promise<void> {
    const asking = { until: Infinity };
    resting.set(key, asking);
    const deadline = clock.deadline(queryMs, stop);
    // A refusal is an answer as well: the next query will be told.
    const answered = await ask(deadline.signal).then(
      () => true,
      () => !deadline.signal.aborted,
    );
    deadline.cancel();
    if (resting.get(key) !== asking) return;
    if (answered) resting.delete(key);
    else rest(key);
  }
  return (access) => {
    const images = open(access);
    const asker = JSON.stringify([access.registries, access.pull, access.push].map((text) => text ?? null));
    async function within<T>(image: string, signal: AbortSignal, ask: (until: AbortSignal) => Promise<T>): Promise<T> {
      const key = `${hostOfPullspec(image)} ${asker}`;
      const known = resting.get(key);
      if (known !== undefined) {
        if (known.until <= clock.monotonic()) void askAgain(key, ask);
        throw unreachable(image);
      }
      const deadline = clock.deadline(queryMs, signal);
      try {
        return await ask(deadline.signal);
      } catch (error) {
        signal.throwIfAborted();
        if (!deadline.signal.aborted) throw error;
        rest(key);
        throw unreachable(image, error);
      } finally {
        deadline.cancel();
      }
    }
    const orUnreachable = async <T>(work: Promise<T>): Promise<T | McoError> => {
      try {
        return await work;
      } catch (error) {
        if (error instanceof McoError && error.code === "MCO_IMAGE_UNREACHABLE") return error;
        throw error;
      }
    };
    return {
      resolve: (image, signal) => within(image, signal, (until) => images.resolve(image, until)),
      readFiles(image, paths, signal) {
        // Of those who judge images in another way, and of machines of another kind, each has its own.
        const key = JSON.stringify([image, asker, access.policy ?? null, access.architecture, paths]);
        return searches.find(
          { pool: access.pool, image, key },
          (until) => images.readFiles(image, paths, until),
          signal,
        );
      },
      delete: (image, signal) => within(image, signal, (until) => images.delete(image, until)),
      isWorldReadable: (repository, signal) =>
        within(repository, signal, (until) => images.isWorldReadable(repository, until)),
      async inspect(image, signal) {
        const answer = await orUnreachable(within(image, signal, (until) => images.inspect(image, until)));
        return answer instanceof McoError ? { is: "unreachable", problem: tooLate } : answer;
      },
      async mayPush(repository, signal) {
        const answer = await orUnreachable(within(repository, signal, (until) => images.mayPush(repository, until)));
        return answer instanceof McoError ? "unreachable" : answer;
      },
    };
  };
}
