import type { Clock } from "../../ports/clock.ts";
import type { HttpHandler, HttpRequest, HttpResponse } from "../../ports/http.ts";
import { linkedSignal } from "../../ports/linked-signal.ts";
import type { Logger } from "../../ports/logger.ts";
import type { Random } from "../../ports/random.ts";
import { admissionChain } from "./admission/admission.ts";
import { admissionPolicyPlugin } from "./admission/admission-policies.ts";
import { admissionWebhooks, type WebhookCaller } from "./admission/admission-webhooks.ts";
import {
  anonymous,
  authenticate,
  type AuthenticationOptions,
  impersonated,
  bringsUnverified,
  type Peer,
} from "./access/authentication.ts";
import { accessDenied, authorizer, impersonationChecks } from "./access/authorization.ts";
import { noTurns, type OwnTurns, type UserTurns } from "./access/exchange.ts";
import { writeFirstObjects, type FirstObjectsOptions } from "./bootstrap.ts";
import {
  namespaceLifecycle,
  nodeTaint,
  podPriority,
  podServiceAccount,
  podTolerations,
} from "./admission/built-in-admission.ts";
import { catalogOf } from "./schema/kinds/catalog.ts";
import { certificateRequester, signerRights } from "./admission/certificate-requests.ts";
import { customResources, serverItself } from "./requests/custom-resources.ts";
import { type ApiDocuments, apiDocuments } from "./documents.ts";
import { attributesOf, demandedOf, ResourceRequests, type ServerParts } from "./resource-requests.ts";
import type { Engine } from "./requests/engine.ts";
import { expireEvents } from "./requests/event-expiry.ts";
import { defaultHistory, type HistoryLimits, liveObjects } from "./storage/live-objects.ts";
import { defaultRoom, type RoomLimits } from "./storage/room.ts";
import { nodeAuthorizer } from "./access/node-authorizer.ts";
import { type LogSource, readWrittenBudgets } from "./requests/pods.ts";
import { rbacIndex } from "./access/rbac-index.ts";
import { representation } from "./http/representation.ts";
import { readAhead, type ReadYaml, readYaml } from "./http/request-body.ts";
import { parseTarget } from "./http/request-target.ts";
import { shareOf } from "./schema/shares.ts";
import { policyParameters } from "./admission/policy-parameters.ts";
import { roleEscalation } from "./admission/role-escalation.ts";
import { builtinDefinitions } from "./schema/kinds/builtin-kinds.ts";
import type { AccessAttributes, Share, UserInfo } from "./schema/contract.ts";
import { tokenIssuer, type TokenKeys } from "./access/service-account-tokens.ts";
import { internalError, notServed, pageNotFound, Refusal, tooManyRequests, unforeseen } from "./schema/status.ts";
import { LongSelectors, type SelectorLimits, selectorLimits } from "./http/long-selectors.ts";
import { UnreadLines, type WatcherLimits, unreadLimits } from "./http/watch-stream.ts";
import type { Store } from "./storage/store.ts";
import { nodeRestriction } from "./admission/node-restriction.ts";

export interface ApiServerOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Signs service-account tokens; without it there are none. */
  readonly tokenKeys?: TokenKeys;
  /** `iss` of tokens. */
  readonly issuer?: string;
  /** Token → user. */
  readonly staticTokens?: Readonly<Record<string, UserInfo>>;
  readonly anonymous?: "allowed" | "refused";
  /** How admission webhooks are reached. */
  readonly webhooks?: WebhookCaller;
  /** Where the output of containers comes from. */
  readonly logs?: LogSource;
  readonly history?: HistoryLimits;
  /** How much is stored at most. */
  readonly room?: RoomLimits;
  /** Events a slow watcher may leave unread. */
  readonly watchBacklog?: number;
  /** What all watchers may leave unread. */
  readonly unread?: WatcherLimits;
  /** What the selectors of all watches may take. */
  readonly selectors?: SelectorLimits;
  readonly bootstrap?: FirstObjectsOptions;
  /** Turns of the users whose requests are answered; without them, each request is answered at once. */
  readonly turns?: UserTurns;
  /** Reads long YAML, which takes seconds; without it, that is read as any other. */
  readonly readYaml?: ReadYaml;
}

/** The sender of a request. */
export interface Caller {
  /** Or why there is none. */
  readonly user: UserInfo | Refusal;
  /** The user's share; `undefined` for strangers: what they send is not worth much memory. */
  readonly share: Share | undefined;
}

export interface ApiServer {
  /**
   * Answers one request of `peer`. Refusals are responses; rejects only when `signal` aborts.
   *
   * @param caller as {@link callerOf} has named it; absent: it is looked for.
   */
  handle(request: HttpRequest, peer: Peer, signal: AbortSignal, caller?: Caller): Promise<HttpResponse>;
  /**
   * The user whom the headers of a request, or its connection, name. A token that is to be verified, and a caller who is
   * refused, take a turn of strangers. Rejects only when `signal` aborts.
   */
  callerOf(request: Pick<HttpRequest, "headers">, peer: Peer, signal: AbortSignal): Promise<Caller>;
  /** {@link handle} for callers who are known from the start: the transport of components in the same process. */
  as(user: UserInfo): HttpHandler;
  /** Ends all watches, and the server's own work. The store stays open: it belongs to the caller. */
  close(): void;
}

