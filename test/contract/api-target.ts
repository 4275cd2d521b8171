/** The API server under test: this project's in process, this project's over TLS, or any other over HTTPS. */
export interface ApiTarget {
  /** Sends one request; the whole answer is read. */
  request(call: ApiCall): Promise<ApiAnswer>;
  /** Opens a watch; `next` resolves with the next event, `undefined` at the end. */
  watch(path: string, user?: TestUser, headers?: Readonly<Record<string, string>>): Promise<ApiWatch>;
}

/** All users that cases act as. Each target authenticates them in its own way. */
export type TestUser = "admin" | "alice" | "bob" | "nobody" | "node-a" | "node-b";

export interface ApiCall {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly user?: TestUser;
}

export interface ApiAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly text: string;
}

export interface WatchEvent {
  readonly type: string;
  readonly object: Json;
}

export interface ApiWatch {
  readonly status: number;
  next(): Promise<WatchEvent | undefined>;
  close(): Promise<void>;
}

/** A JSON object, loosely typed. */
export interface Json {
  readonly [field: string]: unknown;
}

/** Users with the groups that every target gives them. */
export const testUsers: Readonly<
  Record<Exclude<TestUser, "nobody">, { readonly name: string; readonly groups: readonly string[] }>
> = {
  admin: { name: "admin", groups: ["system:masters"] },
  alice: { name: "alice", groups: ["developers"] },
  bob: { name: "bob", groups: [] },
  "node-a": { name: "system:node:node-a", groups: ["system:nodes"] },
  "node-b": { name: "system:node:node-b", groups: ["system:nodes"] },
};

/** Cuts a stream of text into JSON lines. */
export async function* jsonLines(body: AsyncIterable<string | Uint8Array>): AsyncGenerator<WatchEvent> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of body) {
    rest += typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true });
    for (let end = rest.indexOf("\n"); end >= 0; end = rest.indexOf("\n")) {
      const line = rest.slice(0, end);
      rest = rest.slice(end + 1);
      if (line.trim() !== "") yield JSON.parse(line) as WatchEvent;
    }
  }
}

/** Sends requests to a target and reads the answers. */
export class Api {
  readonly #target: ApiTarget;
  readonly #user: TestUser;

  constructor(target: ApiTarget, user: TestUser = "admin") {
    this.#target = target;
    this.#user = user;
  }

  as(user: TestUser): Api {
    return new Api(this.#target, user);
  }

  async send(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Reply> {
    const answer = await this.#target.request({
      method,
      path,
      ...(body === undefined ? {} : { body }),
      headers,
      user: this.#user,
    });
    return new Reply(answer);
  }

  get(path: string, headers?: Readonly<Record<string, string>>): Promise<Reply> {
    return this.send("GET", path, undefined, headers);
  }

  post(path: string, body: unknown): Promise<Reply> {
    return this.send("POST", path, body);
  }

  put(path: string, body: unknown): Promise<Reply> {
    return this.send("PUT", path, body);
  }

  delete(path: string, body?: unknown): Promise<Reply> {
    return this.send("DELETE", path, body);
  }

  patch(path: string, type: "merge" | "json" | "strategic" | "apply", body: unknown): Promise<Reply> {
    const types = {
      merge: "application/merge-patch+json",
      json: "application/json-patch+json",
      strategic: "application/strategic-merge-patch+json",
      apply: "application/apply-patch+yaml",
    };
    return this.send("PATCH", path, body, { "content-type": types[type] });
  }

  watch(path: string, headers?: Readonly<Record<string, string>>): Promise<ApiWatch> {
    return this.#target.watch(path, this.#user, headers);
  }
}

export class Reply {
  readonly status: number;
  readonly headers: ApiAnswer["headers"];
  readonly text: string;

  constructor({ status, headers, text }: ApiAnswer) {
    this.status = status;
    this.headers = headers;
    this.text = text;
  }

  get json(): Json {
    return JSON.parse(this.text) as Json;
  }

  /** The value at `metadata.labels.app`, `items.0.metadata.name`. */
  at(path: string): unknown {
    return at(this.json, path);
  }
}

/** The value at a dotted path. */
export function at(value: unknown, path: string): unknown {
  let found: unknown = value;
  for (const step of path.split("."))
    found = typeof found === "object" && found !== null ? (found as Json)[step] : undefined;
  return found;
}
