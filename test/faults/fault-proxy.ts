import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Agent, createServer, request as httpsRequest } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Authority, KeyPair } from "../../src/kube/certificates.ts";

/** One request as rules see it. */
export interface Call {
  readonly method: string;
  readonly target: string;
  readonly isWatch: boolean;
  /** Common name of the client certificate; empty for those who bring a token. */
  readonly user: string;
  /** Of the client certificate. */
  readonly serialNumber: string;
}

/** What happens to a request instead of being passed on. */
export type Fault =
  /** Nothing reaches the server until `over` resolves; then the request goes on as usual. */
  | { readonly do: "hold"; readonly over: Promise<unknown> }
  /** The server gets the request at once, the caller the answer late. */
  | { readonly do: "delay"; readonly milliseconds: number }
  /** The proxy answers instead of the server. */
  | { readonly do: "answer"; readonly status: number; readonly reason: string; readonly retryAfterSeconds?: number }
  /** The server carries out the request, and the caller gets nothing of the answer, or half of it. */
  | { readonly do: "lose"; readonly part: "all" | "half" }
  /** A watch gets the event that its resourceVersion is too old. */
  | { readonly do: "expire" };

export type Rule = (call: Call) => Fault | undefined;

interface Open {
  readonly call: Call;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
}

export interface ProxyOptions {
  /**
   * Issues the proxy's serving certificates, and the client certificates under which it passes on requests of callers
   * with certificates.
   */
  readonly authority: Authority;
  /** `https://host:port` of the API server, once it is known. */
  readonly upstream: () => string;
  /** The token lifetime that callers see; the proxy refuses older tokens. */
  readonly tokenLifeMs: number;
}

const statusBody = (code: number, reason: string, retryAfterSeconds?: number) =>
  JSON.stringify({
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    reason,
    message: `a fault: ${reason}`,
    code,
    ...(retryAfterSeconds === undefined ? {} : { details: { retryAfterSeconds } }),
  });

/**
 * A connection to the API server that can be made faulty. The proxy terminates TLS with a replaceable certificate, and
 * connects to the server with the caller's token, or with a certificate in the caller's name.
 */
export class FaultProxy {
  readonly url: string;
  /** How many watches ended in a 410 since the start: from the server or from a rule. */
  expiredWatches = 0;
  /** How many requests were refused because their token had lived too long. */
  expiredTokens = 0;
  readonly #options: ProxyOptions;
  readonly #server: ReturnType<typeof createServer>;
  readonly #rules = new Set<Rule>();
  readonly #open = new Set<Open>();
  readonly #agents = new Map<string, Promise<Agent>>();
  readonly #tokens = new Map<string, number>();

  private constructor(options: ProxyOptions, server: ReturnType<typeof createServer>) {
    this.#options = options;
    this.#server = server;
    this.url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("request", (incoming: IncomingMessage, outgoing: ServerResponse) => {
      this.#pass(incoming, outgoing).catch(() => outgoing.destroy());
    });
  }

  static async start(options: ProxyOptions): Promise<FaultProxy> {
    const { certificate, key } = await FaultProxy.servingPair(options.authority);
    const server = createServer({
      cert: certificate,
      key,
      ca: options.authority.certificate,
      requestCert: true,
      rejectUnauthorized: false,
      ALPNProtocols: ["http/1.1"],
    });
    server.on("tlsClientError", () => undefined);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new FaultProxy(options, server);
  }

  static servingPair(authority: Authority): Promise<KeyPair> {
    return authority.issue({ commonName: "fault-proxy", usage: "server", hosts: ["127.0.0.1"] });
  }

  /** Serves with another certificate from now on, and ends all connections that were made under the last. */
  replaceCertificate(pair: KeyPair): void {
    this.#server.setSecureContext({ cert: pair.certificate, key: pair.key, ca: this.#options.authority.certificate });
    this.cutConnections();
  }

  /** Applies a rule to every request that begins while `work` runs. */
  async during(rule: Rule, work: () => Promise<void>): Promise<void> {
    this.#rules.add(rule);
    try {
      await work();
    } finally {
      this.#rules.delete(rule);
    }
  }

  /** Breaks every connection, whatever is on it. */
  cutConnections(): void {
    this.#server.closeAllConnections();
  }