const defaultIssuer = "https://kubernetes.default.svc";

/**
 * Kubernetes' API over a store. Reads the clock and sets timers only through `clock`; does I/O only through its options.
 */
export function createApiServer(options: ApiServerOptions): ApiServer {
  const { store, clock, random, log } = options;
  const live = liveObjects(store, options.history ?? defaultHistory, options.room ?? defaultRoom);
  const catalog = catalogOf(builtinDefinitions);
  const issuer = options.issuer ?? defaultIssuer;
  const tokens =
    options.tokenKeys === undefined
      ? undefined
      : tokenIssuer({ keys: options.tokenKeys, issuer, audiences: [issuer], live, clock, random });
  const authentication: AuthenticationOptions = {
    tokens,
    staticTokens: options.staticTokens ?? {},
    anonymous: options.anonymous ?? "allowed",
  };
  const rbac = rbacIndex(live);
  const access = authorizer(nodeAuthorizer(live), rbac);
  const { turns = noTurns, readYaml: read = (text) => Promise.resolve(readYaml(text)) } = options;
  const closing = new AbortController();
  const own: OwnTurns = { turn: () => turns.goOn(shareOf(serverItself), closing.signal), signal: closing.signal };
  const custom = customResources({ live, catalog, clock, log, own });
  const admission = admissionChain([
    namespaceLifecycle(live),
    certificateRequester(clock),
    podServiceAccount(live, random),
    podPriority(live),
    nodeTaint(),
    podTolerations(),
    custom.admission,
    admissionWebhooks({ live, catalog, clock, random, log, call: options.webhooks }),
    nodeRestriction(live, access),
    signerRights(access),
    roleEscalation(live, rbac, access),
    policyParameters(live, () => catalog, access),
    admissionPolicyPlugin(live, () => catalog),
  ]);
  const engine: Engine = {
    live,
    catalog,
    admission,
    show: representation(() => clock.now()),
    clock,
    random,
    log,
    watches: new Map(),
    unread: new UnreadLines(options.unread ?? unreadLimits),
    selectors: new LongSelectors(options.selectors ?? selectorLimits),
    ...(options.watchBacklog === undefined ? {} : { watchBacklog: options.watchBacklog }),
  };
  const documents = apiDocuments(catalog);
  writeFirstObjects(engine, options.bootstrap ?? {});
  custom.start(engine);
  expireEvents({ live, clock, log, own });
  readWrittenBudgets(live);
  const parts = { engine, access, rbac, authentication, tokens, logs: options.logs };
  return new EmbeddedServer(parts, documents, { turns, read, closing });
}

/** How users share the loop that answers all of them. */
interface SharedLoop {
  readonly turns: UserTurns;
  readonly read: ReadYaml;
  /** Ends the server's own work. */
  readonly closing: AbortController;
}

/** The connection that a request came on, and its caller if it is known already. */
interface Sender {
  readonly peer: Peer;
  readonly caller: Caller | undefined;
}

const tooManyOfYours = () => tooManyRequests("too many requests of yours wait already, please try again later", 1);

class EmbeddedServer implements ApiServer {
  readonly #parts: ServerParts;
  readonly #resources: ResourceRequests;
  readonly #documents: ApiDocuments;
  readonly #loop: SharedLoop;

  constructor(parts: ServerParts, documents: ApiDocuments, loop: SharedLoop) {
    this.#parts = parts;
    this.#loop = loop;
    this.#resources = new ResourceRequests(parts);
    this.#documents = documents;
  }

  async handle(request: HttpRequest, peer: Peer, signal: AbortSignal, caller?: Caller): Promise<HttpResponse> {
    if (request.method !== "HEAD") return this.#answer(request, { peer, caller }, signal);
    // Nobody reads the body: a watch or a log that is still to come ends here.
    const head = linkedSignal(signal);
    try {
      return { ...(await this.#answer(request, { peer, caller }, head.signal)), body: "" };
    } finally {
      head.abort(new Error("only the head was asked for"));
      head.release();
    }
  }

  async #answer(request: HttpRequest, from: Sender, signal: AbortSignal): Promise<HttpResponse> {
    const exchange = { user: anonymous, signal, warnings: [] as string[], turn: () => Promise.resolve() };
    let response: HttpResponse;
    try {
      const outcome = await this.#respond(request, from, exchange);
      response = outcome instanceof Refusal ? outcome.response() : outcome;
    } catch (error) {
      if (signal.aborted) throw error;
      this.#parts.engine.log.error(
        {
          method: request.method,
          target: request.target,
          error: error instanceof Error ? (error.stack ?? error.message) : String(error),
        },
        "request failed",
      );
      response = internalError(error instanceof Error ? error.message : String(error)).response();
    }
    if (exchange.warnings.length > 0)
      response = { ...response, headers: { ...response.headers, warning: warningHeaders(exchange.warnings) } };
    return response;
  }

