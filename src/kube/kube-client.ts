import { McoError } from "../api/errors.ts";
import type { KubeObject, Resource } from "../api/schema/object.ts";
import type { Pod } from "../api/foreign/kubernetes.ts";
import { type Clock, DeadlineExceeded } from "../ports/clock.ts";
import { AnswerTooLong, type HttpHandler, type HttpRequest, type HttpResponse } from "../ports/http.ts";
import { linkedSignal } from "../ports/linked-signal.ts";
import type { Random } from "../ports/random.ts";
import { hasPatch, itemPatch } from "./item-patch.ts";
import {
  KubeError,
  type KubeStatus,
  isBusy,
  isConflict,
  isExpired,
  isRefusal,
  retryAfterMs,
  unlessNotFound,
} from "./kube-error.ts";
import { OwnWrites } from "./own-writes.ts";
import type { Patch } from "./patch.ts";

export interface ObjectKey {
  readonly name: string;
  readonly namespace?: string;
}

export interface Selection {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

interface ListOptions<T> {
  readonly keep?: (object: T) => T | undefined;
  readonly metadataOnly?: boolean;
  readonly most?: number;
}

export interface ListResult<T> {
  readonly items: readonly T[];
  readonly resourceVersion: string;
}

export type WatchEvent<T> =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: T }
  | { readonly type: "BOOKMARK"; readonly object: { readonly metadata: { readonly resourceVersion: string } } };

export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  /** `true`: dry run; the server validates and answers but stores nothing. */
  readonly dryRun?: boolean;
}

export interface ApplyOptions extends RequestOptions {
  /** Field manager: one per writer, from `names.fieldManagers`. */
  readonly owner: string;
  /** Takes fields over from other managers. Only for named legacy managers. */
  readonly force?: boolean;
  readonly subresource?: "status";
}

export interface PatchOptions extends RequestOptions {
  readonly subresource?: "status" | "scale" | "approval";
  readonly owner?: string;
}

export interface DeleteOptions extends RequestOptions {
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly propagation?: "Background" | "Foreground" | "Orphan";
  readonly gracePeriodSeconds?: number;
}

/** Called with warnings of an answer (`Warning` headers), without code and quotes. */
export type WarningListener = (warning: string) => void;

/**
 * The API server, typed by `Resource`. Every method rejects with {@link KubeError} if the server refuses and with
 * `MCO_KUBE_REQUEST_FAILED` if it is unreachable. If a busy server sends `Retry-After`, the client retries within the
 * time limit of the request.
 */
export interface KubeClient {
  /** `undefined` if the object does not exist. */
  get<T extends KubeObject>(resource: Resource<T>, key: ObjectKey, options?: RequestOptions): Promise<T | undefined>;
  /**
   * Follows `continue` to the end. What clients write into their objects is read in pages of bounded size.
   *
   * @param options `keep` transforms each object as soon as its page is read, so that no more than that is in memory;
   *   `undefined` leaves it out.
   *   `metadataOnly`: the server leaves all of each object away but its metadata. `most`: the list ends with so many
   *   objects, and further pages are not read.
   */
  list<T extends KubeObject>(
    resource: Resource<T>,
    selection?: Selection,
    options?: RequestOptions & ListOptions<T>,
  ): Promise<ListResult<T>>;
  /**
   * Events from `resourceVersion` on, bookmarks included. Ends when the server ends it; throws on an ERROR event (410
   * as `isExpired`).
   */
  watch<T extends KubeObject>(
    resource: Resource<T>,
    selection: Selection,
    from: { readonly resourceVersion: string; readonly timeoutSeconds: number },
    signal: AbortSignal,
  ): AsyncIterable<WatchEvent<T>>;
  create<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options?: RequestOptions & { readonly owner?: string },
  ): Promise<T>;
  /** PUT. `metadata.resourceVersion` of the object makes it conditional. */
  replace<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options?: RequestOptions & { readonly owner?: string; readonly subresource?: "status" },
  ): Promise<T>;
  patch<T extends KubeObject>(resource: Resource<T>, key: ObjectKey, patch: Patch, options?: PatchOptions): Promise<T>;
  /** Server-side apply: `object` contains exactly the fields that `owner` owns. */
  apply<T extends KubeObject>(
    resource: Resource<T>,
    object: DeepPartial<T> & { metadata: ObjectKey },
    options: ApplyOptions,
  ): Promise<T>;
  /** Deleting an absent object is not an error. */
  delete<T extends KubeObject>(resource: Resource<T>, key: ObjectKey, options?: DeleteOptions): Promise<void>;
  /** Evicts under disruption budgets. If a budget forbids it, rejects with 429 (`isTooManyRequests`). */
  evict(pod: Pod, options?: RequestOptions & { readonly gracePeriodSeconds?: number }): Promise<void>;
  /** A request outside the typed verbs. Returns the body as JSON, or as text if it is plain text. */
  request(request: HttpRequest, options?: RequestOptions): Promise<unknown>;
  /** Lines of a streamed answer as they arrive, such as a followed log. */
  lines(target: string, signal: AbortSignal): AsyncIterable<string>;
  /** The same client, but requests carry this signal unless they name their own. */
  within(signal: AbortSignal): KubeClient;
}

