import type { HttpRequest, HttpResponse } from "../../../ports/http.ts";
import { bodyObject } from "../http/request-body.ts";
import { isObject } from "../schema/json-values.ts";
import type { TokenIssuer } from "../access/service-account-tokens.ts";
import { badRequest, conflict, invalid, jsonResponse, notFound, notServed, Refusal } from "../schema/status.ts";
import type { WriteContext } from "./writes.ts";
import { timestamp } from "../schema/timestamp.ts";

const tokenRequestKind = { group: "authentication.k8s.io", kind: "TokenRequest" };
/** `k8s.io/kubernetes pkg/apis/authentication/validation (master)` */
const leastSeconds = 600;
const mostSeconds = 2 ** 32;
const defaultSeconds = 3_600;

/** POST …/serviceaccounts/x/token */
export async function requestToken(
  context: WriteContext,
  request: HttpRequest,
  issuer: TokenIssuer | undefined,
): Promise<HttpResponse | Refusal> {
  const { engine, exchange, served, target } = context;
  if (issuer === undefined) return notServed();
  const body = bodyObject(request);
  if (body instanceof Refusal) return body;
  const spec = isObject(body["spec"]) ? body["spec"] : {};
  const account = engine.live.get({
    resource: "serviceaccounts",
    namespace: target.namespace,
    name: target.name,
  })?.object;
  if (account === undefined) return notFound(served.definition, target.name);

  const seconds = spec["expirationSeconds"] ?? defaultSeconds;
  if (typeof seconds !== "number" || !Number.isInteger(seconds))
    return badRequest("spec.expirationSeconds must be an integer");
  const bad = (message: string) =>
    invalid(tokenRequestKind, "", [
      {
        reason: "FieldValueInvalid",
        field: "spec.expirationSeconds",
        message: `Invalid value: ${seconds}: ${message}`,
      },
    ]);
  if (seconds < leastSeconds) return bad("may not specify a duration less than 10 minutes");
  if (seconds > mostSeconds) return bad("may not specify a duration larger than 2^32 seconds");

  const bound = isObject(spec["boundObjectRef"]) ? spec["boundObjectRef"] : undefined;
  const kind = bound?.["kind"];
  const name = typeof bound?.["name"] === "string" ? bound["name"] : "";
  if (bound !== undefined && kind !== "Pod" && kind !== "Secret" && kind !== "Node")
    return badRequest(
      `cannot bind token to object of type /${typeof bound["apiVersion"] === "string" ? bound["apiVersion"] : ""}, Kind=${String(kind)}`,
    );
  const resource = kind === "Secret" ? "secrets" : kind === "Node" ? "nodes" : "pods";
  const object =
    bound === undefined
      ? undefined
      : engine.live.get({ resource, namespace: kind === "Node" ? "" : target.namespace, name })?.object;
  if (bound !== undefined && object === undefined) return notFound({ group: "", plural: resource }, name);
  const uid = bound?.["uid"];
  if (object !== undefined && typeof uid === "string" && uid !== "" && uid !== object.metadata.uid) {
    return conflict(
      { group: "", plural: resource },
      name,
      `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`,
    );
  }
  const pod = kind === "Pod" ? object : undefined;
  if (pod !== undefined && !(isObject(pod["spec"]) && pod["spec"]["serviceAccountName"] === target.name)) {
    return badRequest(
      `cannot bind token for serviceaccount ${JSON.stringify(target.name)} to pod running with different serviceaccount name.`,
    );
  }

  const tokenRequest = {
    ...body,
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    metadata: { name: target.name, namespace: target.namespace },
  };
  const objection = await engine.admission.validate(
    {
      operation: "CREATE",
      served,
      subresource: "token",
      namespace: target.namespace,
      name: target.name,
      object: tokenRequest,
      before: undefined,
      dryRun: context.options.dryRun,
      options: { kind: "CreateOptions", apiVersion: "meta.k8s.io/v1" },
    },
    exchange,
  );
  if (objection !== undefined) return objection;

  const audiences = Array.isArray(spec["audiences"]) ? spec["audiences"].map(String) : [];
  const issued = issuer.issue({
    serviceAccount: account,
    audiences,
    expirationSeconds: seconds,
    pod,
    secret: kind === "Secret" ? object : undefined,
    node: kind === "Node" ? object : undefined,
  });
  return jsonResponse(201, {
    kind: "TokenRequest",
    apiVersion: "authentication.k8s.io/v1",
    metadata: {
      name: target.name,
      namespace: target.namespace,
      uid: account.metadata.uid,
      creationTimestamp: timestamp(engine.clock.now()),
    },
    spec: {
      audiences: audiences.length > 0 ? audiences : issuer.audiences,
      expirationSeconds: seconds,
      boundObjectRef: bound ?? null,
    },
    status: { token: issued.token, expirationTimestamp: timestamp(issued.expiresAtMs) },
  });
}
