import type { HttpRequest } from "../../../src/ports/http.ts";

/** Requests of one sort by one writer. */
export interface Count {
  /** As the field manager or, without one, the user agent says. */
  readonly writer: string;
  readonly verb: "read" | "watch" | "write" | "refused";
  /** Plural name of the kind, with the subresource: `nodes/status`. */
  readonly kind: string;
  requests: number;
  /** Of request bodies. */
  bytes: number;
}

export type Counts = readonly Count[];

/** Says of a path which kind it is about, and which subresource. */
export function kindOf(path: string): string {
  const parts = path.split("/").filter((part) => part !== "");
  const rest = parts.slice(parts[0] === "api" ? 2 : 3);
  // A namespace is itself a kind, when nothing of a kind in it follows.
  const at = rest[0] === "namespaces" && rest.length > 2 ? rest.slice(2) : rest;
  return at[2] === undefined ? (at[0] ?? path) : `${at[0]}/${at[2]}`;
}

const writerOf = (query: URLSearchParams, agent: string) => query.get("fieldManager") ?? agent.split("/", 1)[0] ?? "";

/** Counts requests by user, verb and resource. */
export function requestCounter(): { count(request: HttpRequest, status: number): void; take(): Counts } {
  let counts = new Map<string, Count>();
  return {
    count({ method, target, headers, body }, status) {
      const [path = "", query = ""] = target.split("?", 2);
      const parameters = new URLSearchParams(query);
      const writer = writerOf(parameters, String(headers["user-agent"] ?? ""));
      const verb =
        status >= 400 ? "refused" : parameters.get("watch") === "true" ? "watch" : method === "GET" ? "read" : "write";
      const kind = kindOf(path);
      const id = `${writer} ${verb} ${kind}`;
      const one = counts.get(id) ?? { writer, verb, kind, requests: 0, bytes: 0 };
      one.requests += 1;
      one.bytes += body?.length ?? 0;
      counts.set(id, one);
    },
    take() {
      const taken = [...counts.values()].toSorted((a, b) => b.requests - a.requests);
      counts = new Map();
      return taken;
    },
  };
}