export type DeepPartial<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { [K in keyof T]?: DeepPartial<T[K]> }
    : T;

export interface KubeClientOptions {
  readonly transport: HttpHandler;
  readonly clock: Clock;
  readonly random: Random;
  readonly userAgent: string;
  /** Time limit of requests other than watches. */
  readonly requestTimeoutMs?: number;
  readonly onWarning?: WarningListener;
}

const jsonType = "application/json";
/** The media type of lists, and of the answers of other requests for many objects, that show only their metadata. */
export const metadataListType = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const patchTypes = { json: "application/json-patch+json", merge: "application/merge-patch+json" } as const;
/** Page size of lists. */
const pageSize = 500;
/**
 * Bytes of one page. Objects of tenants and nodes may have 1.5 MiB each, and a page of them could not be read at all:
 * a larger one is asked for again in smaller pages.
 */
const mostPageBytes = 64 * 1024 * 1024;
/** The same of metadata: 500 objects have a fraction of it, and a larger page takes the reader's turn for too long. */
export const mostMetadataBytes = 4 * 1024 * 1024;
const smallerPages = 8;
/** How often one request is sent at most. */
const maxAttempts = 10;

/** The URL path of a kind, an object, or a subresource of one. */
export function pathOf(
  resource: Resource,
  key: { readonly namespace?: string | undefined; readonly name?: string | undefined },
  subresource?: string,
): string {
  const base = resource.group === "" ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  const scope =
    resource.namespaced && key.namespace !== undefined && key.namespace !== ""
      ? `/namespaces/${encodeURIComponent(key.namespace)}`
      : "";
  const name = key.name === undefined ? "" : `/${encodeURIComponent(key.name)}`;
  return `${base}${scope}/${resource.plural}${name}${subresource === undefined ? "" : `/${subresource}`}`;
}

function query(parameters: Readonly<Record<string, string | undefined>>): string {
  const parts = Object.entries(parameters).flatMap(([key, value]) =>
    value === undefined || value === "" ? [] : [`${key}=${encodeURIComponent(value)}`],
  );
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

/** @throws AnswerTooLong and reads no further. */
async function textOf(body: HttpResponse["body"], most = Number.POSITIVE_INFINITY): Promise<string> {
  const within = (text: string): string => {
    if (text.length > most) throw new AnswerTooLong(most);
    return text;
  };
  if (typeof body === "string") return within(body);
  if (body instanceof Uint8Array) return within(new TextDecoder().decode(body));
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of body)
    text = within(text + (typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true })));
  return text + decoder.decode();
}

