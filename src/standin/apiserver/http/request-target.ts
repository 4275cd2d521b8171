import { badRequest, type Refusal } from "../schema/status.ts";

/** The parsed request line, before routing. */
export type RequestTarget = ResourceTarget | PathTarget;

export interface PathTarget {
  readonly form: "path";
  readonly path: string;
  readonly query: URLSearchParams;
}

export interface ResourceTarget {
  readonly form: "resource";
  readonly verb: Verb;
  readonly path: string;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly subresource: string;
  /** Empty when the path names none. */
  readonly namespace: string;
  readonly name: string;
  readonly query: URLSearchParams;
}

export type Verb = "get" | "list" | "watch" | "create" | "update" | "patch" | "delete" | "deletecollection";

/** Splits a request line as `k8s.io/apiserver pkg/endpoints/request/requestinfo.go (master)` does. */
export function parseTarget(method: string, target: string): RequestTarget | Refusal {
  const mark = target.indexOf("?");
  const path = mark < 0 ? target : target.slice(0, mark);
  const query = new URLSearchParams(mark < 0 ? "" : target.slice(mark + 1));
  const parts: string[] = [];
  for (const raw of path.split("/")) {
    if (raw === "") continue;
    try {
      parts.push(decodeURIComponent(raw));
    } catch {
      return badRequest(`invalid path segment: ${raw}`);
    }
  }
  const other: PathTarget = { form: "path", path, query };

  const [root, ...rest] = parts;
  let group: string;
  if (root === "api") group = "";
  else if (root === "apis") {
    const named = rest.shift();
    if (named === undefined) return other;
    group = named;
  } else return other;
  const version = rest.shift();
  if (version === undefined || rest.length === 0) return other;

  let namespace = "";
  if (rest[0] === "namespaces" && rest[1] !== undefined) {
    const third = rest[2];
    namespace = rest[1];
    // `namespaces/x/status` and `namespaces/x/finalize` address the namespace, any other path addresses objects in it.
    if (third !== undefined && third !== "status" && third !== "finalize") rest.splice(0, 2);
    else if (group !== "") return other;
  }
  const [resource, name = "", ...deeper] = rest;
  if (resource === undefined || deeper.length > 1) return other;
  const subresource = deeper[0] ?? "";
  const verb = verbOf(method, name, query);
  if (verb === undefined) return other;
  return { form: "resource", verb, path, group, version, resource, subresource, namespace, name, query };
}

function verbOf(method: string, name: string, query: URLSearchParams): Verb | undefined {
  switch (method) {
    case "GET":
    case "HEAD":
      // As by the real server, who names an object gets it: k8s.io/apiserver pkg/endpoints/request/requestinfo.go (v0.34).
      if (name !== "") return "get";
      return isTrue(query.get("watch")) ? "watch" : "list";
    case "POST":
      return "create";
    case "PUT":
      return "update";
    case "PATCH":
      return "patch";
    case "DELETE":
      return name === "" ? "deletecollection" : "delete";
    default:
      return undefined;
  }
}

/** Booleans of query strings: present and neither `false` nor `0`. */
export function isTrue(value: string | null): boolean {
  return value !== null && value !== "false" && value !== "0";
}
