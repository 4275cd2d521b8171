import type { ApiAnswer, ApiTarget, Json } from "../contract/api-target.ts";
import { at } from "../contract/api-target.ts";
import type { DifferentialKind } from "./kinds.ts";
import type { Operation, OperationList, Selectors, Version } from "./operations.ts";

/** An answer as the server gave it. */
export interface RawAnswer {
  readonly status: number;
  readonly body: unknown;
  readonly warnings: readonly string[];
}

/** All answers of a server to a list of operations. */
export interface RawRun {
  /** The answer to each operation; for a list in pages, all of them. */
  readonly answers: readonly (readonly RawAnswer[])[];
  /** For each kind of the list, what a watch that began before the first operation saw. */
  readonly watches: readonly { readonly kind: DifferentialKind; readonly events: readonly unknown[] }[];
}

const agent = { "user-agent": "differential/1 (test)" };
const ownLabel = "differential";
const patchTypes = {
  merge: "application/merge-patch+json",
  json: "application/json-patch+json",
  strategic: "application/strategic-merge-patch+json",
  apply: "application/apply-patch+yaml",
};
const wrongUid = "99999999-9999-9999-9999-999999999999";
const markerName = "zz-marker";
/** A page size above the number of objects of any list. */
const mostPages = 20;

/** The minimal object that each kind accepts. */
const least: Readonly<Record<string, Json>> = {
  Pod: { spec: { automountServiceAccountToken: false, containers: [{ name: "main", image: "example.com/one:1" }] } },
  Deployment: {
    spec: {
      selector: { matchLabels: { app: "a" } },
      template: {
        metadata: { labels: { app: "a" } },
        spec: { containers: [{ name: "main", image: "example.com/one:1" }] },
      },
    },
  },
  Widget: { spec: { size: 1 } },
  MachineConfigPool: { spec: {} },
};

/** Makes the namespace of lists named `id`. */
export async function prepareList(target: ApiTarget, id: string): Promise<string> {
  const made = await target.request({
    method: "POST",
    path: "/api/v1/namespaces",
    body: { apiVersion: "v1", kind: "Namespace", metadata: { name: id } },
  });
  if (made.status !== 201) throw new Error(`namespace ${id}: ${made.text}`);
  // Controllers make it in every namespace; some servers have it already.
  await target.request({
    method: "POST",
    path: `/api/v1/namespaces/${id}/configmaps`,
    body: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "kube-root-ca.crt" } },
  });
  await target.request({
    method: "POST",
    path: `/api/v1/namespaces/${id}/serviceaccounts`,
    body: { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "default" } },
  });
  return String(at(JSON.parse(made.text), "metadata.resourceVersion"));
}

/** Runs a list against one server. Two servers get the same `id`, so that all names are equal. */
export async function runList(target: ApiTarget, id: string, { operations, watched }: OperationList): Promise<RawRun> {
  const since = await prepareList(target, id);
  const kinds = [...new Set(operations.map(({ kind }) => kind))];
  const session = new Session(target, id);
  const answers: (readonly RawAnswer[])[] = [];
  for (const operation of operations) answers.push(await session.perform(operation));
  const watches = [];
  for (const kind of kinds) watches.push({ kind, events: await session.watchUntilMarker(kind, since, watched) });
  for (const kind of kinds) if (!kind.namespaced) await session.clear(kind);
  return { answers, watches };
}

class Session {
  readonly #target: ApiTarget;
  readonly #id: string;
  /** The versions of each object that were seen, oldest first. */
  readonly #versions = new Map<string, string[]>();
  #generated = false;

  constructor(target: ApiTarget, id: string) {
    this.#target = target;
    this.#id = id;
  }