  async callerOf(request: Pick<HttpRequest, "headers">, peer: Peer, signal: AbortSignal): Promise<Caller> {
    const { authentication } = this.#parts;
    const begin = () => this.#loop.turns.begin(shareOf(anonymous), signal);
    const isVerifiedInTurn = bringsUnverified(request, peer, authentication);
    if (isVerifiedInTurn && (await begin()) === "tooMany") return { user: tooManyOfYours(), share: undefined };
    const user = authenticate(request, peer, authentication);
    if (!(user instanceof Refusal)) return { user, share: user.name === anonymous.name ? undefined : shareOf(user) };
    if (!isVerifiedInTurn && (await begin()) === "tooMany") return { user: tooManyOfYours(), share: undefined };
    return { user, share: undefined };
  }

  as(user: UserInfo): HttpHandler {
    return (request, signal) => this.handle(request, { user }, signal);
  }

  close(): void {
    this.#loop.closing.abort(new Error("the server closes"));
    for (const watch of this.#parts.engine.watches.keys()) watch.end();
  }

  async #respond(
    request: HttpRequest,
    { peer, caller }: Sender,
    exchange: { user: UserInfo; signal: AbortSignal; warnings: string[]; turn: () => Promise<void> },
  ): Promise<HttpResponse | Refusal> {
    const { access, engine } = this.#parts;
    const { user } = caller ?? (await this.callerOf(request, peer, exchange.signal));
    if (user instanceof Refusal) return user;
    exchange.user = user;
    const share = shareOf(user);
    exchange.turn = () => this.#loop.turns.goOn(share, exchange.signal);
    if ((await this.#loop.turns.begin(share, exchange.signal)) === "tooMany") return tooManyOfYours();
    const other = impersonated(request);
    if (other === undefined && Object.keys(request.headers).some((header) => header.startsWith("impersonate-")))
      return unforeseen("requested an impersonation without naming a user");
    if (other !== undefined) {
      for (const attributes of impersonationChecks(user, other))
        if (!access.allows(attributes)) return accessDenied(attributes);
      exchange.user = other.user;
    }
    const target = parseTarget(request.method, request.target);
    if (target instanceof Refusal) return target;
    if (target.form === "path") return this.#document(request, exchange.user, target.path);
    const attributes = attributesOf(exchange.user, target);
    if (!access.allows(attributes, demandedOf(target)["spec.nodeName"])) return accessDenied(attributes);
    const find = () => engine.catalog.find(target.group, target.version, target.resource);
    const isServed = find() !== undefined;
    const readLong = async (text: string) => {
      const outcome = await this.#loop.read(text, share.of, exchange.signal);
      // What becomes of it is the user's work again.
      await exchange.turn();
      return outcome;
    };
    const read = isServed ? await readAhead(request, readLong) : request;
    // Its definition may have gone while the body was read.
    const served = find();
    if (served === undefined) return handledGroup(target.group) ? notServed() : pageNotFound();
    return this.#resources.serve(read, served, target, { ...exchange, share });
  }

  /** Discovery, OpenAPI, health and other paths that are no resources. */
  #document(request: HttpRequest, user: UserInfo, path: string): HttpResponse | Refusal {
    const attributes: AccessAttributes = {
      user,
      verb: request.method.toLowerCase(),
      group: "",
      resource: "",
      subresource: "",
      namespace: "",
      name: "",
      path,
    };
    if (!this.#parts.access.allows(attributes)) return accessDenied(attributes);
    return (
      this.#documents.answer(request, path) ??
      (/^\/(?:api|apis\/[^/]+)\/[^/]+\/?$/.test(path) &&
      handledGroup(path.startsWith("/api/") ? "" : (path.split("/")[2] ?? ""))
        ? notServed()
        : pageNotFound())
    );
  }
}

/** Groups of built-in kinds answer for resources that they do not serve; custom groups leave that to the last handler. */
function handledGroup(group: string): boolean {
  return builtinDefinitions.some((definition) => definition.group === group);
}

/** Bytes of all warnings together, as `k8s.io/apiserver pkg/endpoints/filters/warning.go (master)` bounds them. */
const warningLimit = 4_096;

function warningHeaders(texts: readonly string[]): readonly string[] {
  const headers: string[] = [];
  let length = 0;
  for (const text of new Set(texts)) {
    // Header lines hold no control characters; quotes and backslashes are escaped (RFC 7234 §5.5).
    const line = `299 - "${text.replaceAll(/\p{Cc}+/gu, " ").replaceAll(/["\\]/g, (character) => `\\${character}`)}"`;
    length += line.length;
    if (length > warningLimit) break;
    headers.push(line);
  }
  return headers;
}
