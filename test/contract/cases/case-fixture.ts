import { expect } from "vitest";
import { systemClock } from "../../../src/ports/node/index.ts";
import { type Api, at, type Json } from "../api-target.ts";
import type { HookServer } from "../../support/hook-server.ts";

/** One promise of the API. `api` acts as admin; `namespace` is fresh and belongs to the case. */
export interface ContractCase {
  readonly title: string;
  readonly run: (api: Api, namespace: string, surroundings: Surroundings) => Promise<void>;
}

/** What a case has beside the server. */
export interface Surroundings {
  readonly hooks: HookServer;
}

const patienceMs = 10_000;
const lookEveryMs = 15;

/**
 * Repeats a check until it holds, for what a server or its controllers do asynchronously. It fails with the last
 * expectation that did not hold, which shows the last state, and with the time that it waited.
 */
export async function eventually<T>(look: () => Promise<T>): Promise<T> {
  const until = systemClock.monotonic() + patienceMs;
  for (;;) {
    try {
      return await look();
    } catch (error) {
      if (systemClock.monotonic() > until) {
        if (error instanceof Error) error.message = `not within ${patienceMs / 1000} s: ${error.message}`;
        throw error;
      }
      await systemClock.sleep(lookEveryMs);
    }
  }
}

export const configMap = (name: string, data: Json = { key: "value" }, metadata: Json = {}) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, ...metadata },
  data,
});
export const pod = (name: string, more: Json = {}, metadata: Json = {}) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, ...metadata },
  spec: { containers: [{ name: "main", image: "example.com/app:1" }], ...more },
});
export const deployment = (name: string, replicas = 1, template: Json = {}) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name },
  spec: {
    replicas,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: { containers: [{ name: "main", image: "example.com/app:1" }], ...template },
    },
  },
});
export const budget = (name: string, app: string) => ({
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  metadata: { name },
  spec: { minAvailable: 1, selector: { matchLabels: { app } } },
});
export const widgets = (group: string, more: Json = {}) => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `widgets.${group}` },
  spec: {
    group,
    scope: "Namespaced",
    names: { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList", shortNames: ["wd"] },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: {
          status: {},
          scale: { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" },
        },
        additionalPrinterColumns: [{ name: "Size", type: "integer", jsonPath: ".spec.size" }],
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              spec: {
                type: "object",
                properties: {
                  size: { type: "integer", minimum: 1, default: 3 },
                  replicas: { type: "integer" },
                  color: { type: "string", enum: ["red", "green"] },
                  parts: {
                    type: "array",
                    items: {
                      type: "object",
                      properties: { name: { type: "string" }, count: { type: "integer" } },
                      required: ["name"],
                    },
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                  },
                },
                "x-kubernetes-validations": [
                  {
                    rule: "!has(self.replicas) || self.replicas <= self.size",
                    message: "replicas may not exceed size",
                  },
                ],
              },
              status: { type: "object", properties: { replicas: { type: "integer" }, phase: { type: "string" } } },
            },
          },
        },
      },
    ],
  },
  ...more,
});

export const core = (namespace: string, plural: string, name = "") =>
  `/api/v1/namespaces/${namespace}/${plural}${name === "" ? "" : `/${name}`}`;
export const apps = (namespace: string, plural: string, name = "") =>
  `/apis/apps/v1/namespaces/${namespace}/${plural}${name === "" ? "" : `/${name}`}`;

export const created = async (api: Api, path: string, body: unknown) => {
  const reply = await api.post(path, body);
  expect(reply.status, reply.text).toBe(201);
  return reply;
};
export const names = (list: unknown): unknown[] =>
  (at(list, "items") as Json[]).map((item) => at(item, "metadata.name"));
export const table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/** A pod that runs and is ready, as a kubelet would report it. */
export async function readyPod(
  api: Api,
  namespace: string,
  name: string,
  labels: Json,
  node = "node-a",
): Promise<void> {
  await created(api, core(namespace, "pods"), pod(name, { nodeName: node }, { labels }));
  const reply = await api.patch(`${core(namespace, "pods", name)}/status`, "merge", {
    status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
  });
  expect(reply.status, reply.text).toBe(200);
}

/** The widgets that cases share. */
export function widgetGroup(namespace: string): { readonly group: string; readonly path: string } {
  const group = "contract.example.com";
  return { group, path: `/apis/${group}/v1/namespaces/${namespace}/widgets` };
}

/** A definition of widgets for one case only. */
export async function ownWidgetGroup(
  api: Api,
  namespace: string,
): Promise<{ readonly group: string; readonly path: string }> {
  const group = `${namespace}.example.com`;
  await defined(api, widgets(group));
  return { group, path: `/apis/${group}/v1/namespaces/${namespace}/widgets` };
}

export const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

interface Definition {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly group: string;
    readonly names: { readonly plural: string };
    readonly versions: readonly unknown[];
  };
}

/** Makes a definition and waits until its objects can be listed. */
export async function defined(api: Api, definition: Definition): Promise<void> {
  await created(api, definitions, definition);
  await served(api, definition);
}

export async function served(api: Api, { metadata, spec }: Definition): Promise<void> {
  await eventually(async () => {
    const conditions = ((await api.get(`${definitions}/${metadata.name}`)).at("status.conditions") ?? []) as Json[];
    expect(conditions).toContainEqual(expect.objectContaining({ type: "Established", status: "True" }));
    for (const version of spec.versions) {
      if (at(version, "served") === true)
        expect((await api.get(`/apis/${spec.group}/${String(at(version, "name"))}/${spec.names.plural}`)).status).toBe(
          200,
        );
    }
  });
}
export const widget = (group: string, name: string, spec: Json = {}, more: Json = {}) => ({
  apiVersion: `${group}/v1`,
  kind: "Widget",
  metadata: { name },
  spec,
  ...more,
});

export async function expectEvents(
  watch: { next(): Promise<{ type: string; object: Json } | undefined> },
  expected: readonly string[],
): Promise<Json[]> {
  const objects: Json[] = [];
  const seen: string[] = [];
  while (seen.length < expected.length) {
    const event = await watch.next();
    if (event === undefined) break;
    const name = at(event.object, "metadata.name");
    seen.push(typeof name === "string" ? `${event.type} ${name}` : event.type);
    objects.push(event.object);
  }
  expect(seen).toEqual(expected);
  return objects;
}
