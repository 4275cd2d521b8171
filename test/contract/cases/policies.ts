import type { Json } from "../api-target.ts";
import { type Call, exchanges } from "./exchange.ts";
import { looked } from "./fixtures.ts";
import { configMap } from "./case-fixture.ts";
const at = "v1:configmaps";
const group = "/apis/admissionregistration.k8s.io/v1";
const meta = { apiVersion: "admissionregistration.k8s.io/v1", metadata: { name: "{ns}" } };
const rules = [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] }];
const policy = (spec: Json): Call => [
  "POST",
  `${group}/validatingadmissionpolicies?dryRun=All`,
  {
    ...meta,
    kind: "ValidatingAdmissionPolicy",
    spec: { matchConstraints: { resourceRules: rules }, validations: [{ expression: "true" }], ...spec },
  },
];
const binding = (spec: Json): Call => [
  "POST",
  `${group}/validatingadmissionpolicybindings?dryRun=All`,
  {
    ...meta,
    kind: "ValidatingAdmissionPolicyBinding",
    spec: { policyName: "some", validationActions: ["Deny"], ...spec },
  },
];
const webhook = (more: Json): Call => [
  "POST",
  `${group}/validatingwebhookconfigurations?dryRun=All`,
  {
    ...meta,
    kind: "ValidatingWebhookConfiguration",
    webhooks: [
      {
        name: "a.example.com",
        clientConfig: { url: "https://127.0.0.1:1/x" },
        rules,
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
        ...more,
      },
    ],
  },
];
/**
 * What policies refuse, warn about and allow, and which policies, bindings and webhooks are refused. The policies are
 * those of fixtures.ts.
 */
