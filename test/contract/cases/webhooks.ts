import { expect } from "vitest";
import { type Api, at, type Json, type Reply } from "../api-target.ts";
import type { HookAnswer, HookServer } from "../../support/hook-server.ts";
import { warningsOf } from "./exchange.ts";
import { type ContractCase, configMap, core, created, eventually } from "./case-fixture.ts";

const group = "admissionregistration.k8s.io";
const configurations = (kind: Kind) => `/apis/${group}/v1/${kind.toLowerCase()}webhookconfigurations`;
type Kind = "Validating" | "Mutating";

/** A hook for a namespace's ConfigMaps, until the case ends. */
async function hooked(
  { api, namespace, hooks }: { readonly api: Api; readonly namespace: string; readonly hooks: HookServer },
  {
    kind = "Validating",
    answer,
    more = {},
  }: { readonly kind?: Kind; readonly answer: (request: Json) => HookAnswer; readonly more?: Json },
  use: (hook: { readonly reviews: readonly Json[] }) => Promise<void>,
): Promise<void> {
  const { url, reviews } = hooks.hook(namespace, answer);
  // A second hook shows when the server knows both: it is called for one name alone, and refuses it.
  const probe = hooks.hook(`${namespace}-probe`, () => ({ response: { allowed: false } }));
  const rules = [{ apiGroups: [""], apiVersions: ["v1"], operations: ["*"], resources: ["configmaps"] }];
  const common = {
    rules,
    sideEffects: "None",
    admissionReviewVersions: ["v1"],
    namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
  };
  const ready = { matchLabels: { probe: "yes" } };
  const webhooks = [
    {
      name: "probe.example.com",
      clientConfig: { url: probe.url, caBundle: hooks.caBundle },
      ...common,
      objectSelector: ready,
    },
    {
      name: "hook.example.com",
      clientConfig: { url, caBundle: hooks.caBundle },
      ...common,
      objectSelector: { matchExpressions: [{ key: "probe", operator: "DoesNotExist" }] },
      ...more,
    },
  ];
  await created(api, configurations(kind), {
    apiVersion: `${group}/v1`,
    kind: `${kind}WebhookConfiguration`,
    metadata: { name: namespace },
    webhooks,
  });
  await eventually(async () =>
    expect(
      (
        await api.post(
          `${core(namespace, "configmaps")}?dryRun=All`,
          configMap("probe", {}, { labels: { probe: "yes" } }),
        )
      ).status,
    ).toBe(400),
  );
  await use({ reviews });
  await api.delete(`${configurations(kind)}/${namespace}`);
}

const allowed: HookAnswer = { response: { allowed: true } };
const patching = (operations: unknown): HookAnswer => ({
  response: {
    allowed: true,
    patchType: "JSONPatch",
    patch: Buffer.from(JSON.stringify(operations)).toString("base64"),
  },
});

/** Rows: a hook's answer to the creation of ConfigMap `a`, and what the creator then sees. */
interface Row {
  readonly title: string;
  readonly kind?: Kind;
  readonly answer: HookAnswer;
  readonly more?: Json;
  readonly query?: string;
  readonly status: number;
  readonly message?: string | RegExp;
  readonly warnings?: readonly string[];
  readonly sees?: (reply: Reply) => unknown;
  readonly shows?: unknown;
}

