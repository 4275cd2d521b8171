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
/** Who may what, in the words of the refusal; reviews; being another; what discovery says. */
export const identityCases = exchanges([
  // what is not allowed, and in what words
  {
    title: "who may not get is told so",
    call: get("v1:pods/p", "alice"),
    status: 403,
    message: 'pods "p" is forbidden: User "alice" cannot get resource "pods" in API group "" in the namespace "{ns}"',
    has: { reason: "Forbidden", details: { name: "p", kind: "pods" } },
  },
  {
    title: "who may not list in a namespace is told so",
    call: get("v1:pods", "bob"),
    status: 403,
    message: 'pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the namespace "{ns}"',
  },
  {
    title: "who may not list everywhere is told so",
    call: get("/api/v1/pods", "bob"),
    status: 403,
    message: 'pods is forbidden: User "bob" cannot list resource "pods" in API group "" at the cluster scope',
  },
  {
    title: "who may not watch is told so",
    call: get("v1:pods?watch=true", "bob"),
    status: 403,
    message: 'pods is forbidden: User "bob" cannot watch resource "pods" in API group "" in the namespace "{ns}"',
  },
  {
    title: "who may not create is told so",
    call: ["POST", "v1:configmaps", configMap("a"), { as: "bob" }],
    status: 403,
    message:
      'configmaps is forbidden: User "bob" cannot create resource "configmaps" in API group "" in the namespace "{ns}"',
  },
  {
    title: "who may not patch is told so",
    call: ["merge", "v1:configmaps/a", {}, { as: "bob" }],
    status: 403,
    message:
      'configmaps "a" is forbidden: User "bob" cannot patch resource "configmaps" in API group "" in the namespace "{ns}"',
  },
  {
    title: "who may not delete is told so",
    call: ["DELETE", "v1:configmaps/a", undefined, { as: "bob" }],
    status: 403,
    message:
      'configmaps "a" is forbidden: User "bob" cannot delete resource "configmaps" in API group "" in the namespace "{ns}"',
  },
  {
    title: "who may not delete a collection is told so",
    call: ["DELETE", "v1:configmaps", undefined, { as: "bob" }],
    status: 403,
    message:
      'configmaps is forbidden: User "bob" cannot deletecollection resource "configmaps" in API group "" in the namespace "{ns}"',
  },
  {
    title: "who may not touch a subresource is told so",
    call: ["POST", "v1:pods/p/eviction", {}, { as: "bob" }],
    status: 403,
    message:
      'pods "p" is forbidden: User "bob" cannot create resource "pods/eviction" in API group "" in the namespace "{ns}"',
  },
  {
    title: "who may not touch another group is told so",
    call: get("apps/v1:deployments/d/scale", "bob"),
    status: 403,
    message:
      'deployments.apps "d" is forbidden: User "bob" cannot get resource "deployments/scale" in API group "apps" in the namespace "{ns}"',
  },
  {
    title: "who may not ask a path is told so",
    call: get("/metrics", "bob"),
    status: 403,
    message: 'forbidden: User "bob" cannot get path "/metrics"',
  },
  {
    title: "nobody may not ask for discovery",
    call: get("/apis", "nobody"),
    status: 403,
    message: 'forbidden: User "system:anonymous" cannot get path "/apis"',
  },
  { title: "nobody may ask for health", call: get("/livez", "nobody"), status: 200, text: "ok" },
  {
    title: "everybody known may ask for discovery",
    call: get("/apis", "bob"),
    status: 200,
    has: { kind: "APIGroupList" },
  },
  { title: "everybody known may ask for the version", call: get("/version", "bob"), status: 200, has: { major: "1" } },
  {
    title: "a kubelet may not list secrets",
    call: get("v1:secrets", "node-a"),
    status: 403,
    message:
      /^secrets .*is forbidden: User "system:node:node-a" cannot (list|get) resource "secrets" in API group "" in the namespace "\{ns\}"/,
    has: { reason: "Forbidden" },
  },
  {
    title: "a kubelet may not read another's secret",
    before: [["POST", "v1:secrets", { apiVersion: "v1", kind: "Secret", metadata: { name: "s" } }]],
    call: get("v1:secrets/s", "node-a"),
    status: 403,
    message:
      /^secrets .*is forbidden: User "system:node:node-a" cannot (list|get) resource "secrets" in API group "" in the namespace "\{ns\}"/,
    has: { reason: "Forbidden" },
  },
  // reviews
  {
    title: "a review of oneself says no",
    call: review("SelfSubjectAccessReview", { resourceAttributes: pods }, undefined, "alice"),
    status: 201,
    has: { kind: "SelfSubjectAccessReview", "spec.resourceAttributes.verb": "get", status: { allowed: false } },
  },
  {
    title: "a review of oneself says yes",
    call: review("SelfSubjectAccessReview", { resourceAttributes: pods }),
    status: 201,
    has: { "status.allowed": true },
  },
  {
    title: "a review of oneself speaks of paths",
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
    title: "a review of another says no",
    call: review("SubjectAccessReview", { user: "carol", resourceAttributes: pods }),
    status: 201,
    has: { "status.allowed": false },
  },
  {
    title: "a review of another goes by groups",
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
    title: "a review asks of one thing",
    call: review("SubjectAccessReview", { user: "carol" }),
    status: 422,
    message:
      '.authorization.k8s.io "" is invalid: spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified',
    causes: ["FieldValueInvalid spec.resourceAttributes"],
  },
  {
    title: "a review asks of one thing, not of two",
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
    title: "a local review speaks of its namespace",
    call: local({ user: "carol", groups: ["system:masters"], resourceAttributes: pods }),
    status: 201,
    has: { "status.allowed": true },
  },
  {
    title: "a local review speaks of no other namespace",
    call: local({ user: "carol", resourceAttributes: { ...pods, namespace: "default" } }),
    status: 422,
    message:
      '.authorization.k8s.io "" is invalid: spec.resourceAttributes.namespace: Invalid value: "default": must match metadata.namespace',
    causes: ["FieldValueInvalid spec.resourceAttributes.namespace"],
  },
  {
    title: "a local review speaks of no paths",
    call: local({ user: "carol", nonResourceAttributes: { verb: "get", path: "/" } }),
    status: 422,
    message:
      '.authorization.k8s.io "" is invalid: spec.nonResourceAttributes: Invalid value: {"Path":"/","Verb":"get"}: disallowed on this kind of request',
    causes: ["FieldValueInvalid spec.nonResourceAttributes"],
  },
  {
    title: "who may not review others is told so",
    call: review("SubjectAccessReview", { user: "carol", resourceAttributes: pods }, undefined, "alice"),
    status: 403,
    message:
      'subjectaccessreviews.authorization.k8s.io is forbidden: User "alice" cannot create resource "subjectaccessreviews" in API group "authorization.k8s.io" at the cluster scope',
  },
  {
    title: "a role opens what it names",
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
    title: "a review of rules has a namespace",
    call: [
      "POST",
      `${authorization}/selfsubjectrulesreviews`,
      { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectRulesReview", spec: {} },
    ],
    status: 400,
    message: "no namespace on request",
  },
  {
    title: "a token that is none is nobody's",
    call: [
      "POST",
      `${authentication}/tokenreviews`,
      { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: { token: "rubbish" } },
    ],
    status: 201,
    has: { "status.authenticated": undefined, "status.user": {} },
  },
  {
    title: "a review of a token has one",
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
    title: "another user is everybody known",
    call: who({ "impersonate-user": "carol" }),
    status: 201,
    has: { "status.userInfo": { username: "carol", groups: ["system:authenticated"] } },
  },
  {
    title: "another user has the groups that are named",
    call: who({ "impersonate-user": "carol", "impersonate-group": "painters" }),
    status: 201,
    has: { "status.userInfo": { username: "carol", groups: ["painters", "system:authenticated"] } },
  },
  {
    title: "another user has a uid and more",
    call: who({ "impersonate-user": "carol", "impersonate-uid": "7", "impersonate-extra-colour": "red" }),
    status: 201,
    has: {
      "status.userInfo": { username: "carol", uid: "7", groups: ["system:authenticated"], extra: { colour: ["red"] } },
    },
  },
  {
    title: "another service account has its groups",
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
    title: "nobody can be another",
    call: who({ "impersonate-user": "system:anonymous" }),
    status: 403,
    message:
      'selfsubjectreviews.authentication.k8s.io is forbidden: User "system:anonymous" cannot create resource "selfsubjectreviews" in API group "authentication.k8s.io" at the cluster scope',
    has: { "status.userInfo": undefined },
  },
  { title: "groups without a user are refused", call: who({ "impersonate-group": "painters" }), status: 500 },
  {
    title: "who may not be another user is told so",
    call: who({ "impersonate-user": "carol" }, "alice"),
    status: 403,
    message:
      'users "carol" is forbidden: User "alice" cannot impersonate resource "users" in API group "" at the cluster scope',
  },
  {
    title: "who may not be a service account is told so",
    call: who({ "impersonate-user": "system:serviceaccount:{ns}:robot" }, "alice"),
    status: 403,
    message:
      'serviceaccounts "robot" is forbidden: User "alice" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "{ns}"',
  },
  {
    title: "who does not prove who it is is nobody",
    call: who({}, "nobody"),
    status: 403,
    message:
      'selfsubjectreviews.authentication.k8s.io is forbidden: User "system:anonymous" cannot create resource "selfsubjectreviews" in API group "authentication.k8s.io" at the cluster scope',
    has: { reason: "Forbidden" },
  },
  {
    title: "a token that is none is refused",
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
    title: "discovery of a version that is none answers 404",
    call: ["GET", "/apis/apps/v9"],
    status: 404,
    message: "the server could not find the requested resource",
  },
]);