export const policyCases = exchanges([
  {
    title: "a refusal of a policy shows its expression",
    call: ["POST", at, looked("plain", { a: "1", b: "2" })],
    status: 422,
    message:
      "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'contract-plain' with binding 'contract-plain' denied request: failed expression: object.data.size() < 2",
    causes: [""],
  },
  {
    title: "a policy admits what it allows",
    call: ["POST", at, looked("plain", { a: "1" })],
    status: 201,
    has: { data: { a: "1" } },
  },
  {
    title: "a policy ignores what it does not match",
    call: ["POST", at, configMap("a", { a: "1", b: "2" })],
    status: 201,
    has: { data: { a: "1", b: "2" } },
  },
  {
    title: "a policy refuses with its message",
    call: ["POST", at, looked("message", { bad: "1" })],
    status: 422,
    message:
      "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'contract-message' with binding 'contract-message' denied request: nothing bad",
    causes: [""],
  },
  {
    title: "a policy refuses an update",
    before: [["POST", at, looked("message", { good: "1" })]],
    call: ["merge", `${at}/a`, { data: { bad: "1" } }],
    status: 422,
    message:
      "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'contract-message' with binding 'contract-message' denied request: nothing bad",
    causes: [""],
  },
  {
    title: "a policy refuses an apply",
    call: ["apply", `${at}/a?fieldManager=me`, looked("message", { bad: "1" })],
    status: 422,
    message:
      "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'contract-message' with binding 'contract-message' denied request: nothing bad",
    causes: [""],
  },
  {
    title: "a policy's message is an expression's value",
    call: ["POST", at, looked("expression", { bad: "wolf" })],
    status: 422,
    message:
      "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'contract-expression' with binding 'contract-expression' denied request: bad is wolf",
    causes: [""],
  },
  {
    title: "a policy's reason decides the status",
    call: ["POST", at, looked("reason")],
    status: 413,
    message:
      "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'contract-reason' with binding 'contract-reason' denied request: no",
    causes: [""],
  },
  {
    title: "a policy's first refusal is reported",
    call: ["POST", at, looked("several", { other: "1" })],
    status: 422,
    message:
      "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'contract-several' with binding 'contract-several' denied request: one is missing",
    causes: [""],
  },
  {
    title: "a policy's second validation refuses too",
    call: ["POST", at, looked("several", { one: "1" })],
    status: 422,
    message:
      "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'contract-several' with binding 'contract-several' denied request: two is missing",
    causes: [""],
  },
  {
    title: "a policy has variables that build on each other",
    call: ["POST", at, looked("variables", { a: "1", b: "2" })],
    status: 422,
    message:
      "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'contract-variables' with binding 'contract-variables' denied request: has 2",
    causes: [""],
  },
  {
    title: "a policy's match conditions exclude requests",
    call: ["POST", at, looked("conditions", { exempt: "1" })],
    status: 201,
    has: { data: { exempt: "1" } },
  },
  {
    title: "a policy's match conditions leave other requests to the policy",
    call: ["POST", at, looked("conditions", { other: "1" })],
    status: 422,
    message:
      "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'contract-conditions' with binding 'contract-conditions' denied request: not exempt",
    causes: [""],
  },
  {
    title: "a policy sees the old object",
    before: [["POST", at, looked("old", { a: "1" })]],
    call: ["merge", `${at}/a`, { data: { a: "2" } }],
    status: 422,
    message:
      "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'contract-old' with binding 'contract-old' denied request: data are frozen",
    causes: [""],
  },
  {
    title: "a policy sees the user and the operation",
    call: ["POST", at, looked("user", { a: "1" })],
    status: 201,
    has: { data: { a: "1" } },
  },
  {
    title: "a policy sees the namespace and the kind",
    call: ["POST", at, looked("home", { a: "1" })],
    status: 201,
    has: { data: { a: "1" } },
  },
  {
    title: "a policy's match conditions do not know the namespace",
    call: ["POST", at, looked("homeless", { a: "1" })],
    status: 422,
    message:
      "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'contract-homeless' with binding 'contract-homeless' denied request: expression 'has(namespaceObject.metadata.name)' resulted in error: no such key: metadata",
    causes: [""],
  },
  {
    title: "a policy sees a dry run",
    call: ["POST", `${at}?dryRun=All`, looked("dry", { a: "1" })],
    status: 422,
    message:
      "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'contract-dry' with binding 'contract-dry' denied request: not dry",
    causes: [""],
  },
  {
    title: "an expression that fails refuses the request with failurePolicy Fail",
    call: ["POST", at, looked("fails", { a: "1" })],
    status: 422,
    message:
      "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'contract-fails' with binding 'contract-fails' denied request: expression 'object.data.ghost == 'x'' resulted in error: no such key: ghost",
    causes: [""],
  },
  {
    title: "an expression that fails is ignored with failurePolicy Ignore",
    call: ["POST", at, looked("ignores", { a: "1" })],
    status: 201,
    has: { data: { a: "1" } },
  },
  {
    title: "a policy with the action Warn admits and warns",
    call: ["POST", at, looked("warns", { a: "1" })],
    status: 201,
    has: { data: { a: "1" } },
    warnings: [
      "Validation failed for ValidatingAdmissionPolicy 'contract-warns' with binding 'contract-warns': mind this",
    ],
  },
  {
    title: "a policy with the action Audit admits without a warning",
    call: ["POST", at, looked("audits", { a: "1" })],
    status: 201,
    has: { data: { a: "1" } },
  },
  {
    title: "a policy with the actions Warn and Audit warns",
    call: ["POST", at, looked("both", { a: "1" })],
    status: 201,
    has: { data: { a: "1" } },
    warnings: ["Validation failed for ValidatingAdmissionPolicy 'contract-both' with binding 'contract-both': twice"],
  },
  {
    title: "a binding narrows what a policy matches",
    call: ["POST", at, looked("narrow", { a: "1" })],
    status: 201,
    has: { data: { a: "1" } },
  },
  {
    title: "a binding leaves other requests to the policy",
    call: ["POST", at, configMap("a", {}, { labels: { policy: "narrow", narrow: "yes" } })],
    status: 422,
    message:
      "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'contract-narrow' with binding 'contract-narrow' denied request: narrowed",
    causes: [""],
  },
  {
    title: "a policy has parameters",
    call: ["POST", at, looked("params", { a: "1", b: "2", c: "3" })],
    status: 422,
    message:
      "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'contract-params' with binding 'contract-params' denied request: at most 2",
    causes: [""],
  },
  {
    title: "a policy with parameters admits what they allow",
    call: ["POST", at, looked("params", { a: "1", b: "2" })],
    status: 201,
    has: { data: { a: "1", b: "2" } },
  },
  {
    title: "missing parameters refuse the request with parameterNotFoundAction Deny",
    call: ["POST", at, looked("paramless", { a: "1" })],
    status: 422,
    message:
      "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'contract-paramless' with binding 'contract-paramless' denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
    causes: [""],
  },
  {
    title: "missing parameters are ignored with parameterNotFoundAction Allow",
    call: ["POST", at, looked("paramfree", { a: "1" })],
    status: 201,
    has: { data: { a: "1" } },
  },
  {
    title: "parameters are selected by labels",
    call: ["POST", at, looked("selected", { 2: "1" })],
    status: 422,
    message:
      "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'contract-selected' with binding 'contract-selected' denied request: not 2",
    causes: [""],
  },
  {
    title: "a policy refuses a deletion",
    before: [["POST", at, looked("deletes", { keep: "yes" })]],
    call: ["DELETE", `${at}/a`],
    status: 422,
    message:
      "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'contract-deletes' with binding 'contract-deletes' denied request: is kept",
    causes: [""],
  },
  {
    title: "a policy refuses the deletion of a collection, and sees no name",
    before: [["POST", at, looked("deletes", { keep: "yes" })]],
    call: ["DELETE", `${at}?fieldSelector=metadata.name%3Da`],
    status: 422,
    message:
      "configmaps \"Unknown\" is forbidden: ValidatingAdmissionPolicy 'contract-deletes' with binding 'contract-deletes' denied request: is kept",
    causes: [""],
  },
  {
    title: "a policy admits a deletion",
    before: [["POST", at, looked("deletes", { keep: "no" })]],
    call: ["DELETE", `${at}/a`],
    status: 200,
    has: { status: "Success" },
  },
  // the validation of policies
  {
    title: "a policy needs match constraints",
    call: [
      "POST",
      `${group}/validatingadmissionpolicies?dryRun=All`,
      { ...meta, kind: "ValidatingAdmissionPolicy", spec: { validations: [{ expression: "true" }] } },
    ],
    status: 422,
    message:
      'ValidatingAdmissionPolicy.admissionregistration.k8s.io "{ns}" is invalid: spec.matchConstraints: Required value',
    causes: ["FieldValueRequired spec.matchConstraints"],
  },
  {
    title: "a policy needs validations",
    call: policy({ validations: [] }),
    status: 422,
    message:
      /^ValidatingAdmissionPolicy\.admissionregistration\.k8s\.io "\{ns\}" is invalid: \[spec\.validations: Required value: validations or auditAnnotations must cont/,
    causes: ["FieldValueRequired spec.validations", "FieldValueRequired spec.auditAnnotations"],
  },
  {
    title: "a policy's expression is not empty",
    call: policy({ validations: [{ expression: "" }] }),
    status: 422,
    message:
      'ValidatingAdmissionPolicy.admissionregistration.k8s.io "{ns}" is invalid: spec.validations[0].expression: Required value: expression is not specified',
    causes: ["FieldValueRequired spec.validations[0].expression"],
  },
  {
    title: "a policy's expression must compile",
    call: policy({ validations: [{ expression: "object." }] }),
    status: 422,
    message:
      /^ValidatingAdmissionPolicy\.admissionregistration\.k8s\.io "\{ns\}" is invalid: spec\.validations\[0\]\.expression: Invalid value: "object\.": compilation failed: ERROR: <input>:1:/,
    causes: ["FieldValueInvalid spec.validations[0].expression"],
  },
  {
    title: "a policy's expression is true or false",
    call: policy({ validations: [{ expression: "'yes'" }] }),
    status: 422,
    message:
      'ValidatingAdmissionPolicy.admissionregistration.k8s.io "{ns}" is invalid: spec.validations[0].expression: Invalid value: "\'yes\'": must evaluate to bool but got string',
    causes: ["FieldValueInvalid spec.validations[0].expression"],
  },
  {
    title: "a policy's reason is one of a few",
    call: policy({ validations: [{ expression: "true", reason: "Unauthorized" }] }),
    status: 422,
    message:
      'ValidatingAdmissionPolicy.admissionregistration.k8s.io "{ns}" is invalid: spec.validations[0].reason: Unsupported value: "Unauthorized": supported values: "Forbidden", "Invalid", "RequestEntityTooLarge"',
    causes: ["FieldValueNotSupported spec.validations[0].reason"],
  },
  {
    title: "a policy's failurePolicy is one of two",
    call: policy({ failurePolicy: "Perhaps" }),
    status: 422,
    message:
      'ValidatingAdmissionPolicy.admissionregistration.k8s.io "{ns}" is invalid: spec.failurePolicy: Unsupported value: "Perhaps": supported values: "Fail", "Ignore"',
    causes: ["FieldValueNotSupported spec.failurePolicy"],
  },
  {
    title: "a policy's variable has a name",
    call: policy({ variables: [{ name: "a b", expression: "1" }] }),
    status: 422,
    message:
      'ValidatingAdmissionPolicy.admissionregistration.k8s.io "{ns}" is invalid: spec.variables[0].name: Invalid value: "a b": must be a valid CEL identifier',
    causes: ["FieldValueInvalid spec.variables[0].name"],
  },
  {
    title: "a policy's expression knows its variables only",
    call: policy({ validations: [{ expression: "variables.ghost == 1" }] }),
    status: 422,
    message:
      /^ValidatingAdmissionPolicy\.admissionregistration\.k8s\.io "\{ns\}" is invalid: spec\.validations\[0\]\.expression: Invalid value: "variables\.ghost == 1": compi/,
    causes: ["FieldValueInvalid spec.validations[0].expression"],
  },
  {
    title: "a policy's expression without parameters has none",
    call: policy({ validations: [{ expression: "params.a == 1" }] }),
    status: 422,
    message:
      "ValidatingAdmissionPolicy.admissionregistration.k8s.io \"{ns}\" is invalid: spec.validations[0].expression: Invalid value: \"params.a == 1\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n | params.a == 1\n | ^",
    causes: ["FieldValueInvalid spec.validations[0].expression"],
  },
  {
    title: "a policy's conditions have names that differ",
    call: policy({
      matchConditions: [
        { name: "a", expression: "true" },
        { name: "a", expression: "true" },
      ],
    }),
    status: 422,
    message:
      'ValidatingAdmissionPolicy.admissionregistration.k8s.io "{ns}" is invalid: spec.matchConditions[1].name: Duplicate value: "a"',
    causes: ["FieldValueDuplicate spec.matchConditions[1].name"],
  },
  {
    title: "a policy gets defaults",
    call: policy({}),
    status: 201,
    has: {
      "spec.failurePolicy": "Fail",
      "spec.matchConstraints": {
        namespaceSelector: {},
        objectSelector: {},
        resourceRules: [
          { operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"], scope: "*" },
        ],
        matchPolicy: "Equivalent",
      },
      "spec.validations": [{ expression: "true" }],
      "metadata.generation": 1,
    },
  },
  {
    title: "a binding has actions",
    call: binding({ validationActions: [] }),
    status: 422,
    message:
      'ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io "{ns}" is invalid: spec.validationActions: Required value: at least one validation action is required',
    causes: ["FieldValueRequired spec.validationActions"],
  },
  {
    title: "a binding's action is one of three",
    call: binding({ validationActions: ["Shout"] }),
    status: 422,
    message:
      'ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io "{ns}" is invalid: spec.validationActions[0]: Unsupported value: "Shout": supported values: "Audit", "Deny", "Warn"',
    causes: ["FieldValueNotSupported spec.validationActions[0]"],
  },
  {
    title: "a binding does not both deny and warn",
    call: binding({ validationActions: ["Deny", "Warn"] }),
    status: 422,
    message:
      /^ValidatingAdmissionPolicyBinding\.admissionregistration\.k8s\.io "\{ns\}" is invalid: spec\.validationActions: Invalid value: \["Deny","Warn"\]: must not cont/,
    causes: ["FieldValueInvalid spec.validationActions"],
  },
  {
    title: "a binding names a policy",
    call: binding({ policyName: "" }),
    status: 422,
    message:
      'ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io "{ns}" is invalid: spec.policyName: Required value',
    causes: ["FieldValueRequired spec.policyName"],
  },
  {
    title: "a binding's parameters are named or selected",
    call: binding({ paramRef: { name: "a", selector: {}, parameterNotFoundAction: "Deny" } }),
    status: 422,
    message:
      'ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io "{ns}" is invalid: [spec.paramRef.name: Forbidden: name and selector are mutually exclusive, spec.paramRef.selector: Forbidden: name and selector are mutually exclusive]',
    causes: ["FieldValueForbidden spec.paramRef.name", "FieldValueForbidden spec.paramRef.selector"],
  },
  {
    title: "a binding states the action for missing parameters",
    call: binding({ paramRef: { name: "a" } }),
    status: 422,
    message:
      'ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io "{ns}" is invalid: spec.paramRef.parameterNotFoundAction: Required value',
    causes: ["FieldValueRequired spec.paramRef.parameterNotFoundAction"],
  },
  {
    title: "a webhook gets defaults",
    call: webhook({}),
    status: 201,
    has: {
      "webhooks.0.failurePolicy": "Fail",
      "webhooks.0.matchPolicy": "Equivalent",
      "webhooks.0.timeoutSeconds": 10,
      "webhooks.0.namespaceSelector": {},
      "webhooks.0.rules": [
        { operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"], scope: "*" },
      ],
    },
  },
  {
    title: "a webhook's name is a domain",
    call: webhook({ name: "short" }),
    status: 422,
    message:
      'ValidatingWebhookConfiguration.admissionregistration.k8s.io "{ns}" is invalid: webhooks[0].name: Invalid value: "short": should be a domain with at least three segments separated by dots',
    causes: ["FieldValueInvalid webhooks[0].name"],
  },
  {
    title: "a webhook's side effects are none",
    call: webhook({ sideEffects: "Some" }),
    status: 422,
    message:
      'ValidatingWebhookConfiguration.admissionregistration.k8s.io "{ns}" is invalid: webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"',
    causes: ["FieldValueNotSupported webhooks[0].sideEffects"],
  },
  {
    title: "a webhook names a version of reviews",
    call: webhook({ admissionReviewVersions: [] }),
    status: 422,
    message:
      'ValidatingWebhookConfiguration.admissionregistration.k8s.io "{ns}" is invalid: webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1',
    causes: ["FieldValueRequired webhooks[0].admissionReviewVersions"],
  },
  {
    title: "a webhook names a known version of reviews",
    call: webhook({ admissionReviewVersions: ["v7"] }),
    status: 422,
    message:
      'ValidatingWebhookConfiguration.admissionregistration.k8s.io "{ns}" is invalid: webhooks[0].admissionReviewVersions: Invalid value: ["v7"]: must include at least one of v1, v1beta1',
    causes: ["FieldValueInvalid webhooks[0].admissionReviewVersions"],
  },
  {
    title: "a webhook is called over TLS",
    call: webhook({ clientConfig: { url: "http://127.0.0.1/x" } }),
    status: 422,
    message:
      'ValidatingWebhookConfiguration.admissionregistration.k8s.io "{ns}" is invalid: webhooks[0].clientConfig.url: Invalid value: "http": \'https\' is the only allowed URL scheme; desired format: https://host[/path]',
    causes: ["FieldValueInvalid webhooks[0].clientConfig.url"],
  },
  {
    title: "a webhook's URL names no user",
    call: webhook({ clientConfig: { url: "https://me@127.0.0.1/x" } }),
    status: 422,
    message:
      'ValidatingWebhookConfiguration.admissionregistration.k8s.io "{ns}" is invalid: webhooks[0].clientConfig.url: Invalid value: "me": user information is not permitted in the URL',
    causes: ["FieldValueInvalid webhooks[0].clientConfig.url"],
  },
  {
    title: "a webhook has a service or a URL, not both",
    call: webhook({ clientConfig: { url: "https://127.0.0.1/x", service: { name: "a", namespace: "b" } } }),
    status: 422,
    message:
      'ValidatingWebhookConfiguration.admissionregistration.k8s.io "{ns}" is invalid: webhooks[0].clientConfig: Required value: exactly one of url or service is required',
    causes: ["FieldValueRequired webhooks[0].clientConfig"],
  },
  {
    title: "a webhook's timeout is thirty seconds at most",
    call: webhook({ timeoutSeconds: 31 }),
    status: 422,
    message:
      'ValidatingWebhookConfiguration.admissionregistration.k8s.io "{ns}" is invalid: webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds',
    causes: ["FieldValueInvalid webhooks[0].timeoutSeconds"],
  },
  {
    title: "a webhook's rules have operations",
    call: webhook({ rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["READ"], resources: ["pods"] }] }),
    status: 422,
    message:
      'ValidatingWebhookConfiguration.admissionregistration.k8s.io "{ns}" is invalid: webhooks[0].rules[0].operations[0]: Unsupported value: "READ": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"',
    causes: ["FieldValueNotSupported webhooks[0].rules[0].operations[0]"],
  },
]);
