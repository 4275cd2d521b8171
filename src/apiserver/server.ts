import type { Clock } from "../ports/clock.ts";
import type { HttpHandler, HttpRequest, HttpResponse } from "../ports/http.ts";
import type { Logger } from "../ports/logger.ts";
import type { Random } from "../ports/random.ts";
import { admissionChain } from "./admission/admission.ts";
import { admissionPolicies } from "./admission/admission-policies.ts";
import { admissionWebhooks, type WebhookCaller } from "./admission/admission-webhooks.ts";
import {
  anonymous,
  authenticate,
  type AuthenticationOptions,
  impersonated,
  type Peer,
} from "./access/authentication.ts";
import { accessDenied, authorizer, impersonationChecks } from "./access/authorization.ts";
import { bootstrap, type BootstrapOptions } from "./bootstrap.ts";
import {
  namespaceLifecycle,
  nodeTaint,
  podPriority,
  podServiceAccount,
  podTolerations,
} from "./admission/built-in-admission.ts";
import { catalogOf } from "./schema/kinds/catalog.ts";
import { certificateRequester, signerRights } from "./admission/certificate-requests.ts";
import { customResources } from "./requests/custom-resources.ts";
import { deleteObject } from "./requests/deletes.ts";
import { apiDocuments } from "./documents.ts";
import type { Engine } from "./requests/engine.ts";
import { expireEvents } from "./storage/event-expiry.ts";
import { defaultHistory, type HistoryLimits, liveObjects } from "./storage/live-objects.ts";
import { nodeAuthorizer } from "./access/node-authorizer.ts";
import { checkPatchType, patchObject } from "./requests/patch-object.ts";
import { bindPod, evictPod, type LogSource, podLog } from "./requests/pods.ts";
import { rbacIndex } from "./access/rbac-index.ts";
import { getObject, listObjects, selectionOf, watchObjects } from "./requests/reads.ts";
import { negotiate, objectResponse, representation } from "./http/representation.ts";
import { bodyObject, duplicateFields } from "./http/request-body.ts";
import { parseTarget, type ResourceTarget } from "./http/request-target.ts";
import { reviews } from "./requests/reviews.ts";
import { roleEscalation } from "./admission/role-escalation.ts";
import { serveScale } from "./requests/scale.ts";
import { builtinDefinitions } from "./schema/kinds/builtin-kinds.ts";
import type { AccessAttributes, UserInfo, Served } from "./schema/contract.ts";
import { tokenIssuer, type TokenKeys } from "./access/service-account-tokens.ts";
import {
  groupResource,
  internalError,
  jsonResponse,
  methodNotAllowed,
  notFound,
  notServed,
  pageNotFound,
  Refusal,
  success,
  unforeseen,
} from "./schema/status.ts";
import type { Store } from "./storage/store.ts";
import { requestToken } from "./requests/token-request.ts";
import { readDeleteOptions, readWriteOptions } from "./http/write-options.ts";
import {
  checkIdentity,
  createObject,
  decode,
  mayCreateByUpdate,
  modifyObject,
  nameless,
  type WriteContext,
  type Written,
} from "./requests/writes.ts";
import type { Exchange } from "./access/exchange.ts";
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
  /** Events a slow watcher may leave unread. */
  readonly watchBacklog?: number;
  readonly bootstrap?: BootstrapOptions;
}

export interface ApiServer {
  /** Answers one request of `peer`. Refusals are responses; rejects only when `signal` aborts. */
  handle(request: HttpRequest, peer: Peer, signal: AbortSignal): Promise<HttpResponse>;
  /** {@link handle} for callers who are known from the start: the transport of components in the same process. */
  as(user: UserInfo): HttpHandler;
  /** Ends all watches. The store stays open: it belongs to the caller. */
  close(): void;
}

const defaultIssuer = "https://kubernetes.default.svc";

/**
 * Kubernetes' API over a store. Reads no clock and sets no timer but through `clock`; no I/O but through what is passed
 * in.
 */