/**
 * Characters of one line of a stream: an event carries one object, of a few MiB at most, and a log of a container may be
 * one line without end.
 */
const mostLineCharacters = 16 * 1024 * 1024;

/** @throws AnswerTooLong for a line without end. */
async function* linesOf(body: HttpResponse["body"]): AsyncIterable<string> {
  if (typeof body === "string" || body instanceof Uint8Array) {
    yield* (await textOf(body)).split("\n").filter((line) => line !== "");
    return;
  }
  const decoder = new TextDecoder();
  /** The line that has not ended yet. */
  let begun: string[] = [];
  let length = 0;
  for await (const chunk of body) {
    const [first = "", ...more] = (typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true })).split(
      "\n",
    );
    begun.push(first);
    length += first.length;
    if (length > mostLineCharacters) throw new AnswerTooLong(mostLineCharacters);
    for (const next of more) {
      const line = begun.join("");
      if (line !== "") yield line;
      [begun, length] = [[next], next.length];
    }
  }
}

/** Seconds of a `Retry-After` header; Kubernetes servers send no dates. */
function retryAfterSeconds(headers: HttpResponse["headers"]): number | undefined {
  const seconds = Number(headers["retry-after"] ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds : undefined;
}

function refusal(response: Pick<HttpResponse, "status" | "headers">, text: string, request: HttpRequest): KubeError {
  let status: KubeStatus;
  try {
    status = JSON.parse(text) as KubeStatus;
    if (typeof status !== "object" || status === null) status = { message: text };
  } catch {
    status = { message: text.slice(0, 500) };
  }
  return new KubeError(
    response.status,
    status,
    `${request.method} ${request.target}`,
    retryAfterSeconds(response.headers) ?? status.details?.retryAfterSeconds,
  );
}

export const createKubeClient = (options: KubeClientOptions): KubeClient =>
  new HttpKubeClient(new KubeWire(options), undefined);

/** Requests and responses: time limits, retries, warnings. */
class KubeWire {
  readonly #options: KubeClientOptions;
  readonly #timeoutMs: number;

  constructor(options: KubeClientOptions) {
    this.#options = options;
    this.#timeoutMs = options.requestTimeoutMs ?? 30_000;
  }

  headers(contentType?: string): Record<string, string> {
    return {
      accept: jsonType,
      "user-agent": this.#options.userAgent,
      ...(contentType === undefined ? {} : { "content-type": contentType }),
    };
  }

  /**
   * A server that sends `Retry-After` has not processed the request, so any request can be retried: a few times, within
   * its time limit. All other errors go to the caller, who knows whether the request still matters.
   *
   * @throws AnswerTooLong for an answer beyond the request's `mostBytes`.
   */
  async exchange(request: HttpRequest, signal: AbortSignal | undefined): Promise<unknown> {
    const endsAt = this.#options.clock.monotonic() + this.#timeoutMs;
    const deadline = this.#options.clock.deadline(this.#timeoutMs, signal);
    try {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await this.#exchangeOnce(request, deadline.signal);
        } catch (error) {
          const wait = retryAfterMs(error);
          if (attempt >= maxAttempts || wait === 0 || !isBusy(error)) throw error;
          const spread = wait * (1 + 0.2 * this.#options.random.next());
          if (this.#options.clock.monotonic() + spread >= endsAt) throw error;
          await this.#options.clock.sleep(spread, deadline.signal);
        }
      }
    } catch (error) {
      if (error instanceof McoError || error instanceof AnswerTooLong || signal?.aborted === true) throw error;
      throw new McoError(
        "MCO_KUBE_REQUEST_FAILED",
        { request: `${request.method} ${request.target}` },
        { cause: error },
      );
    } finally {
      deadline.cancel();
    }
  }

  async #exchangeOnce(request: HttpRequest, signal: AbortSignal): Promise<unknown> {
    const response = await this.#options.transport(request, signal);
    const text = await textOf(response.body, request.mostBytes);
    this.#report(response.headers);
    if (response.status >= 300) throw refusal(response, text, request);
    if (text === "") return undefined;
    // The health paths answer in plain text.
    return String(response.headers["content-type"] ?? "").startsWith("text/plain")
      ? text
      : (JSON.parse(text) as unknown);
  }

  /**
   * The head of the answer has the usual time limit; the stream has none. The caller releases the stream when it stops
   * reading.
   */
  async openWatch(
    request: HttpRequest,
    signal: AbortSignal,
  ): Promise<{ readonly response: HttpResponse; readonly release: () => void }> {
    const opening = linkedSignal(signal);
    const cancel = this.#options.clock.after(this.#timeoutMs, () =>
      opening.abort(new DeadlineExceeded(`not begun within ${this.#timeoutMs} ms`)),
    );
    try {
      const response = await this.#options.transport(request, opening.signal);
      if (response.status < 300) return { response, release: opening.release };
      throw refusal(response, await textOf(response.body), request);
    } catch (error) {
      opening.release();
      if (error instanceof McoError || signal.aborted) throw error;
      throw new McoError("MCO_KUBE_REQUEST_FAILED", { request: `WATCH ${request.target}` }, { cause: error });
    } finally {
      cancel();
    }
  }

  #report(headers: HttpResponse["headers"]): void {
    const warnings = headers["warning"];
    if (warnings === undefined || this.#options.onWarning === undefined) return;
    for (const warning of typeof warnings === "string" ? [warnings] : warnings) {
      const text = /^\d{3} \S+ "(.*)"$/.exec(warning)?.[1];
      this.#options.onWarning(text === undefined ? warning : text.replaceAll('\\"', '"'));
    }
  }
}

