import { demandedFields } from "./schema/selectors.ts";
import type { HttpRequest, HttpResponse } from "../../ports/http.ts";
import type { AuthenticationOptions } from "./access/authentication.ts";
import { accessDenied, type Authorizer } from "./access/authorization.ts";
import type { CallerExchange, Exchange } from "./access/exchange.ts";
import type { RbacIndex } from "./access/rbac-index.ts";
import type { TokenIssuer } from "./access/service-account-tokens.ts";
import { negotiate, objectResponse } from "./http/representation.ts";
import { bodyObject, duplicateFields } from "./http/request-body.ts";
import type { ResourceTarget } from "./http/request-target.ts";
import { readDeleteOptions, readWriteOptions } from "./http/write-options.ts";
import { deleteObject, deletionsOfOneTurn } from "./requests/deletes.ts";
import type { Engine } from "./requests/engine.ts";
import { checkPatchType, patchObject } from "./requests/patch-object.ts";
import { bindPod, evictPod, type LogSource, podLog } from "./requests/pods.ts";
import { getObject, listObjects, selectionOf, watchObjects } from "./requests/reads.ts";
import { reviews } from "./requests/reviews.ts";
import { serveScale } from "./requests/scale.ts";
import { requestToken } from "./requests/token-request.ts";
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
import type { AccessAttributes, Served, UserInfo } from "./schema/contract.ts";
import {
  groupResource,
  jsonResponse,
  methodNotAllowed,
  notFound,
  notServed,
  pageNotFound,
  Refusal,
  success,
} from "./schema/status.ts";

/** What requests for resources are answered from. */
export interface ServerParts {
  readonly engine: Engine;
  readonly access: Authorizer;
  readonly rbac: RbacIndex;
  readonly authentication: AuthenticationOptions;
  readonly tokens: TokenIssuer | undefined;
  readonly logs: LogSource | undefined;
}

/** Answers requests for resources, once the requester is known to have access. */
export class ResourceRequests {
  readonly #parts: ServerParts;

  constructor(parts: ServerParts) {
    this.#parts = parts;
  }

  async serve(
    request: HttpRequest,
    served: Served,
    target: ResourceTarget,
    exchange: CallerExchange,
  ): Promise<HttpResponse | Refusal> {
    const { definition } = served;
    const { verb, subresource } = target;
    const allowed =
      subresource === "" ? definition.verbs : definition.subresources.find(({ name }) => name === subresource)?.verbs;
    if (allowed === undefined) return definition.custom ? notFound(definition, target.name) : notServed();
    if (!allowed.includes(verb)) return methodNotAllowed();
    if (target.name === "" && (verb === "update" || verb === "patch")) return methodNotAllowed();
    // `namespaces/x` lies in itself for the authorizer; below another namespace it would have that one's rights.
    const isItself = served.stored === "namespaces" && target.name === target.namespace;
    const inNamespace = target.namespace !== "" && !isItself;
    const wholeCluster = verb === "list" || verb === "watch";
    if (
      definition.namespaced
        ? !inNamespace && !wholeCluster && target.resource !== "localsubjectaccessreviews"
        : inNamespace
    )
      return definition.custom ? pageNotFound() : notServed();

    switch (verb) {
      case "get": {
        if (subresource === "log")
          return podLog(this.#contextOf(served, target, exchange), this.#parts.logs, exchange.share);
        if (subresource === "scale") return serveScale(this.#contextOf(served, target, exchange), request);
        return getObject(this.#parts.engine, served, target, request);
      }
      case "list":
        return listObjects(this.#parts.engine, served, target, request, exchange.turn);
      case "watch":
        return watchObjects(this.#parts.engine, served, target, request, exchange);
      case "create":
        return this.#create(request, served, target, exchange);
      case "update":
      case "patch":
        return this.#change(request, served, target, exchange);
      case "delete":
        return this.#remove(request, served, target, exchange);
      case "deletecollection":
        return this.#removeAll(request, served, target, exchange);
    }
  }

  #contextOf(served: Served, target: ResourceTarget, exchange: Exchange): WriteContext {
    return {
      engine: this.#parts.engine,
      exchange,
      served,
      target,
      options: { manager: "unknown", dryRun: false, fieldValidation: "Ignore", force: false },
    };
  }

  async #create(
    request: HttpRequest,
    served: Served,
    target: ResourceTarget,
    exchange: Exchange,
  ): Promise<HttpResponse | Refusal> {
    const writeOptions = readWriteOptions(request, target.query, "CreateOptions");
    if (writeOptions instanceof Refusal) return writeOptions;
    const context: WriteContext = { engine: this.#parts.engine, exchange, served, target, options: writeOptions };
    switch (target.subresource) {
      case "eviction":
        return evictPod(context, request);
      case "binding":
        return bindPod(context, request);
      case "token":
        return requestToken(context, request, this.#parts.tokens);
      case "":
        break;
      default:
        return methodNotAllowed();
    }
    if (target.name !== "") return methodNotAllowed();
    const body = bodyObject(request, served.definition.kind);
    if (body instanceof Refusal) return body;
    const { access, rbac, authentication } = this.#parts;
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
    return this.#answer(served, target, request, await createObject(context, object, "track"));
  }

  async #change(
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
      return this.#parts.access.allows(attributes) ? undefined : accessDenied(attributes);
    };
    const context: WriteContext = {
      engine: this.#parts.engine,
      exchange,
      served,
      target,
      options: writeOptions,
      mayCreate,
    };
    if (target.subresource === "scale") return serveScale(context, request);
    if (target.verb === "patch") return this.#answer(served, target, request, await patchObject(context, request));
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
      return this.#answer(served, target, request, await createObject(context, object, "track"));
    }
    return this.#answer(served, target, request, written);
  }

  #answer(
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
      this.#parts.engine.show.object(served, written.live, format),
      format,
    );
  }