export function createApiServer(options: ApiServerOptions): ApiServer {
  const { store, clock, random, log } = options;
  const live = liveObjects(store, options.history ?? defaultHistory);
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
  const custom = customResources({ live, catalog, clock, log });
  const admission = admissionChain([
    namespaceLifecycle(live),
    certificateRequester(clock),
    podServiceAccount(live, random),
    podPriority(live),
    nodeTaint(),
    podTolerations(),
    custom.admission,
    admissionWebhooks({ live, clock, random, log, call: options.webhooks }),
    nodeRestriction(live),
    signerRights(access),
    roleEscalation(live, rbac, access),
    admissionPolicies(live, () => catalog),
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
    ...(options.watchBacklog === undefined ? {} : { watchBacklog: options.watchBacklog }),
  };
  const documents = apiDocuments(catalog);
  bootstrap(engine, options.bootstrap ?? {});
  custom.start(engine);
  expireEvents(live, clock);

  async function respond(
    request: HttpRequest,
    peer: Peer,
    exchange: { user: UserInfo; signal: AbortSignal; warnings: string[] },
  ): Promise<HttpResponse | Refusal> {
    const user = authenticate(request, peer, authentication);
    if (user instanceof Refusal) return user;
    exchange.user = user;
    const other = impersonated(request);
    if (other === undefined && Object.keys(request.headers).some((header) => header.startsWith("impersonate-")))
      return unforeseen("requested to be somebody else without saying which user");
    if (other !== undefined) {
      for (const attributes of impersonationChecks(user, other))
        if (!access.allows(attributes)) return accessDenied(attributes);
      exchange.user = other;
    }
    const target = parseTarget(request.method, request.target);
    if (target instanceof Refusal) return target;
    if (target.form === "path") {
      const attributes: AccessAttributes = {
        user: exchange.user,
        verb: request.method.toLowerCase(),
        group: "",
        resource: "",
        subresource: "",
        namespace: "",
        name: "",
        path: target.path,
      };
      if (!access.allows(attributes)) return accessDenied(attributes);
      return (
        documents.answer(request, target.path) ??
        (/^\/(?:api|apis\/[^/]+)\/[^/]+\/?$/.test(target.path) &&
        handledGroup(target.path.startsWith("/api/") ? "" : (target.path.split("/")[2] ?? ""))
          ? notServed()
          : pageNotFound())
      );
    }
    const attributes = attributesOf(exchange.user, target);
    if (!access.allows(attributes, selectorValue(target, "spec.nodeName"))) return accessDenied(attributes);
    const served = catalog.find(target.group, target.version, target.resource);
    if (served === undefined) return handledGroup(target.group) ? notServed() : pageNotFound();
    return serve(request, served, target, exchange);
  }

  /** Groups of built-in kinds answer for themselves what they have not; custom ones leave it to the last handler. */
  function handledGroup(group: string): boolean {
    return builtinDefinitions.some((definition) => definition.group === group);
  }

  async function serve(
    request: HttpRequest,
    served: Served,
    target: ResourceTarget,
    exchange: Exchange,
  ): Promise<HttpResponse | Refusal> {
    const { definition } = served;
    const { verb, subresource } = target;
    const allowed =
      subresource === "" ? definition.verbs : definition.subresources.find(({ name }) => name === subresource)?.verbs;
    if (allowed === undefined) return definition.custom ? notFound(definition, target.name) : notServed();
    if (!allowed.includes(verb)) return methodNotAllowed();
    if (target.name === "" && (verb === "update" || verb === "patch")) return methodNotAllowed();
    const inNamespace = target.namespace !== "" && served.stored !== "namespaces";
    const wholeCluster = verb === "list" || verb === "watch";
    if (
      definition.namespaced
        ? !inNamespace && !wholeCluster && target.resource !== "localsubjectaccessreviews"
        : inNamespace
    )
      return definition.custom ? pageNotFound() : notServed();

    switch (verb) {
      case "get": {
        if (subresource === "log") return podLog(contextOf(served, target, exchange), options.logs);
        if (subresource === "scale") return serveScale(contextOf(served, target, exchange), request);
        return getObject(engine, served, target, request);
      }
      case "list":
        return listObjects(engine, served, target, request);
      case "watch":
        return watchObjects(engine, served, target, request, exchange.signal);
      case "create":
        return create(request, served, target, exchange);
      case "update":
      case "patch":
        return change(request, served, target, exchange);
      case "delete":
        return remove(request, served, target, exchange);
      case "deletecollection":
        return removeAll(request, served, target, exchange);
    }
  }

  function contextOf(served: Served, target: ResourceTarget, exchange: Exchange): WriteContext {
    return {
      engine,
      exchange,
      served,
      target,
      options: { manager: "unknown", dryRun: false, fieldValidation: "Ignore", force: false },
    };
  }

  async function create(
    request: HttpRequest,
    served: Served,
    target: ResourceTarget,
    exchange: Exchange,
  ): Promise<HttpResponse | Refusal> {
    const writeOptions = readWriteOptions(request, target.query, "CreateOptions");
    if (writeOptions instanceof Refusal) return writeOptions;
    const context: WriteContext = { engine, exchange, served, target, options: writeOptions };
    switch (target.subresource) {
      case "eviction":
        return evictPod(context, request);
      case "binding":
        return bindPod(context, request);
      case "token":
        return requestToken(context, request, tokens);
      case "":
        break;
      default:
        return methodNotAllowed();
    }
    if (target.name !== "") return methodNotAllowed();
    const body = bodyObject(request, served.definition.kind);
    if (body instanceof Refusal) return body;
    const review = reviews[groupResource(served.definition)];
    if (review !== undefined) {
      const status = review(body, exchange.user, target.namespace, { authorizer: access, rbac, authentication });
      if (status instanceof Refusal) return status;
      return jsonResponse(201, {
        kind: served.definition.kind,
        apiVersion: served.apiVersion,
        metadata: body["metadata"] ?? { creationTimestamp: null },
        ...("spec" in body ? { spec: body["spec"] } : {}),
        status,
      });
    }
    const object = checkIdentity(context, body);
    if (object instanceof Refusal) return object;
    const undecodable = decode(context, object, "body", duplicateFields(request));
    if (undecodable !== undefined) return undecodable;
    return answer(served, target, request, await createObject(context, object, "track"));
  }

  async function change(
    request: HttpRequest,
    served: Served,
    target: ResourceTarget,
    exchange: Exchange,
  ): Promise<HttpResponse | Refusal> {
    if (target.verb === "patch" && target.subresource !== "scale") {
      const unsupported = checkPatchType(served, request);
      if (unsupported !== undefined) return unsupported;
    }
    const writeOptions = readWriteOptions(
      request,
      target.query,
      target.verb === "patch" ? "PatchOptions" : "UpdateOptions",
    );
    if (writeOptions instanceof Refusal) return writeOptions;
    const mayCreate = (): Refusal | undefined => {
      const attributes = { ...attributesOf(exchange.user, target), verb: "create" };
      return access.allows(attributes) ? undefined : accessDenied(attributes);
    };
    const context: WriteContext = { engine, exchange, served, target, options: writeOptions, mayCreate };
    if (target.subresource === "scale") return serveScale(context, request);
    if (target.verb === "patch") return answer(served, target, request, await patchObject(context, request));
    const body = bodyObject(request, served.definition.kind);
    if (body instanceof Refusal) return body;
    const object = checkIdentity(context, body);
    if (object instanceof Refusal) return object;
    if ((object.metadata.name ?? "") === "") return nameless(target);
    const undecodable = decode(context, object, "body", duplicateFields(request));
    if (undecodable !== undefined) return undecodable;
    const written = await modifyObject(context, () => structuredClone(object), "decoded");
    if (written instanceof Refusal && written.code === 404 && target.subresource === "" && mayCreateByUpdate(served)) {
      const refusal = mayCreate();
      if (refusal !== undefined) return refusal;
      if ((object.metadata.name ?? target.name) !== target.name) return written;
      object.metadata.name = target.name;
      delete object.metadata.resourceVersion;
      return answer(served, target, request, await createObject(context, object, "track"));
    }
    return answer(served, target, request, written);
  }

  function answer(
    served: Served,
    target: ResourceTarget,
    request: HttpRequest,
    written: Written | Refusal,
  ): HttpResponse | Refusal {
    if (written instanceof Refusal) return written;
    const format = negotiate(request.headers["accept"], target.query);
    if (format instanceof Refusal) return format;
    return objectResponse(
      written.effect === "created" ? 201 : 200,
      engine.show.object(served, written.live, format),
      format,
    );
  }

  function deletionBody(request: HttpRequest): Record<string, unknown> | undefined | Refusal {
    if (request.body === undefined || request.body.length === 0) return undefined;
    return bodyObject(request);
  }

  async function remove(
    request: HttpRequest,
    served: Served,
    target: ResourceTarget,
    exchange: Exchange,
  ): Promise<HttpResponse | Refusal> {
    const body = deletionBody(request);
    if (body instanceof Refusal) return body;
    const deleteOptions = readDeleteOptions(body, target.query);
    if (deleteOptions instanceof Refusal) return deleteOptions;
    const written = await deleteObject(engine, exchange, served, target, deleteOptions);
    if (written instanceof Refusal) return written;
    // Of a pod that went at once the caller still learns what it was: `ReturnDeletedObject` of the real server's pod
    // store.
    if (written.effect === "removed" && served.stored !== "pods")
      return jsonResponse(200, success(served.definition, target.name, written.live.object.metadata.uid));
    const shown = answer(served, target, request, written);
    return deleteOptions.cascades && written.effect !== "removed" && !(shown instanceof Refusal)
      ? { ...shown, status: 202 }
      : shown;
  }

  async function removeAll(
    request: HttpRequest,
    served: Served,
    target: ResourceTarget,
    exchange: Exchange,
  ): Promise<HttpResponse | Refusal> {
    const selection = selectionOf(served, target);
    if (selection instanceof Refusal) return selection;
    const body = deletionBody(request);
    if (body instanceof Refusal) return body;
    const deleteOptions = readDeleteOptions(body, target.query);
    if (deleteOptions instanceof Refusal) return deleteOptions;
    const format = negotiate(request.headers["accept"], target.query);
    if (format instanceof Refusal) return format;
    const chosen = live
      .list(served.stored, served.definition.namespaced ? target.namespace : undefined)
      .filter(selection.matches);
    for (const { key } of chosen) {
      const written = await deleteObject(
        engine,
        exchange,
        served,
        { namespace: key.namespace, name: key.name, subresource: "", inCollection: true },
        deleteOptions,
      );
      if (written instanceof Refusal && written.code !== 404) return written;
    }
    return objectResponse(
      200,
      engine.show.list(served, chosen, { resourceVersion: String(live.revision()) }, format),
      format,
    );
  }

  const server: ApiServer = {
    async handle(request, peer, signal) {
      const exchange = { user: anonymous, signal, warnings: [] as string[] };
      let response: HttpResponse;
      try {
        const outcome = await respond(request, peer, exchange);
        response = outcome instanceof Refusal ? outcome.response() : outcome;
      } catch (error) {
        if (signal.aborted) throw error;
        log.error(
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
      return request.method === "HEAD" ? { ...response, body: "" } : response;
    },
    as: (user) => (request, signal) => server.handle(request, { user }, signal),
    close() {
      for (const watch of engine.watches.keys()) watch.end();
    },
  };
  return server;
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

function attributesOf(user: UserInfo, target: ResourceTarget): AccessAttributes {
  const { verb, group, resource, subresource, namespace } = target;
  const collection = verb === "list" || verb === "watch" || verb === "deletecollection";
  return {
    user,
    verb,
    group,
    resource,
    subresource,
    namespace,
    name: target.name === "" && collection ? (selectorValue(target, "metadata.name") ?? "") : target.name,
  };
}

/** The value that a field selector demands of a field. */
function selectorValue({ query }: ResourceTarget, field: string): string | undefined {
  for (const term of (query.get("fieldSelector") ?? "").split(",")) {
    const [name, value] = term.split(/==?/, 2);
    if (name === field && value !== undefined && !term.includes("!=")) return value;
  }
  return undefined;
}
