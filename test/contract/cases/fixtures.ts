import { expect } from "vitest";
import type { Api, Json } from "../api-target.ts";
import { configMap, core, definitions, eventually, served, widgets } from "./case-fixture.ts";

/**
 * The group of the definitions that all cases share: a real server takes seconds until it serves a new definition or
 * applies a new policy.
 */
export const sharedGroup = "contract.example.com";

/** A definition with one field for each feature of schemas and rules. */
export const checks = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `checks.${sharedGroup}` },
  spec: {
    group: sharedGroup,
    scope: "Namespaced",
    names: {
      plural: "checks",
      singular: "check",
      kind: "Check",
      listKind: "CheckList",
      shortNames: ["ck"],
      categories: ["all"],
    },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: {
          status: {},
          scale: {
            specReplicasPath: ".spec.replicas",
            statusReplicasPath: ".status.replicas",
            labelSelectorPath: ".status.selector",
          },
        },
        selectableFields: [{ jsonPath: ".spec.color" }, { jsonPath: ".spec.count" }],
        additionalPrinterColumns: [
          { name: "Text", type: "string", jsonPath: ".spec.text" },
          { name: "Count", type: "integer", jsonPath: ".spec.count" },
          { name: "Ready", type: "string", jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
          { name: "Names", type: "string", jsonPath: ".spec.entries[*].name", priority: 1 },
          { name: "Flag", type: "boolean", jsonPath: ".spec.flag" },
          { name: "Ratio", type: "number", jsonPath: ".spec.ratio", description: "A share." },
          { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
        ],
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              spec: {
                type: "object",
                properties: {
                  text: { type: "string", minLength: 2, maxLength: 10, pattern: "^[a-z]+$" },
                  count: { type: "integer", minimum: 1, maximum: 10 },
                  even: { type: "integer", multipleOf: 2 },
                  below: { type: "integer", maximum: 5, exclusiveMaximum: true },
                  small: { type: "integer", format: "int32" },
                  ratio: { type: "number" },
                  flag: { type: "boolean" },
                  color: { type: "string", enum: ["red", "green"] },
                  address: { type: "string", format: "ipv4" },
                  at: { type: "string", format: "date-time" },
                  lasting: { type: "string", format: "duration" },
                  replicas: { type: "integer" },
                  few: { type: "array", minItems: 1, maxItems: 2, items: { type: "string" } },
                  tags: { type: "array", "x-kubernetes-list-type": "set", items: { type: "string" } },
                  entries: {
                    type: "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    items: {
                      type: "object",
                      required: ["name"],
                      properties: { name: { type: "string" }, value: { type: "integer", default: 5 } },
                    },
                  },
                  options: { type: "object", maxProperties: 2, additionalProperties: { type: "string", maxLength: 3 } },
                  given: {
                    type: "object",
                    default: {},
                    properties: {
                      one: { type: "integer", default: 1 },
                      two: { type: "object", properties: { three: { type: "string", default: "3" } } },
                    },
                  },
                  maybe: { type: "string", nullable: true },
                  usually: { type: "string", default: "so" },
                  free: {
                    type: "object",
                    "x-kubernetes-preserve-unknown-fields": true,
                    properties: { known: { type: "integer" } },
                  },
                  either: { "x-kubernetes-int-or-string": true },
                  embedded: {
                    type: "object",
                    "x-kubernetes-embedded-resource": true,
                    "x-kubernetes-preserve-unknown-fields": true,
                  },
                  choice: {
                    type: "object",
                    properties: { a: { type: "string" }, b: { type: "string" } },
                    oneOf: [{ required: ["a"] }, { required: ["b"] }],
                  },
                  frozen: {
                    type: "string",
                    "x-kubernetes-validations": [{ rule: "self == oldSelf", message: "frozen may not change" }],
                  },
                  upwards: {
                    type: "integer",
                    "x-kubernetes-validations": [
                      {
                        rule: "self >= oldSelf",
                        messageExpression: "'from ' + (oldSelf > 5 ? 'high' : 'low') + ' only upwards'",
                      },
                    ],
                  },
                  first: {
                    type: "integer",
                    "x-kubernetes-validations": [
                      {
                        rule: "oldSelf.hasValue() || self == 1",
                        message: "first begins with 1",
                        optionalOldSelf: true,
                      },
                    ],
                  },
                  reasoned: {
                    type: "object",
                    properties: { x: { type: "integer" } },
                    "x-kubernetes-validations": [
                      {
                        rule: "!has(self.x) || self.x < 3",
                        message: "too much",
                        reason: "FieldValueForbidden",
                        fieldPath: ".x",
                      },
                    ],
                  },
                  plain: { type: "integer", "x-kubernetes-validations": [{ rule: "self != 13" }] },
                  unique: {
                    type: "array",
                    maxItems: 5,
                    items: { type: "string", maxLength: 10 },
                    "x-kubernetes-validations": [
                      { rule: "self.all(one, self.exists_one(other, one == other))", message: "each once" },
                    ],
                  },
                  amount: {
                    type: "string",
                    maxLength: 10,
                    "x-kubernetes-validations": [
                      { rule: "quantity(self).isLessThan(quantity('2Gi'))", message: "below 2Gi" },
                    ],
                  },
                  link: {
                    type: "string",
                    maxLength: 100,
                    "x-kubernetes-validations": [
                      { rule: "isURL(self) && url(self).getScheme() == 'https'", message: "an https URL" },
                    ],
                  },
                  within: {
                    type: "string",
                    maxLength: 20,
                    "x-kubernetes-validations": [
                      { rule: "duration(self) <= duration('1h')", message: "an hour at most" },
                    ],
                  },
                  words: {
                    type: "string",
                    maxLength: 20,
                    "x-kubernetes-validations": [
                      {
                        rule: "self.split(' ').size() <= 3 && self.lowerAscii() == self",
                        message: "three small words",
                      },
                    ],
                  },
                  broken: {
                    type: "string",
                    maxLength: 10,
                    "x-kubernetes-validations": [{ rule: "int(self) > 0", message: "above nothing" }],
                  },
                  minimum: { type: "integer" },
                  maximum: { type: "integer" },
                },
                "x-kubernetes-validations": [
                  {
                    rule: "!has(self.minimum) || !has(self.maximum) || self.minimum <= self.maximum",
                    message: "minimum is above maximum",
                    fieldPath: ".minimum",
                  },
                ],
              },
              status: {
                type: "object",
                properties: {
                  replicas: { type: "integer" },
                  selector: { type: "string" },
                  phase: { type: "string", enum: ["Good", "Bad"] },
                  conditions: {
                    type: "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                    items: {
                      type: "object",
                      required: ["type"],
                      properties: { type: { type: "string" }, status: { type: "string" } },
                    },
                  },
                },
              },
            },
            "x-kubernetes-validations": [{ rule: "self.metadata.name != 'forbidden'", message: "that name is taken" }],
          },
        },
      },
    ],
  },
};

