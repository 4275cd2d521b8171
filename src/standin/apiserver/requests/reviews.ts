import { type AuthenticationOptions, userOfToken } from "../access/authentication.ts";
import type { Authorizer } from "../access/authorization.ts";
import type { RbacIndex } from "../access/rbac-index.ts";
import type { AccessAttributes, FieldError, UserInfo } from "../schema/contract.ts";
import { isObject } from "../schema/json-values.ts";
import { mastersGroup, rulesReview } from "../schema/rbac.ts";
import { invalid } from "../schema/field-errors.ts";
import { badRequest, invalid as invalidObject, Refusal } from "../schema/status.ts";

export interface ReviewDependencies {
  readonly authorizer: Authorizer;
  readonly rbac: RbacIndex;
  readonly authentication: Pick<AuthenticationOptions, "tokens" | "staticTokens">;
}

type Review = (
  body: Readonly<Record<string, unknown>>,
  user: UserInfo,
  namespace: string,
  dependencies: ReviewDependencies,
) => Readonly<Record<string, unknown>> | Refusal;

/** Reviews: objects that are created and answered, but never stored. The status of the answer, by resource. */
export const reviews: Readonly<Record<string, Review>> = {
  "selfsubjectreviews.authentication.k8s.io": (_body, user) => ({ userInfo: userInfo(user) }),

  "tokenreviews.authentication.k8s.io"(body, _user, _namespace, { authentication }) {
    const spec = part(body, "spec");
    if (typeof spec["token"] !== "string" || spec["token"] === "")
      return badRequest("token is required for TokenReview in authentication");
    const audiences = texts(spec["audiences"]);
    const found = userOfToken(spec["token"], audiences, authentication);
    if (found === undefined) return { user: {}, error: "invalid bearer token" };
    const { audiences: accepted } = found;
    return { authenticated: true, user: userInfo(found.user), ...(accepted.length > 0 ? { audiences: accepted } : {}) };
  },

  "selfsubjectaccessreviews.authorization.k8s.io": (body, user, _namespace, { authorizer }) =>
    access(part(body, "spec"), user, authorizer),

  "subjectaccessreviews.authorization.k8s.io": (body, _user, _namespace, { authorizer }) =>
    ofSubject(part(body, "spec"), authorizer),

  "localsubjectaccessreviews.authorization.k8s.io"(body, _user, namespace, { authorizer }) {
    const spec = part(body, "spec");
    const asked = part(spec, "resourceAttributes")["namespace"] ?? namespace;
    if (spec["nonResourceAttributes"] !== undefined)
      return refused(
        invalid(
          "spec.nonResourceAttributes",
          asGo(spec["nonResourceAttributes"]),
          "disallowed on this kind of request",
        ),
      );
    if (asked !== namespace)
      return refused(invalid("spec.resourceAttributes.namespace", asked, "must match metadata.namespace"));
    return ofSubject({ ...spec, resourceAttributes: { ...part(spec, "resourceAttributes"), namespace } }, authorizer);
  },

  "selfsubjectrulesreviews.authorization.k8s.io"(body, user, _namespace, { rbac }) {
    const namespace = part(body, "spec")["namespace"];
    if (typeof namespace !== "string" || namespace === "") return badRequest("no namespace on request");
    const everything = { verbs: ["*"], apiGroups: ["*"], resources: ["*"] };
    const masters = user.groups.includes(mastersGroup) ? [everything, { verbs: ["*"], nonResourceURLs: ["*"] }] : [];
    return rulesReview([...masters, ...rbac.rulesFor(user, namespace)]);
  },
};

/** The real server does not say of which kind it speaks. */
const refused = (error: FieldError): Refusal => invalidObject({ group: "authorization.k8s.io", kind: "" }, "", [error]);

/** As the real server prints its own struct. */
const asGo = (attributes: unknown): unknown =>
  isObject(attributes) ? { Path: attributes["path"] ?? "", Verb: attributes["verb"] ?? "" } : attributes;

function ofSubject(
  spec: Readonly<Record<string, unknown>>,
  authorizer: Authorizer,
): Readonly<Record<string, unknown>> | Refusal {
  const name = typeof spec["user"] === "string" ? spec["user"] : "";
  const groups = texts(spec["groups"]);
  if (name === "" && groups.length === 0)
    return refused(invalid("spec.user", "", "at least one of user or group must be specified"));
  const extra: Record<string, readonly string[]> = {};
  for (const [key, value] of Object.entries(part(spec, "extra"))) extra[key] = texts(value);
  return access(spec, { name, groups, ...(Object.keys(extra).length > 0 ? { extra } : {}) }, authorizer);
}

function access(
  spec: Readonly<Record<string, unknown>>,
  user: UserInfo,
  authorizer: Authorizer,
): Readonly<Record<string, unknown>> | Refusal {
  const text = (value: unknown) => (typeof value === "string" ? value : "");
  const resource = spec["resourceAttributes"];
  const path = spec["nonResourceAttributes"];
  if (isObject(resource) && isObject(path))
    return refused(
      invalid("spec.nonResourceAttributes", asGo(path), "cannot be specified in combination with resourceAttributes"),
    );
  if (!isObject(resource) && !isObject(path))
    return refused(
      invalid(
        "spec.resourceAttributes",
        null,
        "exactly one of nonResourceAttributes or resourceAttributes must be specified",
      ),
    );
  const asked = isObject(resource) ? resource : {};
  const attributes: AccessAttributes = {
    user,
    verb: text(isObject(path) ? path["verb"] : asked["verb"]),
    group: text(asked["group"]),
    resource: text(asked["resource"]),
    subresource: text(asked["subresource"]),
    namespace: text(asked["namespace"]),
    name: text(asked["name"]),
    ...(isObject(path) ? { path: text(path["path"]) } : {}),
  };
  return { allowed: authorizer.allows(attributes) };
}

function userInfo(user: UserInfo): Readonly<Record<string, unknown>> {
  return {
    username: user.name,
    ...(user.uid === undefined || user.uid === "" ? {} : { uid: user.uid }),
    groups: user.groups,
    ...(user.extra === undefined ? {} : { extra: user.extra }),
  };
}

function part(value: Readonly<Record<string, unknown>>, field: string): Readonly<Record<string, unknown>> {
  const found = value[field];
  return isObject(found) ? found : {};
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