const rows: readonly Row[] = [
  { title: "a hook that allows a request lets it pass", answer: allowed, status: 201 },
  {
    title: "a hook that refuses a request stops it",
    answer: { response: { allowed: false } },
    status: 400,
    message: 'admission webhook "hook.example.com" denied the request without explanation',
  },
  {
    title: "a refusal of a hook has its message",
    answer: { response: { allowed: false, status: { message: "too blue", code: 403, reason: "Forbidden" } } },
    status: 403,
    message: 'admission webhook "hook.example.com" denied the request: too blue',
  },
  {
    title: "a refusal of a hook has its reason",
    answer: { response: { allowed: false, status: { reason: "Colour" } } },
    status: 400,
    message: 'admission webhook "hook.example.com" denied the request: Colour',
  },
  {
    title: "a hook warns",
    answer: { response: { allowed: true, warnings: ["mind the colour", "and the size"] } },
    status: 201,
    warnings: ["mind the colour", "and the size"],
  },
  {
    title: "a hook that fails refuses the request",
    answer: { status: 500, body: "broken" },
    status: 500,
    message: /^Internal error occurred: failed calling webhook "hook\.example\.com": failed to call webhook: /,
  },
  {
    title: "a hook that fails is ignored with failurePolicy Ignore",
    answer: { status: 500, body: "broken" },
    more: { failurePolicy: "Ignore" },
    status: 201,
  },
  {
    title: "a hook with an invalid answer refuses the request",
    answer: { status: 200, body: "hello" },
    status: 500,
    message: /^Internal error occurred: failed calling webhook "hook\.example\.com": /,
  },
  {
    title: "a hook that answers another review refuses the request",
    answer: { response: { uid: "other", allowed: true } },
    status: 500,
    message: /^Internal error occurred: failed calling webhook "hook\.example\.com": .*expected response\.uid=/,
  },
  {
    title: "a hook that takes too long refuses the request",
    answer: "never",
    more: { timeoutSeconds: 1 },
    status: 500,
    message:
      /^Internal error occurred: failed calling webhook "hook\.example\.com": failed to call webhook: Post .*context deadline exceeded/,
  },
  {
    title: "a hook that takes too long is ignored with failurePolicy Ignore",
    answer: "never",
    more: { timeoutSeconds: 1, failurePolicy: "Ignore" },
    status: 201,
  },
  {
    title: "a hook changes what is created",
    kind: "Mutating",
    answer: patching([{ op: "add", path: "/data/colour", value: "red" }]),
    status: 201,
    sees: (reply) => reply.at("data"),
    shows: { key: "value", colour: "red" },
  },
  {
    title: "a hook that changes nothing changes nothing",
    kind: "Mutating",
    answer: allowed,
    status: 201,
    sees: (reply) => reply.at("data"),
    shows: { key: "value" },
  },
  {
    title: "an object that a hook changed is validated",
    kind: "Mutating",
    answer: patching([{ op: "add", path: "/metadata/labels", value: { "a b": "c" } }]),
    status: 422,
    message: /^ConfigMap "a" is invalid: metadata\.labels: Invalid value: "a b"/,
  },
  {
    title: "a hook whose patch does not apply refuses the request",
    kind: "Mutating",
    answer: patching([{ op: "remove", path: "/data/ghost" }]),
    status: 500,
    message: /^Internal error occurred: /,
  },
  {
    title: "a hook without side effects is called for a dry run",
    answer: { response: { allowed: false } },
    query: "?dryRun=All",
    status: 400,
  },
  {
    title: "a hook's conditions exclude requests",
    answer: { response: { allowed: false } },
    more: { matchConditions: [{ name: "not-a", expression: "object.metadata.name != 'a'" }] },
    status: 201,
  },
  {
    title: "a hook's conditions leave other requests to the hook",
    answer: { response: { allowed: false } },
    more: { matchConditions: [{ name: "a", expression: "object.metadata.name == 'a'" }] },
    status: 400,
  },
  {
    title: "a hook is called for the operations that it names",
    answer: { response: { allowed: false } },
    more: { rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["DELETE"], resources: ["configmaps"] }] },
    status: 201,
  },
  {
    title: "a hook is called for the resources that it names",
    answer: { response: { allowed: false } },
    more: { rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["*"], resources: ["secrets"] }] },
    status: 201,
  },
];

/** Webhooks on loopback: what they receive and what their answers do. */
export const webhooksCases: readonly ContractCase[] = [
  ...rows.map(
    ({
      title,
      kind = "Validating",
      answer,
      more = {},
      query = "",
      status,
      message,
      warnings,
      sees,
      shows,
    }): ContractCase => ({
      title,
      async run(api, namespace, { hooks }) {
        await hooked({ api, namespace, hooks }, { kind, answer: () => answer, more }, async () => {
          const reply = await api.post(`${core(namespace, "configmaps")}${query}`, configMap("a"));
          expect(reply.status, reply.text).toBe(status);
          if (message !== undefined) expect(reply.at("message")).toMatch(message);
          if (warnings !== undefined) expect(warningsOf(reply)).toEqual(warnings);
          if (sees !== undefined) expect(sees(reply)).toEqual(shows);
        });
      },
    }),
  ),
  {
    title: "a hook receives the object, the user and the operation",
    async run(api, namespace, { hooks }) {
      await hooked({ api, namespace, hooks }, { answer: () => allowed }, async ({ reviews }) => {
        await created(api, core(namespace, "configmaps"), configMap("a"));
        await api.patch(`${core(namespace, "configmaps", "a")}?dryRun=All`, "merge", { data: { key: "other" } });
        await api.delete(core(namespace, "configmaps", "a"));
        const [create, update, remove] = reviews;
        const resource = { group: "", version: "v1", resource: "configmaps" };
        expect(create).toMatchObject({
          operation: "CREATE",
          kind: { group: "", version: "v1", kind: "ConfigMap" },
          resource,
          requestKind: { kind: "ConfigMap" },
          requestResource: resource,
          name: "a",
          namespace,
          dryRun: false,
          oldObject: null,
        });
        expect(at(create, "object.data")).toEqual({ key: "value" });
        expect(at(create, "userInfo.username")).toBe("admin");
        expect(at(create, "userInfo.groups")).toEqual(["system:masters", "system:authenticated"]);
        expect(at(create, "options.kind")).toBe("CreateOptions");
        expect(update).toMatchObject({ operation: "UPDATE", dryRun: true, name: "a" });
        expect([at(update, "oldObject.data.key"), at(update, "object.data.key")]).toEqual(["value", "other"]);
        expect(remove).toMatchObject({ operation: "DELETE", name: "a", object: null });
        expect(at(remove, "oldObject.metadata.name")).toBe("a");
        expect(at(remove, "options.kind")).toBe("DeleteOptions");
      });
    },
  },
  {
    title: "a hook that allows a deletion is called once",
    async run(api, namespace, { hooks }) {
      await created(api, core(namespace, "configmaps"), configMap("a"));
      await hooked(
        { api, namespace, hooks },
        {
          answer: ({ operation }) => ({
            response: { allowed: operation !== "DELETE", status: { message: "it stays" } },
          }),
        },
        async ({ reviews }) => {
          expect((await api.delete(core(namespace, "configmaps", "a"))).at("message")).toBe(
            'admission webhook "hook.example.com" denied the request: it stays',
          );
          expect(reviews).toHaveLength(1);
        },
      );
    },
  },
];