const dryRun = (options: RequestOptions | undefined) => (options?.dryRun === true ? "All" : undefined);

/** The memory of updates by each client; clients within a signal share it. */
const ownWrites = new WeakMap<KubeClient, OwnWrites>();

function ownWritesOf(kube: KubeClient): OwnWrites {
  const known = ownWrites.get(kube);
  if (known !== undefined) return known;
  const writes = new OwnWrites();
  ownWrites.set(kube, writes);
  return writes;
}

/** The typed verbs. Requests that name no signal carry the client's own, if it has one. */
class HttpKubeClient implements KubeClient {
  readonly #wire: KubeWire;
  readonly #signal: AbortSignal | undefined;

  constructor(wire: KubeWire, signal: AbortSignal | undefined) {
    this.#wire = wire;
    this.#signal = signal;
  }

  get<T extends KubeObject>(resource: Resource<T>, key: ObjectKey, given?: RequestOptions): Promise<T | undefined> {
    return unlessNotFound(this.#send<T>("GET", pathOf(resource, key), undefined, given));
  }

  async list<T extends KubeObject>(
    resource: Resource<T>,
    selection: Selection = {},
    {
      keep = (object: T): T | undefined => object,
      metadataOnly = false,
      most: mostItems = Number.POSITIVE_INFINITY,
      ...given
    }: RequestOptions & ListOptions<T> = {},
  ): Promise<ListResult<T>> {
    const accept = metadataOnly ? { accept: `${metadataListType},${jsonType}` } : {};
    const mostBytes = metadataOnly ? mostMetadataBytes : mostPageBytes;
    let items: T[] = [];
    /** `undefined`: all in one piece. */
    let limit: number | undefined = pageSize;
    let next: string | undefined;
    for (;;) {
      const target =
        pathOf(resource, { namespace: selection.namespace }) +
        query({
          labelSelector: selection.labelSelector,
          fieldSelector: selection.fieldSelector,
          limit: limit === undefined ? undefined : String(limit),
          continue: next,
        });
      let page: { items: T[]; metadata: { resourceVersion: string; continue?: string } };
      try {
        const most = limit === undefined || limit === 1 ? {} : { mostBytes };
        page = (await this.request({ method: "GET", target, headers: accept, ...most }, given)) as typeof page;
      } catch (error) {
        if (error instanceof AnswerTooLong && limit !== undefined) {
          limit = Math.max(1, Math.floor(limit / smallerPages));
          continue;
        }
        // The resource version expired between two pages: list again without paging.
        if (!isExpired(error) || next === undefined) throw error;
        [items, next, limit] = [[], undefined, undefined];
        continue;
      }
      for (const item of page.items) {
        // Some servers omit kind and apiVersion from list items, and metadata alone is of a kind of its own.
        if (metadataOnly) Object.assign(item, { apiVersion: resource.apiVersion, kind: resource.kind });
        item.apiVersion ??= resource.apiVersion;
        item.kind ??= resource.kind;
        const kept = keep(item);
        if (kept !== undefined) items.push(kept);
      }
      if (limit !== undefined) limit = Math.min(pageSize, 2 * limit);
      next = page.metadata.continue;
      const { resourceVersion } = page.metadata;
      if (items.length >= mostItems) return { items: items.slice(0, mostItems), resourceVersion };
      if (next === undefined || next === "") return { items, resourceVersion };
    }
  }

  async *watch<T extends KubeObject>(
    resource: Resource<T>,
    selection: Selection,
    from: { resourceVersion: string; timeoutSeconds: number },
    signal: AbortSignal,
  ): AsyncGenerator<WatchEvent<T>> {
    const target =
      pathOf(resource, { namespace: selection.namespace }) +
      query({
        labelSelector: selection.labelSelector,
        fieldSelector: selection.fieldSelector,
        watch: "true",
        allowWatchBookmarks: "true",
        resourceVersion: from.resourceVersion,
        timeoutSeconds: String(Math.round(from.timeoutSeconds)),
      });
    const request: HttpRequest = { method: "GET", target, headers: this.#wire.headers() };
    const { response, release } = await this.#wire.openWatch(request, signal);
    try {
      for await (const line of linesOf(response.body)) {
        const event = JSON.parse(line) as WatchEvent<T> | { type: "ERROR"; object: KubeStatus };
        if (event.type === "ERROR") throw new KubeError(event.object.code ?? 500, event.object, `WATCH ${target}`);
        yield event;
      }
    } finally {
      release();
    }
  }

  create<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    given?: RequestOptions & { readonly owner?: string },
  ): Promise<T> {
    const parameters = query({ dryRun: dryRun(given), fieldManager: given?.owner });
    return this.#send("POST", pathOf(resource, { namespace: object.metadata.namespace }) + parameters, object, given);
  }

  replace<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    given?: RequestOptions & { readonly owner?: string; readonly subresource?: "status" },
  ): Promise<T> {
    const parameters = query({ dryRun: dryRun(given), fieldManager: given?.owner });
    return this.#send("PUT", pathOf(resource, object.metadata, given?.subresource) + parameters, object, given);
  }

