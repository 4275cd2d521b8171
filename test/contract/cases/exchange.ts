import { expect } from "vitest";
import type { Api, Json, Reply, TestUser } from "../api-target.ts";
import type { ContractCase } from "./case-fixture.ts";

/**
 * One request: verb or kind of patch, path, body, and options. A path that does not begin with a slash is
 * `group/version:plural…` in the case's namespace; `{ns}` stands for that namespace wherever it occurs.
 */
export type Call = readonly [
  verb: "GET" | "POST" | "PUT" | "DELETE" | "merge" | "json" | "strategic" | "apply",
  path: string,
  body?: unknown,
  more?: { readonly as?: TestUser; readonly headers?: Readonly<Record<string, string>> },
];

/** A row of a table of requests: preparing requests, the request, and its answer. */
export interface Exchange {
  readonly title: string;
  /** Requests that must succeed first. */
  readonly before?: readonly Call[];
  readonly call: Call;
  readonly status: number;
  /** The message of a Status: the whole, or a pattern. */
  readonly message?: string | RegExp;
  /** `reason field` of each cause of a Status. */
  readonly causes?: readonly string[];
  /** What the answer contains. A dotted path leads to a value; `undefined`: it is absent. */
  readonly has?: Json;
  /** The whole answer, if it is not JSON. */
  readonly text?: string;
  /** Texts of the Warning headers. */
  readonly warnings?: readonly string[];
}

const patchTypes = {
  merge: "application/merge-patch+json",
  json: "application/json-patch+json",
  strategic: "application/strategic-merge-patch+json",
  apply: "application/apply-patch+yaml",
};

/** Cases of a table of requests. */
export function exchanges(rows: readonly Exchange[]): readonly ContractCase[] {
  return rows.map(({ title, before = [], call, status, message, causes, has = {}, text, warnings }) => ({
    title,
    async run(api, namespace) {
      for (const one of before) {
        const reply = await send(api, namespace, one);
        expect(reply.status, reply.text).toBeLessThan(300);
      }
      const reply = await send(api, namespace, call);
      const here = <T>(value: T): T => inNamespace(value, namespace);
      expect(reply.status, reply.text).toBe(status);
      if (message instanceof RegExp)
        expect(reply.at("message")).toMatch(
          new RegExp(message.source.replaceAll("\\{ns\\}", namespace), message.flags),
        );
      else if (message !== undefined) expect(reply.at("message")).toBe(here(message));
      if (causes !== undefined) expect(causesOf(reply)).toEqual(here(causes));
      for (const [path, value] of Object.entries(has)) expect(reply.at(path), path).toEqual(here(value));
      if (text !== undefined) expect(reply.text).toBe(text);
      if (warnings !== undefined) expect(warningsOf(reply)).toEqual(here(warnings));
    },
  }));
}

/** Sends one request of a table. */
export function send(api: Api, namespace: string, [verb, path, body, { as, headers = {} } = {}]: Call): Promise<Reply> {
  const who = as === undefined ? api : api.as(as);
  const type = verb in patchTypes ? { "content-type": patchTypes[verb as keyof typeof patchTypes] } : {};
  return who.send(verb in patchTypes ? "PATCH" : verb, pathOf(path, namespace), inNamespace(body, namespace), {
    ...type,
    ...inNamespace(headers, namespace),
  });
}

function pathOf(path: string, namespace: string): string {
  const colon = path.indexOf(":");
  if (path.startsWith("/") || colon < 0) return inNamespace(path, namespace);
  const groupVersion = path.slice(0, colon);
  return inNamespace(
    `${groupVersion === "v1" ? "/api/v1" : `/apis/${groupVersion}`}/namespaces/{ns}/${path.slice(colon + 1)}`,
    namespace,
  );
}

function inNamespace<T>(value: T, namespace: string): T {
  return value === undefined ? value : (JSON.parse(JSON.stringify(value).replaceAll("{ns}", namespace)) as T);
}

export function causesOf(reply: Reply): readonly string[] {
  const causes = (reply.at("details.causes") ?? []) as readonly { readonly reason?: string; readonly field?: string }[];
  return causes.map(({ reason = "", field = "" }) => `${reason} ${field}`.trim());
}

export function warningsOf(reply: Reply): readonly string[] {
  const given = reply.headers["warning"];
  const text = given === undefined ? "" : typeof given === "string" ? given : given.join(", ");
  return [...text.matchAll(/299 - "((?:[^"\\]|\\.)*)"/g)].map(([, warning = ""]) => warning.replaceAll('\\"', '"'));
}
