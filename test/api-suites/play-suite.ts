import type { Api, Json, Reply } from "../contract/api-target.ts";
import { untilSeen } from "../support/until-seen.ts";
import { type DefinitionPatch, type Suite, type SuiteCase, readYaml } from "./read-suites.ts";

interface Definition {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly group: string;
    readonly scope: string;
    readonly names: { readonly plural: string };
    readonly versions: readonly VersionOf[];
  };
}
interface VersionOf {
  readonly name: string;
  readonly schema: { readonly openAPIV3Schema: { readonly properties: Record<string, unknown> } };
}
type Spec = Definition["spec"];

/** What a case came to: `undefined` where the server did what the suite says. */
export interface Played {
  readonly name: string;
  readonly fault: string | undefined;
}

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/** What a server sets of itself. */
const ownMetadata = new Set([
  "uid",
  "generation",
  "creationTimestamp",
  "resourceVersion",
  "managedFields",
  "generateName",
]);
const isRefused = (reply: Reply) => reply.status >= 400;
const textOf = (reply: Reply) => String(reply.at("message"));
const isMap = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Plays a suite on a server: installs the definition with the suite's version alone, plays each case, and removes the
 * definition again. A case agrees if the server accepts and refuses what the suite says, with the error at the field
 * that the suite names, and stores what the suite expects. The text of an error is each project's own.
 */
export async function playSuite(api: Api, suite: Suite, definition: Definition): Promise<readonly Played[]> {
  const { group, scope, names, versions } = definition.spec;
  const ofSuite = versions.filter(({ name }) => name === suite.version);
  const spec = { ...definition.spec, versions: ofSuite.map((one) => ({ ...one, served: true, storage: true })) };
  const self = `${definitions}/${definition.metadata.name}`;
  const folder = `/apis/${group}/${suite.version}/${scope === "Namespaced" ? "namespaces/default/" : ""}${names.plural}`;
  const remove = async () => {
    await untilSeen(
      "the definition to go",
      () => api.delete(self),
      ({ status }) => status === 404,
    );
    // A real API server learns of the deletion through a watch, and serves the kind until then.
    await untilSeen(
      "the kind to be served no more",
      () => api.get(folder),
      ({ status }) => status === 404,
    );
  };
  await remove();
  const installed = await api.post(definitions, {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: definition.metadata,
    spec,
  });
  if (isRefused(installed)) throw new Error(`${suite.title}: the definition is refused: ${textOf(installed)}`);
  await untilSeen(
    "the kind to be served",
    () => api.get(folder),
    ({ status }) => status === 200,
  );
  const played: Played[] = [];
  for (const one of suite.cases) {
    played.push({ name: one.name, fault: await faultOf(one, new CaseServer(api, self, folder)) });
    await untilSeen(
      "the objects to go",
      async () => {
        await api.delete(folder);
        return api.get(folder);
      },
      (list) => (list.at("items") as readonly unknown[] | undefined)?.length === 0,
    );
  }
  await remove();
  return played;
}

/** The requests of one case. */
class CaseServer {
  readonly #api: Api;
  readonly #definition: string;
  readonly #folder: string;

  constructor(api: Api, definition: string, folder: string) {
    this.#api = api;
    this.#definition = definition;
    this.#folder = folder;
  }

  create = (object: Json) => this.#api.post(this.#folder, object);
  read = (name: string) => this.#api.get(`${this.#folder}/${name}`);
  update = (object: Json) => this.#api.put(`${this.#folder}/${nameOf(object)}`, object);
  updateStatus = (object: Json) => this.#api.put(`${this.#folder}/${nameOf(object)}/status`, object);
  remove = (name: string) => this.#api.delete(`${this.#folder}/${name}`);