export const check = (spec: Json = {}, name = "c") => ({
  apiVersion: `${sharedGroup}/v1`,
  kind: "Check",
  metadata: { name },
  spec,
});

/** A ConfigMap that the shared policy `name` matches. */
export const looked = (policy: string, data: Json = {}, name = "a") => configMap(name, data, { labels: { policy } });

const admissionGroup = "admissionregistration.k8s.io";

/**
 * Policies that match ConfigMaps with their name in the label `policy`; the binding of each; the last one shows that
 * all are active.
 */
const policies: readonly (readonly [name: string, spec: Json, binding?: Json])[] = [
  ["plain", { validations: [{ expression: "object.data.size() < 2" }] }],
  ["message", { validations: [{ expression: "!('bad' in object.data)", message: "nothing bad" }] }],
  [
    "expression",
    {
      validations: [
        { expression: "!('bad' in object.data)", messageExpression: "'bad is ' + object.data.bad", message: "unused" },
      ],
    },
  ],
  ["reason", { validations: [{ expression: "false", message: "no", reason: "RequestEntityTooLarge" }] }],
  [
    "several",
    {
      validations: [
        { expression: "'one' in object.data", message: "one is missing" },
        { expression: "'two' in object.data", message: "two is missing" },
      ],
    },
  ],
  [
    "variables",
    {
      variables: [
        { name: "size", expression: "object.data.size()" },
        { name: "big", expression: "variables.size > 1" },
      ],
      validations: [{ expression: "!variables.big", messageExpression: "'has ' + string(variables.size)" }],
    },
  ],
  [
    "conditions",
    {
      matchConditions: [{ name: "not-exempt", expression: "!('exempt' in object.data)" }],
      validations: [{ expression: "false", message: "not exempt" }],
    },
  ],
  [
    "old",
    { validations: [{ expression: "oldObject == null || object.data == oldObject.data", message: "data are frozen" }] },
  ],
  [
    "user",
    {
      validations: [
        {
          expression:
            "request.userInfo.username == 'admin' && 'system:masters' in request.userInfo.groups && request.operation in ['CREATE', 'UPDATE'] && request.namespace == object.metadata.namespace",
          message: "only admin",
        },
      ],
    },
  ],
  [
    "home",
    {
      validations: [
        {
          expression:
            "namespaceObject.metadata.name == object.metadata.namespace && request.kind.kind == 'ConfigMap' && request.resource.resource == 'configmaps'",
          message: "not at home",
        },
      ],
    },
  ],
  [
    "homeless",
    {
      matchConditions: [{ name: "at-home", expression: "has(namespaceObject.metadata.name)" }],
      validations: [{ expression: "false", message: "homeless" }],
    },
  ],
  ["dry", { validations: [{ expression: "request.dryRun != true", message: "not dry" }] }],
  ["fails", { failurePolicy: "Fail", validations: [{ expression: "object.data.ghost == 'x'" }] }],
  ["ignores", { failurePolicy: "Ignore", validations: [{ expression: "object.data.ghost == 'x'" }] }],
  ["warns", { validations: [{ expression: "false", message: "mind this" }] }, { validationActions: ["Warn"] }],
  ["audits", { validations: [{ expression: "false", message: "noted" }] }, { validationActions: ["Audit"] }],
  ["both", { validations: [{ expression: "false", message: "twice" }] }, { validationActions: ["Warn", "Audit"] }],
  [
    "narrow",
    { validations: [{ expression: "false", message: "narrowed" }] },
    { matchResources: { objectSelector: { matchLabels: { narrow: "yes" } } } },
  ],
  [
    "params",
    {
      paramKind: { apiVersion: "v1", kind: "ConfigMap" },
      validations: [
        {
          expression: "object.data.size() <= int(params.data.limit)",
          messageExpression: "'at most ' + params.data.limit",
        },
      ],
    },
    { paramRef: { name: "contract-limit", namespace: "default", parameterNotFoundAction: "Deny" } },
  ],
  [
    "paramless",
    { paramKind: { apiVersion: "v1", kind: "ConfigMap" }, validations: [{ expression: "false" }] },
    { paramRef: { name: "ghost", namespace: "default", parameterNotFoundAction: "Deny" } },
  ],
  [
    "paramfree",
    { paramKind: { apiVersion: "v1", kind: "ConfigMap" }, validations: [{ expression: "false" }] },
    { paramRef: { name: "ghost", namespace: "default", parameterNotFoundAction: "Allow" } },
  ],
  [
    "selected",
    {
      paramKind: { apiVersion: "v1", kind: "ConfigMap" },
      validations: [
        { expression: "!(params.data.limit in object.data)", messageExpression: "'not ' + params.data.limit" },
      ],
    },
    {
      paramRef: {
        selector: { matchLabels: { limits: "contract" } },
        namespace: "default",
        parameterNotFoundAction: "Deny",
      },
    },
  ],
  [
    "deletes",
    {
      matchConstraints: {
        resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["DELETE"], resources: ["configmaps"] }],
        objectSelector: { matchLabels: { policy: "deletes" } },
      },
      validations: [{ expression: "oldObject.data.keep != 'yes'", message: "is kept" }],
    },
  ],
  ["last", { validations: [{ expression: "false", message: "at work" }] }],
];