  async perform(operation: Operation): Promise<readonly RawAnswer[]> {
    const { kind } = operation;
    switch (operation.do) {
      case "create": {
        // Two generated names would be in another order on every run.
        const generate = operation.generate && !this.#generated;
        if (generate) this.#generated = true;
        const metadata = {
          ...(generate ? { generateName: this.#name(kind, "gen-") } : { name: this.#name(kind, operation.name) }),
          ...this.#owned(operation.metadata),
        };
        const object = JSON.stringify({
          apiVersion: kind.apiVersion,
          kind: kind.kind,
          metadata,
          ...operation.contents,
        });
        const body = operation.duplicateField ? object.replace("{", `{"kind":${JSON.stringify(kind.kind)},`) : object;
        return [await this.#send("POST", `${this.#collection(kind)}${query(operation.query)}`, body)];
      }
      case "get":
        return [await this.#send("GET", this.#path(kind, operation.name, operation.subresource))];
      case "list":
        return this.#pages(kind, operation.selectors, operation.limit);
      case "update": {
        const live = await this.#live(kind, operation.name);
        const kept =
          operation.base === "live" && live !== undefined
            ? live
            : { apiVersion: kind.apiVersion, kind: kind.kind, metadata: { name: this.#name(kind, operation.name) } };
        const { resourceVersion: _, ...metadata } = kept["metadata"] as Json;
        const body = {
          ...kept,
          metadata: {
            ...metadata,
            ...this.#owned(operation.metadata),
            ...this.#versionOf(kind, operation.name, operation.version),
          },
          ...operation.contents,
        };
        return [
          await this.#send(
            "PUT",
            `${this.#path(kind, operation.name, operation.subresource)}${query(operation.query)}`,
            JSON.stringify(body),
          ),
        ];
      }
      case "patch": {
        if (operation.type !== "json" && operation.version !== "none") await this.#live(kind, operation.name);
        const path = `${this.#path(kind, operation.name, operation.subresource)}${query(operation.query)}`;
        return [
          await this.#send("PATCH", path, JSON.stringify(this.#patch(operation)), {
            "content-type": patchTypes[operation.type],
          }),
        ];
      }
      case "delete": {
        const live =
          operation.uid === "none" && operation.version === "none" ? undefined : await this.#live(kind, operation.name);
        const uid =
          operation.uid === "right"
            ? (at(live, "metadata.uid") ?? wrongUid)
            : operation.uid === "wrong"
              ? wrongUid
              : undefined;
        const preconditions = {
          ...(uid === undefined ? {} : { uid }),
          ...this.#versionOf(kind, operation.name, operation.version),
        };
        const body = {
          kind: "DeleteOptions",
          apiVersion: "v1",
          ...operation.options,
          ...(Object.keys(preconditions).length === 0 ? {} : { preconditions }),
        };
        return [await this.#send("DELETE", this.#path(kind, operation.name, ""), JSON.stringify(body))];
      }
      case "deletecollection": {
        const body = { kind: "DeleteOptions", apiVersion: "v1", ...operation.options };
        return [
          await this.#send(
            "DELETE",
            `${this.#collection(kind)}${query(this.#selected(kind, operation.selectors))}`,
            JSON.stringify(body),
          ),
        ];
      }
    }
  }

  /** All events of one kind since `since`. A last object, which is not reported, marks the end. */
  async watchUntilMarker(
    kind: DifferentialKind,
    since: string,
    labelSelector: OperationList["watched"],
  ): Promise<readonly unknown[]> {
    const name = this.#name(kind, markerName);
    const marker = {
      apiVersion: kind.apiVersion,
      kind: kind.kind,
      metadata: { name, labels: { [ownLabel]: this.#id, ...(labelSelector === "tier=a" ? { tier: "a" } : {}) } },
      ...least[kind.kind],
    };
    const made = await this.#send("POST", this.#collection(kind), JSON.stringify(marker));
    if (made.status !== 201) throw new Error(`the last ${kind.kind} was refused: ${JSON.stringify(made.body)}`);
    const selector = [`${ownLabel}=${this.#id}`, ...(labelSelector === "" ? [] : [labelSelector])].join(",");
    const watch = await this.#target.watch(
      `${this.#collection(kind)}?watch=true&resourceVersion=${since}&labelSelector=${encodeURIComponent(selector)}&timeoutSeconds=20`,
      "admin",
      agent,
    );
    const events: unknown[] = [];
    for (;;) {
      const event = await watch.next();
      if (event === undefined) throw new Error(`the watch of ${kind.plural} ended before the last object came`);
      if (at(event.object, "metadata.name") === name) break;
      events.push(event);
      if (event.type === "ERROR") break;
    }
    await watch.close();
    return events;
  }

  /** Deletes what a list made at cluster scope. */
  async clear(kind: DifferentialKind): Promise<void> {
    const selected = query({ labelSelector: `${ownLabel}=${this.#id}` });
    const { body } = await this.#send("GET", `${this.#collection(kind)}${selected}`);
    const items = at(body, "items");
    for (const item of Array.isArray(items) ? items : []) {
      if (at(item, "metadata.finalizers") === undefined) continue;
      await this.#send(
        "PATCH",
        `${this.#collection(kind)}/${String(at(item, "metadata.name"))}`,
        JSON.stringify({ metadata: { finalizers: null } }),
        { "content-type": patchTypes.merge },
      );
    }
    await this.#send("DELETE", `${this.#collection(kind)}${selected}`);
  }

  async #send(
    method: string,
    path: string,
    body?: string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<RawAnswer> {
    const answer = await this.#target.request({
      method,
      path,
      ...(body === undefined ? {} : { body }),
      headers: { ...agent, ...headers },
    });
    const read = { status: answer.status, body: parsed(answer), warnings: warningsOf(answer) };
    this.#remember(read.body);
    return read;
  }

  async #pages(kind: DifferentialKind, selectors: Selectors, limit: number): Promise<readonly RawAnswer[]> {
    const selected = this.#selected(kind, selectors);
    const pages: RawAnswer[] = [];
    let next = "";
    do {
      const page = await this.#send(
        "GET",
        `${this.#collection(kind)}${query({ ...selected, ...(limit === 0 ? {} : { limit: String(limit) }), ...(next === "" ? {} : { continue: next }) })}`,
      );
      pages.push(page);
      const token = at(page.body, "metadata.continue");
      next = typeof token === "string" ? token : "";
    } while (next !== "" && pages.length < mostPages);
    return pages;
  }

  #patch(operation: Extract<Operation, { readonly do: "patch" }>): unknown {
    const { kind } = operation;
    if (operation.type === "json") return operation.steps;
    const version = this.#versionOf(kind, operation.name, operation.version);
    if (operation.type === "apply")
      return {
        apiVersion: kind.apiVersion,
        kind: kind.kind,
        metadata: { name: this.#name(kind, operation.name), ...this.#owned(operation.metadata), ...version },
        ...operation.contents,
      };
    return Object.keys(version).length === 0
      ? operation.patch
      : { ...operation.patch, metadata: { ...(operation.patch["metadata"] as Json | undefined), ...version } };
  }

  /** Every object carries the list's label, so that lists do not see each other's. */
  #owned(metadata: Json): Json {
    return { ...metadata, labels: { ...(metadata["labels"] as Json | undefined), [ownLabel]: this.#id } };
  }

  #selected(kind: DifferentialKind, { labelSelector, fieldSelector }: Selectors): Readonly<Record<string, string>> {
    return {
      labelSelector: [`${ownLabel}=${this.#id}`, ...(labelSelector === undefined ? [] : [labelSelector])].join(","),
      ...(fieldSelector === undefined
        ? {}
        : { fieldSelector: fieldSelector.replace(/<(.*)>/, (_, name: string) => this.#name(kind, name)) }),
    };
  }

  #name(kind: DifferentialKind, name: string): string {
    return kind.namespaced ? name : `${this.#id}-${name}`;
  }

  #collection({ apiVersion, plural, namespaced }: DifferentialKind): string {
    return `${apiVersion.includes("/") ? "/apis" : "/api"}/${apiVersion}${namespaced ? `/namespaces/${this.#id}` : ""}/${plural}`;
  }

  #path(kind: DifferentialKind, name: string, subresource: string): string {
    return `${this.#collection(kind)}/${this.#name(kind, name)}${subresource === "" ? "" : `/${subresource}`}`;
  }

  async #live(kind: DifferentialKind, name: string): Promise<Json | undefined> {
    const { status, body } = await this.#send("GET", this.#path(kind, name, ""));
    return status === 200 ? (body as Json) : undefined;
  }

  #versionOf(kind: DifferentialKind, name: string, version: Version): { readonly resourceVersion?: string } {
    const known = this.#versions.get(`${kind.kind}/${this.#name(kind, name)}`);
    switch (version) {
      case "none":
        return {};
      case "fresh":
      case "stale": {
        const seen = version === "fresh" ? known?.at(-1) : known?.[0];
        return seen === undefined ? {} : { resourceVersion: seen };
      }
      case "future":
        return known === undefined ? {} : { resourceVersion: "999999999" };
    }
  }

  #remember(body: unknown): void {
    const [name, kind, version] = [at(body, "metadata.name"), at(body, "kind"), at(body, "metadata.resourceVersion")];
    if (typeof name !== "string" || typeof kind !== "string" || typeof version !== "string") return;
    const known = this.#versions.get(`${kind}/${name}`) ?? [];
    if (known.at(-1) !== version) this.#versions.set(`${kind}/${name}`, [...known, version]);
  }
}

function query(parameters: Readonly<Record<string, string>> | object): string {
  const entries = Object.entries(parameters).filter((entry): entry is [string, string] => typeof entry[1] === "string");
  return entries.length === 0 ? "" : `?${new URLSearchParams(entries).toString()}`;
}

function parsed({ text }: ApiAnswer): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function warningsOf({ headers }: ApiAnswer): readonly string[] {
  const given = headers["warning"];
  if (given === undefined) return [];
  const joined = typeof given === "string" ? given : given.join(", ");
  return joined.split(/, (?=299 )/);
}