  async definition(): Promise<Spec> {
    return (await this.#api.get(this.#definition)).at("spec") as Spec;
  }

  async define(spec: Spec): Promise<void> {
    const written = await untilSeen(
      "the definition to be written",
      async () => {
        const { json } = await this.#api.get(this.#definition);
        return this.#api.put(this.#definition, { ...json, spec });
      },
      ({ status }) => status !== 409,
    );
    if (isRefused(written)) throw new Error(`the changed definition is refused: ${textOf(written)}`);
  }
}

const nameOf = (object: Json) => String((object["metadata"] as Json)["name"]);

/** An object of a suite; one without a name gets one from the server. */
function objectOf(text: string | undefined): { metadata: Record<string, unknown> } & Record<string, unknown> {
  const object = (readYaml(text ?? "") ?? {}) as Record<string, unknown>;
  const metadata = { ...(object["metadata"] as Json | undefined), generateName: "test-", namespace: "default" };
  return { ...object, metadata };
}

async function faultOf(one: SuiteCase, server: CaseServer): Promise<string | undefined> {
  return one.updated === undefined ? faultOfCreate(one, server) : faultOfUpdate(one, one.updated, server);
}

async function faultOfCreate(one: SuiteCase, server: CaseServer): Promise<string | undefined> {
  const made = await server.create(objectOf(one.initial));
  if (one.expectedError !== undefined) return faultOfRefusal(made, one.expectedError);
  if (isRefused(made)) return `refused, but must be accepted: ${textOf(made)}`;
  return differences(expectedOf(one, made.json), (await server.read(nameOf(made.json))).json);
}

async function faultOfUpdate(one: SuiteCase, updatedText: string, server: CaseServer): Promise<string | undefined> {
  const stored = await store(one, server);
  if (typeof stored === "string") return stored;
  const { status, ...updated } = objectOf(updatedText);
  const name = nameOf(stored);
  const { namespace: _, ...metadata } = updated.metadata;
  const { resourceVersion } = (await server.read(name)).json["metadata"] as Json;
  const changed = await server.update({ ...updated, metadata: { ...metadata, name, resourceVersion } });
  if (one.expectedError !== undefined) return faultOfRefusal(changed, one.expectedError);
  if (isRefused(changed)) return `update refused, but must be accepted: ${textOf(changed)}`;
  if (status !== undefined && status !== null) {
    const reported = await server.updateStatus({ ...changed.json, status });
    if (one.expectedStatusError !== undefined) return faultOfRefusal(reported, one.expectedStatusError);
    if (isRefused(reported)) return `status refused, but must be accepted: ${textOf(reported)}`;
  }
  return differences(expectedOf(one, changed.json), (await server.read(name)).json);
}

/** Stores the object of a case, under a changed definition where the case has one; a text says why that failed. */
async function store(one: SuiteCase, server: CaseServer): Promise<Json | string> {
  const patches = one.initialCRDPatches ?? [];
  const restored = await server.definition();
  if (patches.length > 0) await server.define(withMark(patched(restored, patches), "changed"));
  try {
    const { status, ...initial } = objectOf(one.initial);
    const mark = patches.length > 0 ? { mark: "changed" } : {};
    const made = await storeMarked({ ...initial, ...mark }, server);
    if (isRefused(made)) return `initial object refused: ${textOf(made)}`;
    let current = made.json;
    if (status !== undefined && status !== null) {
      const reported = await server.updateStatus({ ...current, status });
      if (isRefused(reported)) return `initial status refused: ${textOf(reported)}`;
      current = reported.json;
    }
    if (patches.length === 0) return current;
    // Only a server that has heard of the definition takes the second mark.
    await server.define(withMark(restored, "restored"));
    const kept = await untilSeen(
      "the stored object to be kept",
      () => server.update({ ...current, mark: "restored" }),
      (reply) => !isRefused(reply) || !textOf(reply).includes("mark"),
    );
    return isRefused(kept) ? `stored object not kept by the definition: ${textOf(kept)}` : kept.json;
  } finally {
    if (patches.length > 0) await server.define(restored);
  }
}

/** A server hears of a changed definition a moment later: until then it drops the mark, or refuses the object. */
function storeMarked(object: Json, server: CaseServer): Promise<Reply> {
  if (object["mark"] === undefined) return server.create(object);
  return untilSeen(
    "the changed definition to be served",
    async () => {
      const made = await server.create(object);
      if (!isRefused(made) && made.at("mark") !== object["mark"]) await server.remove(nameOf(made.json));
      return made;
    },
    (made) => !isRefused(made) && made.at("mark") === object["mark"],
  );
}

function withMark(spec: Spec, value: string): Spec {
  const copy = structuredClone(spec);
  for (const { schema } of copy.versions) schema.openAPIV3Schema.properties["mark"] = { type: "string", enum: [value] };
  return copy;
}

/** A definition after patches; a step to a place that is not there is an error, as in the suites' own program. */
function patched(spec: Spec, patches: readonly DefinitionPatch[]): Spec {
  const document = structuredClone({ spec }) as unknown as Record<string, unknown>;
  for (const { op, path, value } of patches) {
    const keys = path
      .split("/")
      .slice(1)
      .map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
    const last = keys.pop() ?? "";
    const parent = keys.reduce<unknown>(
      (node, key) => (node as Record<string, unknown> | undefined)?.[key],
      document,
    ) as Record<string, unknown> | undefined;
    if (parent === undefined || (op !== "add" && parent[last] === undefined))
      throw new Error(`${op} ${path}: no such place`);
    if (op !== "remove") parent[last] = value;
    else if (Array.isArray(parent)) parent.splice(Number(last), 1);
    else delete parent[last];
  }
  return document["spec"] as Spec;
}

/** The field that an error of a suite names; most of those of rules name none. */
export function fieldIn(text: string): string | undefined {
  return (
    /((?:spec|status|metadata)[\w.[\]]*): (?:Invalid|Unsupported|Required|Duplicate|Too|Forbidden)/.exec(text)?.[1] ??
    /((?:spec|status|metadata)[\w.[\]]*) in body/.exec(text)?.[1]
  );
}

function faultOfRefusal(reply: Reply, expected: string): string | undefined {
  if (!isRefused(reply)) return `accepted, but must be refused: ${expected}`;
  const field = fieldIn(expected);
  return field === undefined || textOf(reply).includes(`${field}: `)
    ? undefined
    : `refused at another field than ${field}: ${textOf(reply)}`;
}

function expectedOf({ expected }: SuiteCase, made: Json): Json {
  const object = objectOf(expected);
  const { namespace: _, ...metadata } = object.metadata;
  const { name, namespace } = made["metadata"] as Json;
  return { ...object, metadata: { ...metadata, name, ...(namespace === undefined ? {} : { namespace }) } };
}

/** Where two objects differ, but for what a server sets of itself. */
function differences(expected: unknown, stored: unknown, at = ""): string | undefined {
  if (isMap(expected) && isMap(stored)) {
    const keys = [...new Set([...Object.keys(expected), ...Object.keys(stored)])];
    const found = keys
      .filter((key) => at !== ".metadata" || !ownMetadata.has(key))
      .flatMap((key) => differences(expected[key], stored[key], `${at}.${key}`) ?? []);
    return found.length === 0 ? undefined : found.join("; ");
  }
  if (Array.isArray(expected) && Array.isArray(stored) && expected.length === stored.length) {
    const found = expected.flatMap((value, index) => differences(value, stored[index], `${at}[${index}]`) ?? []);
    return found.length === 0 ? undefined : found.join("; ");
  }
  const [wanted, has] = [JSON.stringify(expected), JSON.stringify(stored)];
  return wanted === has ? undefined : `${at} is ${has}, but must be ${wanted}`;
}