/** Creates what all cases share, unless it exists, and waits until it is active. */
export async function prepareShared(api: Api): Promise<void> {
  const make = async (path: string, body: unknown) => {
    const reply = await api.post(path, body);
    expect([201, 409], reply.text).toContain(reply.status);
  };
  for (const definition of [widgets(sharedGroup), checks]) await make(definitions, definition);
  await make(
    "/api/v1/namespaces/default/configmaps",
    configMap("contract-limit", { limit: "2" }, { labels: { limits: "contract" } }),
  );
  for (const [name, spec, binding = {}] of policies) {
    const matchConstraints = {
      resourceRules: [
        { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE", "UPDATE"], resources: ["configmaps"] },
      ],
      objectSelector: { matchLabels: { policy: name } },
    };
    const metadata = { name: `contract-${name}` };
    await make(`/apis/${admissionGroup}/v1/validatingadmissionpolicies`, {
      apiVersion: `${admissionGroup}/v1`,
      kind: "ValidatingAdmissionPolicy",
      metadata,
      spec: { matchConstraints, ...spec },
    });
    await make(`/apis/${admissionGroup}/v1/validatingadmissionpolicybindings`, {
      apiVersion: `${admissionGroup}/v1`,
      kind: "ValidatingAdmissionPolicyBinding",
      metadata,
      spec: { policyName: metadata.name, validationActions: ["Deny"], ...binding },
    });
  }
  for (const definition of [widgets(sharedGroup), checks]) await served(api, definition);
  await eventually(async () =>
    expect((await api.post(`${core("default", "configmaps")}?dryRun=All`, looked("last"))).status).toBe(422),
  );
}