  #deletionBody(request: HttpRequest): Record<string, unknown> | undefined | Refusal {
    if (request.body === undefined || request.body.length === 0) return undefined;
    return bodyObject(request);
  }

  async #remove(
    request: HttpRequest,
    served: Served,
    target: ResourceTarget,
    exchange: Exchange,
  ): Promise<HttpResponse | Refusal> {
    const body = this.#deletionBody(request);
    if (body instanceof Refusal) return body;
    const deleteOptions = readDeleteOptions(body, target.query);
    if (deleteOptions instanceof Refusal) return deleteOptions;
    const written = await deleteObject(this.#parts.engine, exchange, served, target, deleteOptions);
    if (written instanceof Refusal) return written;
    // If a pod is removed at once, the answer still contains it: `ReturnDeletedObject` of the real server's pod store.
    if (written.effect === "removed" && served.stored !== "pods")
      return jsonResponse(200, success(served.definition, target.name, written.live.object.metadata.uid));
    const shown = this.#answer(served, target, request, written);
    return deleteOptions.cascades && written.effect !== "removed" && !(shown instanceof Refusal)
      ? { ...shown, status: 202 }
      : shown;
  }

  async #removeAll(
    request: HttpRequest,
    served: Served,
    target: ResourceTarget,
    exchange: Exchange,
  ): Promise<HttpResponse | Refusal> {
    const selection = selectionOf(served, target);
    if (selection instanceof Refusal) return selection;
    const body = this.#deletionBody(request);
    if (body instanceof Refusal) return body;
    const deleteOptions = readDeleteOptions(body, target.query);
    if (deleteOptions instanceof Refusal) return deleteOptions;
    const format = negotiate(request.headers["accept"], target.query);
    if (format instanceof Refusal) return format;
    const { live } = this.#parts.engine;
    const chosen = live
      .list(served.stored, served.definition.namespaced ? target.namespace : undefined)
      .filter(selection.matches);
    for (const [index, { key }] of chosen.entries()) {
      if (index % deletionsOfOneTurn === deletionsOfOneTurn - 1) await exchange.turn();
      const written = await deleteObject(
        this.#parts.engine,
        exchange,
        served,
        { namespace: key.namespace, name: key.name, subresource: "", inCollection: true },
        deleteOptions,
      );
      if (written instanceof Refusal && written.code !== 404) return written;
    }
    const metadata = { resourceVersion: String(live.revision()) };
    const list = await this.#parts.engine.show.list(served, chosen, metadata, format, exchange.turn);
    return list === undefined
      ? jsonResponse(200, success(served.definition, "", undefined))
      : objectResponse(200, list, format);
  }
}

export function attributesOf(user: UserInfo, target: ResourceTarget): AccessAttributes {
  const { verb, group, resource, subresource, namespace } = target;
  // Not of a deletion: k8s.io/apiserver pkg/endpoints/request/requestinfo.go (v0.34).
  const collection = verb === "list" || verb === "watch";
  return {
    user,
    verb,
    group,
    resource,
    subresource,
    namespace,
    name: target.name === "" && collection ? (demandedOf(target)["metadata.name"] ?? "") : target.name,
  };
}

/** The values that a request's field selector demands of fields, as the same parser reads it that selects objects. */
export const demandedOf = ({ query }: ResourceTarget): Readonly<Record<string, string>> =>
  demandedFields(query.get("fieldSelector") ?? "");
