import type { Json } from "../api-target.ts";
import { type Call, exchanges } from "./exchange.ts";
import { configMap } from "./case-fixture.ts";
const authorization = "/apis/authorization.k8s.io/v1";
const pods = { verb: "get", resource: "pods", namespace: "{ns}" };
const review = (
  kind: string,
  spec: Json,
  path = `${authorization}/${kind.toLowerCase()}s`,
  as?: "alice" | "node-a",
): Call => ["POST", path, { apiVersion: "authorization.k8s.io/v1", kind, spec }, as === undefined ? {} : { as }];
const local = (spec: Json): Call =>
  review("LocalSubjectAccessReview", spec, "authorization.k8s.io/v1:localsubjectaccessreviews");
const authentication = "/apis/authentication.k8s.io/v1";
const who = (headers: Record<string, string>, as?: "alice" | "nobody"): Call => [
  "POST",
  `${authentication}/selfsubjectreviews`,
  { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" },
  { headers, ...(as === undefined ? {} : { as }) },
];
const get = (path: string, as: "alice" | "bob" | "nobody" | "node-a"): Call => ["GET", path, undefined, { as }];
/** Access: the messages of refusals, reviews, impersonation, and discovery. */
export const identityCases = exchanges([
  // refusals and their messages
  {
    title: "a get without the right is refused",
    call: get("v1:pods/p", "alice"),
    status: 403,
    message: 'pods "p" is forbidden: User "alice" cannot get resource "pods" in API group "" in the namespace "{ns}"',
    has: { reason: "Forbidden", details: { name: "p", kind: "pods" } },
  },
  {
    title: "a list in a namespace without the right is refused",
    call: get("v1:pods", "bob"),
    status: 403,
    message: 'pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the namespace "{ns}"',
  },
  {
    title: "a list of all namespaces without the right is refused",
    call: get("/api/v1/pods", "bob"),
    status: 403,
    message: 'pods is forbidden: User "bob" cannot list resource "pods" in API group "" at the cluster scope',
  },
  {
    title: "a watch without the right is refused",
    call: get("v1:pods?watch=true", "bob"),
    status: 403,
    message: 'pods is forbidden: User "bob" cannot watch resource "pods" in API group "" in the namespace "{ns}"',
  },
  {
    title: "a creation without the right is refused",
    call: ["POST", "v1:configmaps", configMap("a"), { as: "bob" }],
    status: 403,
    message:
      'configmaps is forbidden: User "bob" cannot create resource "configmaps" in API group "" in the namespace "{ns}"',
  },
  {
    title: "a patch without the right is refused",
    call: ["merge", "v1:configmaps/a", {}, { as: "bob" }],
    status: 403,
    message:
      'configmaps "a" is forbidden: User "bob" cannot patch resource "configmaps" in API group "" in the namespace "{ns}"',
  },
  {
    title: "a deletion without the right is refused",
    call: ["DELETE", "v1:configmaps/a", undefined, { as: "bob" }],
    status: 403,
    message:
      'configmaps "a" is forbidden: User "bob" cannot delete resource "configmaps" in API group "" in the namespace "{ns}"',
  },
  {
    title: "a deletion of a collection without the right is refused",
    call: ["DELETE", "v1:configmaps", undefined, { as: "bob" }],
    status: 403,
    message:
      'configmaps is forbidden: User "bob" cannot deletecollection resource "configmaps" in API group "" in the namespace "{ns}"',
  },
  {
    title: "a write to a subresource without the right is refused",
    call: ["POST", "v1:pods/p/eviction", {}, { as: "bob" }],
    status: 403,
    message:
      'pods "p" is forbidden: User "bob" cannot create resource "pods/eviction" in API group "" in the namespace "{ns}"',
  },
  {
    title: "a request in another group without the right is refused",
    call: get("apps/v1:deployments/d/scale", "bob"),
    status: 403,
    message:
      'deployments.apps "d" is forbidden: User "bob" cannot get resource "deployments/scale" in API group "apps" in the namespace "{ns}"',
  },
  {
    title: "a path without the right is refused",
    call: get("/metrics", "bob"),
    status: 403,
    message: 'forbidden: User "bob" cannot get path "/metrics"',
  },
  {
    title: "an anonymous user may not read discovery",
    call: get("/apis", "nobody"),
    status: 403,
    message: 'forbidden: User "system:anonymous" cannot get path "/apis"',
  },
  { title: "an anonymous user may read health", call: get("/livez", "nobody"), status: 200, text: "ok" },
  {
    title: "every authenticated user may read discovery",
    call: get("/apis", "bob"),
    status: 200,
    has: { kind: "APIGroupList" },
  },
  {
    title: "every authenticated user may read the version",
    call: get("/version", "bob"),
    status: 200,
    has: { major: "1" },
  },
  {
    title: "a kubelet may not list secrets",
    call: get("v1:secrets", "node-a"),
    status: 403,
    message:
      /^secrets .*is forbidden: User "system:node:node-a" cannot (list|get) resource "secrets" in API group "" in the namespace "\{ns\}"/,
    has: { reason: "Forbidden" },
  },
  {
    title: "a kubelet may not read the secret of another node's pod",
    before: [["POST", "v1:secrets", { apiVersion: "v1", kind: "Secret", metadata: { name: "s" } }]],
    call: get("v1:secrets/s", "node-a"),
    status: 403,
    message:
      /^secrets .*is forbidden: User "system:node:node-a" cannot (list|get) resource "secrets" in API group "" in the namespace "\{ns\}"/,
    has: { reason: "Forbidden" },
  },
  // reviews
  {
    title: "a self review answers no",
    call: review("SelfSubjectAccessReview", { resourceAttributes: pods }, undefined, "alice"),
    status: 201,
    has: { kind: "SelfSubjectAccessReview", "spec.resourceAttributes.verb": "get", status: { allowed: false } },
  },
  {
    title: "a self review answers yes",
    call: review("SelfSubjectAccessReview", { resourceAttributes: pods }),
    status: 201,
    has: { "status.allowed": true },
  },
  {
    title: "a self review covers paths",
    call: review(
      "SelfSubjectAccessReview",
      { nonResourceAttributes: { verb: "get", path: "/version" } },
      undefined,
      "alice",
    ),
    status: 201,
    has: { "status.allowed": true },
  },
  {
    title: "a review of another user answers no",
    call: review("SubjectAccessReview", { user: "carol", resourceAttributes: pods }),
    status: 201,
    has: { "status.allowed": false },
  },
  {
    title: "a review of another user considers groups",
    call: review("SubjectAccessReview", { user: "carol", groups: ["system:masters"], resourceAttributes: pods }),
    status: 201,
    has: { "status.allowed": true },
  },
  {
    title: "a review names a user or a group",
    call: review("SubjectAccessReview", { resourceAttributes: pods }),
    status: 422,
    message:
      '.authorization.k8s.io "" is invalid: spec.user: Invalid value: "": at least one of user or group must be specified',
    causes: ["FieldValueInvalid spec.user"],
  },
  {
    title: "a review has a resource or a path",
    call: review("SubjectAccessReview", { user: "carol" }),
    status: 422,
    message:
      '.authorization.k8s.io "" is invalid: spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified',
    causes: ["FieldValueInvalid spec.resourceAttributes"],
  },
  {
    title: "a review has not both a resource and a path",
    call: review("SubjectAccessReview", {
      user: "carol",
      resourceAttributes: pods,
      nonResourceAttributes: { verb: "get", path: "/" },
    }),
    status: 422,
    message:
      '.authorization.k8s.io "" is invalid: spec.nonResourceAttributes: Invalid value: {"Path":"/","Verb":"get"}: cannot be specified in combination with resourceAttributes',
    causes: ["FieldValueInvalid spec.nonResourceAttributes"],
  },
  {
    title: "a local review covers its namespace",
    call: local({ user: "carol", groups: ["system:masters"], resourceAttributes: pods }),
    status: 201,
    has: { "status.allowed": true },
  },
  {
    title: "a local review covers no other namespace",
    call: local({ user: "carol", resourceAttributes: { ...pods, namespace: "default" } }),
    status: 422,
    message:
      '.authorization.k8s.io "" is invalid: spec.resourceAttributes.namespace: Invalid value: "default": must match metadata.namespace',
    causes: ["FieldValueInvalid spec.resourceAttributes.namespace"],
  },
  {
    title: "a local review covers no paths",
    call: local({ user: "carol", nonResourceAttributes: { verb: "get", path: "/" } }),
    status: 422,
    message:
      '.authorization.k8s.io "" is invalid: spec.nonResourceAttributes: Invalid value: {"Path":"/","Verb":"get"}: disallowed on this kind of request',
    causes: ["FieldValueInvalid spec.nonResourceAttributes"],
  },
  {
    title: "a review of others without the right is refused",
    call: review("SubjectAccessReview", { user: "carol", resourceAttributes: pods }, undefined, "alice"),
    status: 403,
    message:
      'subjectaccessreviews.authorization.k8s.io is forbidden: User "alice" cannot create resource "subjectaccessreviews" in API group "authorization.k8s.io" at the cluster scope',
  },
  {
    title: "a role grants what it names",
    before: [
      [
        "POST",
        "rbac.authorization.k8s.io/v1:roles",
        {
          apiVersion: "rbac.authorization.k8s.io/v1",
          kind: "Role",
          metadata: { name: "r" },
          rules: [{ apiGroups: [""], resources: ["pods"], resourceNames: ["p"], verbs: ["get"] }],
        },
      ],
      [
        "POST",
        "rbac.authorization.k8s.io/v1:rolebindings",
        {
          apiVersion: "rbac.authorization.k8s.io/v1",
          kind: "RoleBinding",
          metadata: { name: "b" },
          roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "r" },
          subjects: [{ kind: "User", name: "carol", apiGroup: "rbac.authorization.k8s.io" }],
        },
      ],
    ],
    call: review("SubjectAccessReview", { user: "carol", resourceAttributes: { ...pods, name: "q" } }),
    status: 201,
    has: { "status.allowed": false },
  },
  {
    title: "a rules review has a namespace",
    call: [
      "POST",
      `${authorization}/selfsubjectrulesreviews`,
      { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectRulesReview", spec: {} },
    ],
    status: 400,
    message: "no namespace on request",
  },
  {
    title: "an invalid token authenticates no user",
    call: [
      "POST",
      `${authentication}/tokenreviews`,
      { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: { token: "rubbish" } },
    ],
    status: 201,
    has: { "status.authenticated": undefined, "status.user": {} },
  },
  {
    title: "a token review has a token",
    call: [
      "POST",
      `${authentication}/tokenreviews`,
      { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: {} },
    ],
    status: 400,
    message: "token is required for TokenReview in authentication",
  },
  // impersonation
  {
    title: "an impersonated user is an authenticated user",
    call: who({ "impersonate-user": "carol" }),
    status: 201,
    has: { "status.userInfo": { username: "carol", groups: ["system:authenticated"] } },
  },
  {
    title: "an impersonated user has the named groups",
    call: who({ "impersonate-user": "carol", "impersonate-group": "painters" }),
    status: 201,
    has: { "status.userInfo": { username: "carol", groups: ["painters", "system:authenticated"] } },
  },
  {
    title: "an impersonated user has a uid and extra values",
    call: who({ "impersonate-user": "carol", "impersonate-uid": "7", "impersonate-extra-colour": "red" }),
    status: 201,
    has: {
      "status.userInfo": { username: "carol", uid: "7", groups: ["system:authenticated"], extra: { colour: ["red"] } },
    },
  },
  {
    title: "an impersonated service account has its groups",
    call: who({ "impersonate-user": "system:serviceaccount:{ns}:robot" }),
    status: 201,
    has: {
      "status.userInfo": {
        username: "system:serviceaccount:{ns}:robot",
        groups: ["system:serviceaccounts", "system:serviceaccounts:{ns}", "system:authenticated"],
      },
    },
  },
  {
    title: "an anonymous user cannot impersonate another",
    call: who({ "impersonate-user": "system:anonymous" }),
    status: 403,
    message:
      'selfsubjectreviews.authentication.k8s.io is forbidden: User "system:anonymous" cannot create resource "selfsubjectreviews" in API group "authentication.k8s.io" at the cluster scope',
    has: { "status.userInfo": undefined },
  },
  { title: "groups without a user are refused", call: who({ "impersonate-group": "painters" }), status: 500 },
  {
    title: "impersonation of a user without the right is refused",
    call: who({ "impersonate-user": "carol" }, "alice"),
    status: 403,
    message:
      'users "carol" is forbidden: User "alice" cannot impersonate resource "users" in API group "" at the cluster scope',
  },
  {
    title: "impersonation of a service account without the right is refused",
    call: who({ "impersonate-user": "system:serviceaccount:{ns}:robot" }, "alice"),
    status: 403,
    message:
      'serviceaccounts "robot" is forbidden: User "alice" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "{ns}"',
  },
  {
    title: "a request without credentials is anonymous",
    call: who({}, "nobody"),
    status: 403,
    message:
      'selfsubjectreviews.authentication.k8s.io is forbidden: User "system:anonymous" cannot create resource "selfsubjectreviews" in API group "authentication.k8s.io" at the cluster scope',
    has: { reason: "Forbidden" },
  },
  {
    title: "an invalid token is refused",
    call: ["GET", "v1:pods", undefined, { as: "nobody", headers: { authorization: "Bearer rubbish" } }],
    status: 401,
    message: "Unauthorized",
    has: { reason: "Unauthorized" },
  },
  // documents
  {
    title: "discovery names a kind's verbs",
    call: ["GET", "/apis/policy/v1"],
    status: 200,
    has: {
      kind: "APIResourceList",
      groupVersion: "policy/v1",
      "resources.0.name": "poddisruptionbudgets",
      "resources.0.singularName": "poddisruptionbudget",
      "resources.0.namespaced": true,
      "resources.0.kind": "PodDisruptionBudget",
      "resources.0.shortNames": ["pdb"],
      "resources.1.name": "poddisruptionbudgets/status",
    },
  },
  {
    title: "discovery of a custom group names its version",
    call: ["GET", "/apis/contract.example.com"],
    status: 200,
    has: {
      kind: "APIGroup",
      name: "contract.example.com",
      versions: [{ groupVersion: "contract.example.com/v1", version: "v1" }],
      preferredVersion: { groupVersion: "contract.example.com/v1", version: "v1" },
    },
  },
  {
    title: "discovery of a group has its preferred version",
    call: ["GET", "/apis/apps"],
    status: 200,
    has: {
      name: "apps",
      versions: [{ groupVersion: "apps/v1", version: "v1" }],
      preferredVersion: { groupVersion: "apps/v1", version: "v1" },
    },
  },
  {
    title: "discovery of an unknown version answers 404",
    call: ["GET", "/apis/apps/v9"],
    status: 404,
    message: "the server could not find the requested resource",
  },
]);
