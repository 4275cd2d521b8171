import { McoError } from "../api/errors.ts";
import { hostOfPullspec } from "../core/images/image-reference.ts";
import type { Clock } from "../ports/clock.ts";
import { whenAborted } from "../ports/when-aborted.ts";
import type { ImageStore } from "../registry/image-store.ts";
import type { ProxySettings } from "../registry/wire.ts";

/** The queries to registries. */
export type Images = Pick<ImageStore, "resolve" | "inspect" | "readFiles" | "delete" | "mayPush" | "isWorldReadable">;

/** Settings for queries to registries: texts in the format of a machine's files. */
export interface ImageAccess {
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
/** A search for files reads whole layers. It goes on while those who asked for it do something else. */
const searchMs = 3_600_000;
const mostSearches = 16;
/** A registry that did not answer in time is not asked again before this. */
const restMs = 60_000;
const mostResting = 256;
const tooLate = "the registry did not answer in time";

type Files = ReadonlyMap<string, Uint8Array>;
type Outcome = { readonly files: Files } | { readonly error: unknown };

interface Search {
  readonly outcome: Promise<Outcome>;
  isDone: boolean;
}

/**
 * Limits the time of each query: a registry that answers byte by byte costs its own pools a minute now and then, and holds
 * up no others. What does not answer in time is unreachable (`MCO_IMAGE_UNREACHABLE`), and so is it for those who ask the
 * same registry in the same way, for a while. A search for files has an hour, as a large layer takes on a slow line; who
 * waits for it is told that it is under way, and asks again later.
 *
 * @param stop ends searches.
 */
export function withDeadlines(open: OpenImages, clock: Clock, stop: AbortSignal): OpenImages {
  const resting = new Map<string, number>();
  const searches = new Map<string, Search>();
  const unreachable = (image: string, cause?: unknown, problem = tooLate) =>
    new McoError("MCO_IMAGE_UNREACHABLE", { image, problem, retryable: true }, { cause });
  /** Begins a search, or joins the one that is under way. */
  function search(key: string, image: string, ask: (until: AbortSignal) => Promise<Files>): Search {
    const known = searches.get(key);
    if (known !== undefined) return known;
    if (searches.size >= mostSearches) {
      const done = [...searches].find(([, { isDone }]) => isDone);
      if (done === undefined) throw unreachable(image, undefined, `${mostSearches} other images are being read`);
      searches.delete(done[0]);
    }
    const deadline = clock.deadline(searchMs, stop);
    const outcome = ask(deadline.signal)
      .then(
        (files): Outcome => ({ files }),
        (error: unknown): Outcome => ({
          error: deadline.signal.aborted && !stop.aborted ? unreachable(image, error) : error,
        }),
      )
      .finally(() => {
        deadline.cancel();
        begun.isDone = true;
      });
    const begun: Search = { outcome, isDone: false };
    searches.set(key, begun);
    return begun;
  }
  return (access) => {
    const images = open(access);
    const asker = JSON.stringify([access.registries, access.pull, access.push].map((text) => text ?? null));
    async function within<T>(
      image: string,
      milliseconds: number,
      signal: AbortSignal,
      ask: (until: AbortSignal) => Promise<T>,
    ): Promise<T> {
      const key = `${hostOfPullspec(image)} ${asker}`;
      if ((resting.get(key) ?? -Infinity) > clock.monotonic()) throw unreachable(image);
      resting.delete(key);
      const deadline = clock.deadline(milliseconds, signal);
      try {
        return await ask(deadline.signal);
      } catch (error) {
        signal.throwIfAborted();
        if (!deadline.signal.aborted) throw error;
        resting.set(key, clock.monotonic() + restMs);
        const oldest = resting.keys().next();
        if (resting.size > mostResting && oldest.done !== true) resting.delete(oldest.value);
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
      resolve: (image, signal) => within(image, queryMs, signal, (until) => images.resolve(image, until)),
      async readFiles(image, paths, signal) {
        const key = JSON.stringify([image, asker, paths]);
        const searched = search(key, image, (until) => images.readFiles(image, paths, until));
        const patience = clock.deadline(queryMs, signal);
        try {
          const found = await Promise.race([searched.outcome, whenAborted(patience.signal).then(() => undefined)]);
          signal.throwIfAborted();
          if (found === undefined) throw unreachable(image, undefined, "its layers are still being read");
          if (searches.get(key) === searched) searches.delete(key);
          if ("error" in found) throw found.error;
          return found.files;
        } finally {
          patience.cancel();
        }
      },
      delete: (image, signal) => within(image, queryMs, signal, (until) => images.delete(image, until)),
      isWorldReadable: (repository, signal) =>
        within(repository, queryMs, signal, (until) => images.isWorldReadable(repository, until)),
      async inspect(image, signal) {
        const answer = await orUnreachable(within(image, queryMs, signal, (until) => images.inspect(image, until)));
        return answer instanceof McoError ? { is: "unreachable", problem: tooLate } : answer;
      },
      async mayPush(repository, signal) {
        const answer = await orUnreachable(
          within(repository, queryMs, signal, (until) => images.mayPush(repository, until)),
        );
        return answer instanceof McoError ? "unreachable" : answer;
      },
    };
  };
}