  /** `break`: the connection is cut; `end`: the stream ends as if the server had ended it. */
  cutWatches(how: "break" | "end"): number {
    const watches = [...this.#open].filter(({ call }) => call.isWatch);
    for (const { outgoing } of watches) {
      if (how === "end" && outgoing.headersSent) outgoing.end();
      else outgoing.destroy();
    }
    return watches.length;
  }

  async close(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
    for (const agent of this.#agents.values()) (await agent).destroy();
  }

  /** Connections to the server as a user; those of callers with tokens have no certificate. */
  #agentFor(name: string, organizations: readonly string[]): Promise<Agent> {
    const { authority } = this.#options;
    const id = JSON.stringify([name, organizations]);
    const make = async () => {
      const pair =
        name === "" ? undefined : await authority.issue({ commonName: name, organizations, usage: "client" });
      return new Agent({
        ca: authority.certificate,
        ...(pair === undefined ? {} : { cert: pair.certificate, key: pair.key }),
        keepAlive: false,
      });
    };
    const agent = this.#agents.get(id) ?? make();
    this.#agents.set(id, agent);
    return agent;
  }

  async #pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const peer = (incoming.socket as TLSSocket).getPeerCertificate();
    const names = (value: string | string[] | undefined): string[] =>
      value === undefined ? [] : typeof value === "string" ? [value] : value;
    // Node.js gives an empty object when there is no certificate.
    const subject = "subject" in peer && (incoming.socket as TLSSocket).authorized ? peer.subject : undefined;
    const target = incoming.url ?? "/";
    const call: Call = {
      method: incoming.method ?? "GET",
      target,
      isWatch: target.includes("watch=true"),
      user: names(subject?.CN)[0] ?? "",
      serialNumber: subject === undefined ? "" : peer.serialNumber,
    };
    const one: Open = { call, incoming, outgoing };
    this.#open.add(one);
    outgoing.once("close", () => this.#open.delete(one));
    outgoing.on("error", () => undefined);
    incoming.on("error", () => undefined);
    const chunks: Buffer[] = [];
    for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);

    const token = incoming.headers.authorization;
    const expiresAt = token === undefined ? undefined : this.#tokens.get(token);
    if (expiresAt !== undefined && performance.now() > expiresAt) {
      this.expiredTokens += 1;
      return this.#answer(outgoing, 401, "Unauthorized");
    }
    const fault = this.#faultFor(call);
    if (fault?.do === "hold") await fault.over;
    if (fault?.do === "answer") return this.#answer(outgoing, fault.status, fault.reason, fault.retryAfterSeconds);
    if (fault?.do === "expire" && call.isWatch) {
      this.expiredWatches += 1;
      outgoing.writeHead(200, { "content-type": "application/json" });
      outgoing.end(`${JSON.stringify({ type: "ERROR", object: JSON.parse(statusBody(410, "Expired")) })}\n`);
      return;
    }
    if (outgoing.destroyed) return;
    const agent = await this.#agentFor(call.user, names(subject?.O));
    const { host: _host, connection: _connection, "accept-encoding": _encoding, ...headers } = incoming.headers;
    const url = new URL(this.#options.upstream());
    await new Promise<void>((resolve) => {
      const onward = httpsRequest(
        {
          agent,
          host: url.hostname,
          port: url.port,
          method: call.method,
          path: target,
          headers: { ...headers, host: url.host },
        },
        (answer) => {
          this.#relay(call, fault, answer, outgoing).then(resolve, () => {
            outgoing.destroy();
            resolve();
          });
        },
      );
      onward.on("error", () => {
        outgoing.destroy();
        resolve();
      });
      outgoing.once("close", () => onward.destroy());
      onward.end(Buffer.concat(chunks));
    });
  }

  #faultFor(call: Call): Fault | undefined {
    for (const rule of this.#rules) {
      const fault = rule(call);
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  async #relay(call: Call, fault: Fault | undefined, answer: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const status = answer.statusCode ?? 502;
    const {
      "content-length": _length,
      connection: _connection,
      "transfer-encoding": _transfer,
      ...headers
    } = answer.headers;
    if (call.isWatch && status === 200) {
      outgoing.writeHead(status, headers);
      outgoing.flushHeaders();
      for await (const chunk of answer as AsyncIterable<Buffer>) {
        if (outgoing.destroyed || outgoing.writableEnded) return;
        if (chunk.includes('"type":"ERROR"') && chunk.includes('"code":410')) this.expiredWatches += 1;
        if (fault?.do === "lose" && fault.part === "half") {
          outgoing.write(chunk.subarray(0, Math.floor(chunk.length / 2)), () => outgoing.destroy());
          return;
        }
        outgoing.write(chunk);
      }
      outgoing.end();
      return;
    }
    const parts: Buffer[] = [];
    for await (const chunk of answer as AsyncIterable<Buffer>) parts.push(chunk);
    let body = Buffer.concat(parts);
    if (call.isWatch && status === 410) this.expiredWatches += 1;
    if (call.method === "POST" && status === 201 && /\/serviceaccounts\/[^/]+\/token$/.test(call.target))
      body = this.#shorten(body);
    if (fault?.do === "delay") await new Promise((resolve) => setTimeout(resolve, fault.milliseconds));
    if (outgoing.destroyed) return;
    if (fault?.do === "lose" && fault.part === "all") {
      outgoing.destroy();
      return;
    }
    outgoing.writeHead(status, { ...headers, "content-length": body.length });
    if (fault?.do === "lose") outgoing.write(body.subarray(0, Math.floor(body.length / 2)), () => outgoing.destroy());
    else outgoing.end(body);
  }

  /** Shortens a token's lifetime: in the answer to its owner, and in this proxy's checks. */
  #shorten(body: Buffer): Buffer<ArrayBuffer> {
    const answer = JSON.parse(body.toString("utf8")) as { status: { token: string; expirationTimestamp: string } };
    const { tokenLifeMs } = this.#options;
    this.#tokens.set(`Bearer ${answer.status.token}`, performance.now() + tokenLifeMs);
    // Timestamps have no fractions: with the earlier second, a token never expires before its owner expects it.
    const status = {
      ...answer.status,
      expirationTimestamp: `${new Date(Date.now() + tokenLifeMs).toISOString().slice(0, 19)}Z`,
    };
    return Buffer.from(JSON.stringify({ ...answer, status }));
  }

  #answer(outgoing: ServerResponse, status: number, reason: string, retryAfterSeconds?: number): void {
    const body = statusBody(status, reason, retryAfterSeconds);
    outgoing.writeHead(status, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
      ...(retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) }),
    });
    outgoing.end(body);
  }
}