  patch<T extends KubeObject>(resource: Resource<T>, key: ObjectKey, patch: Patch, given?: PatchOptions): Promise<T> {
    const parameters = query({ dryRun: dryRun(given), fieldManager: given?.owner });
    return this.#send(
      "PATCH",
      pathOf(resource, key, given?.subresource) + parameters,
      patch.type === "json" ? patch.operations : patch.body,
      given,
      patchTypes[patch.type],
    );
  }

  apply<T extends KubeObject>(
    resource: Resource<T>,
    object: DeepPartial<T> & { metadata: ObjectKey },
    given: ApplyOptions,
  ): Promise<T> {
    const force = given.force === true ? "true" : "false";
    const parameters = query({ fieldManager: given.owner, force, dryRun: dryRun(given) });
    return this.#send(
      "PATCH",
      pathOf(resource, object.metadata, given.subresource) + parameters,
      { ...object, apiVersion: resource.apiVersion, kind: resource.kind },
      given,
      "application/apply-patch+yaml",
    );
  }

  async delete<T extends KubeObject>(resource: Resource<T>, key: ObjectKey, given?: DeleteOptions): Promise<void> {
    const preconditions = {
      ...(given?.uid === undefined ? {} : { uid: given.uid }),
      ...(given?.resourceVersion === undefined ? {} : { resourceVersion: given.resourceVersion }),
    };
    const body = {
      apiVersion: "v1",
      kind: "DeleteOptions",
      propagationPolicy: given?.propagation ?? "Background",
      ...(given?.gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds: given.gracePeriodSeconds }),
      ...(Object.keys(preconditions).length === 0 ? {} : { preconditions }),
    };
    await unlessNotFound(this.#send("DELETE", pathOf(resource, key) + query({ dryRun: dryRun(given) }), body, given));
  }

  async evict(pod: Pod, given?: RequestOptions & { readonly gracePeriodSeconds?: number }): Promise<void> {
    const { name, namespace = "" } = pod.metadata;
    const body = {
      apiVersion: "policy/v1",
      kind: "Eviction",
      metadata: { name, namespace },
      deleteOptions: {
        ...(given?.gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds: given.gracePeriodSeconds }),
        ...(pod.metadata.uid === undefined ? {} : { preconditions: { uid: pod.metadata.uid } }),
      },
    };
    await unlessNotFound(
      this.#send(
        "POST",
        `/api/v1/namespaces/${namespace}/pods/${name}/eviction${query({ dryRun: dryRun(given) })}`,
        body,
        given,
      ),
    );
  }

  async *lines(target: string, signal: AbortSignal): AsyncGenerator<string> {
    const request: HttpRequest = { method: "GET", target, headers: this.#wire.headers() };
    const { response, release } = await this.#wire.openWatch(request, signal);
    try {
      yield* linesOf(response.body);
    } finally {
      release();
    }
  }

  request(request: HttpRequest, given?: RequestOptions): Promise<unknown> {
    return this.#wire.exchange(
      { ...request, headers: { ...this.#wire.headers(), ...request.headers } },
      given?.signal ?? this.#signal,
    );
  }

  within(signal: AbortSignal): KubeClient {
    const client = new HttpKubeClient(this.#wire, signal);
    ownWrites.set(client, ownWritesOf(this));
    return client;
  }

  /** The response is assumed to have the requested type. */
  #send<Answer>(
    method: string,
    target: string,
    body: unknown,
    given: RequestOptions | undefined,
    contentType = jsonType,
  ): Promise<Answer> {
    return this.#wire.exchange(
      {
        method,
        target,
        headers: this.#wire.headers(body === undefined ? undefined : contentType),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      },
      given?.signal ?? this.#signal,
    ) as Promise<Answer>;
  }
}

/**
 * Reads an object, lets `change` compute the new one, and writes the difference with optimistic locking; on a conflict
 * it starts again. `change` returns `undefined` to write nothing. For status lists with several writers; everything
 * else uses server-side apply. `byItem`: send only the changed items of a list, for kinds that are not Kubernetes' own.
 *
 * @returns the object afterwards, or `undefined` if it does not exist.
 */
export async function updateObject<T extends KubeObject>(
  kube: KubeClient,
  resource: Resource<T>,
  key: ObjectKey,
  change: (object: T) => Partial<T> | undefined,
  options: UpdateOptions<T> = {},
): Promise<T | undefined> {
  const decide = (object: T): Decided<T, undefined> => ({ write: change(object), decision: undefined });
  return (await updateByDecision(kube, resource, key, decide, options))?.object;
}

export interface UpdateOptions<T> {
  readonly subresource?: "status";
  readonly owner?: string;
  readonly signal?: AbortSignal;
  /** The object as a watch shows it. It is read instead where the client's own last update of it is newer, or unknown. */
  readonly cached?: T;
  readonly attempts?: number;
  readonly byItem?: boolean;
  /**
   * The clock by which a write without an answer is sent again, until its outcome is known: for callers that report their
   * writes.
   */
  readonly insists?: Pick<Clock, "monotonic" | "sleep">;
}

/** How long a write without an answer is sent again, and the pause before it is, in milliseconds. */
const insistsMs = 120_000;
const unansweredPauseMs = 1_000;

/** What a change of an object decides. */
export interface Decided<T, D> {
  /** `undefined`: nothing. */
  readonly write?: Partial<T> | undefined;
  /** The part that the caller goes on with. */
  readonly decision: D;
}

/** An object after its update. */
export interface ObjectUpdate<T, D> {
  readonly object: T;
  /** The decision about the version that was written, or that needed no write. */
  readonly decision: D;
  readonly isWritten: boolean;
}

/** Like `updateObject`, for callers that go on with the decision. @returns `undefined` if the object does not exist. */
export async function updateByDecision<T extends KubeObject, D>(
  kube: KubeClient,
  resource: Resource<T>,
  key: ObjectKey,
  decide: (object: T) => Decided<T, D>,
  options: UpdateOptions<T> = {},
): Promise<ObjectUpdate<T, D> | undefined> {
  const writes = ownWritesOf(kube);
  const path = pathOf(resource, key);
  const read = async () => {
    const present = await kube.get(resource, key, options);
    writes.see(path, present?.metadata.resourceVersion);
    return present;
  };
  const { cached } = options;
  let object = cached === undefined || writes.isBehind(path, cached.metadata.resourceVersion) ? await read() : cached;
  for (let attempt = 1; ; attempt += 1) {
    if (object === undefined) return undefined;
    const { write: changed, decision } = decide(object);
    if (changed === undefined) return { object, decision, isWritten: false };
    const body = {
      ...changed,
      metadata: { ...(changed as { metadata?: object }).metadata, resourceVersion: object.metadata.resourceVersion },
    };
    const patch: Patch =
      options.byItem === true
        ? { type: "json", operations: itemPatch(object, changed as Readonly<Record<string, unknown>>) }
        : { type: "merge", body };
    writes.begin(path);
    try {
      const written = await patchOnce(kube, resource, key, { patch, changed }, options);
      writes.see(path, written.metadata.resourceVersion);
      return { object: written, decision, isWritten: true };
    } catch (error) {
      if (isRefusal(error)) writes.see(path, object.metadata.resourceVersion);
      if (!isConflict(error) || attempt >= (options.attempts ?? 8)) throw error;
      object = await read();
    }
  }
}

/**
 * Sends a patch that names the version that it is made for. If its answer is lost, the options may have it sent again. The
 * server refuses the second request if it has carried out the first one: the present version shows that.
 *
 * @param changed the fields that the patch writes.
 */
async function patchOnce<T extends KubeObject>(
  kube: KubeClient,
  resource: Resource<T>,
  key: ObjectKey,
  { patch, changed }: { readonly patch: Patch; readonly changed: Partial<T> },
  { insists, ...options }: UpdateOptions<T>,
): Promise<T> {
  const startedAt = insists?.monotonic() ?? 0;
  /** The refusal of a patch that was sent again. */
  let conflict: KubeError | undefined;
  for (let isAgain = false; ; isAgain = true) {
    try {
      if (conflict === undefined) return await kube.patch(resource, key, patch, options);
      const version = await kube.get(resource, key, options);
      if (version !== undefined && hasPatch(version, changed)) return version;
      throw conflict;
    } catch (error) {
      if (isAgain && isConflict(error) && conflict === undefined) {
        conflict = error;
        continue;
      }
      const isLate = insists === undefined || insists.monotonic() - startedAt > insistsMs;
      if (isRefusal(error) || options.signal?.aborted === true || isLate) throw error;
      await insists.sleep(Math.max(unansweredPauseMs, retryAfterMs(error)), options.signal);
    }
  }
}
