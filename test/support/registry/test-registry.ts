import { createHash } from "node:crypto";
import { type IncomingMessage, type ServerResponse, createServer as createHttpServer } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo } from "node:net";

/** What a registry does to one request instead of answering it. */
export type Fault =
  /** Closes the connection after so many bytes of the body; the length in the header is the right one. */
  | { readonly do: "cut"; readonly afterBytes: number }
  /** Ends the body early, and without a length in the header. */
  | { readonly do: "shorten"; readonly toBytes: number }
  | {
      readonly do: "status";
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
    }
  /** Other bytes of the same length. */
  | { readonly do: "garble" }
  | { readonly do: "redirect"; readonly to: string }
  /** So many bytes, and then nothing more. */
  | { readonly do: "stall"; readonly afterBytes: number }
  /** One byte at a time, without end. */
  | { readonly do: "trickle"; readonly everyMs: number };

export interface SeenRequest {
  readonly method: string;
  readonly target: string;
  readonly authorization: string | undefined;
  readonly range: string | undefined;
  /** Bytes of the body that were handed to the connection. */
  sentBytes: number;
}

export interface TestRegistryOptions {
  readonly tls?: { readonly certificate: string; readonly key: string };
  readonly auth?: { readonly kind: "basic" | "bearer"; readonly user: string; readonly password: string };
  /** Ranges are not understood. */
  readonly withoutRanges?: boolean;
}

export interface TestRegistry {
  readonly host: string;
  readonly seen: readonly SeenRequest[];
  /** By digest; tags as `path:tag`. */
  readonly manifests: Map<string, { readonly bytes: Uint8Array; readonly mediaType: string }>;
  readonly blobs: Map<string, Uint8Array>;
  addBlob(bytes: Uint8Array): string;
  /** Makes an OCI manifest of layers and gives its digest. */
  addImage(
    path: string,
    layers: readonly { readonly mediaType?: string; readonly bytes: Uint8Array; readonly plain?: Uint8Array }[],
    options?: {
      readonly tag?: string;
      readonly architecture?: string;
      readonly labels?: Readonly<Record<string, string>>;
    },
  ): string;
  addManifest(value: object, mediaType: string, names?: readonly string[]): string;
  /** The next requests whose target holds `part` meet these faults, one each. */
  plan(part: string, ...faults: readonly (Fault | "none")[]): void;
  /** Bytes of blobs and manifests whose target holds `part` that left this registry. */
  sentOf(part: string): number;
  close(): Promise<void>;
}

export const sha256Of = (bytes: Uint8Array | string): string =>
  `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

const ociManifest = "application/vnd.oci.image.manifest.v1+json";

/** A scripted registry on loopback that records its requests. */
export async function startTestRegistry(options: TestRegistryOptions = {}): Promise<TestRegistry> {
  const seen: SeenRequest[] = [];
  const manifests: TestRegistry["manifests"] = new Map();
  const blobs: TestRegistry["blobs"] = new Map();
  const plans: { readonly part: string; readonly faults: (Fault | "none")[] }[] = [];
  const uploads = new Set<string>();
  let tokens = 0;
  const { auth } = options;
  const basic = auth === undefined ? "" : `Basic ${Buffer.from(`${auth.user}:${auth.password}`).toString("base64")}`;

  function allowed(request: IncomingMessage, response: ServerResponse, origin: string): boolean {
    if (auth === undefined) return true;
    const shown = request.headers.authorization;
    if (auth.kind === "basic" ? shown === basic : shown?.startsWith("Bearer token-") === true) return true;
    const challenge = auth.kind === "basic" ? 'Basic realm="test"' : `Bearer realm="${origin}/token",service="test"`;
    response
      .writeHead(401, { "www-authenticate": challenge, "content-type": "application/json" })
      .end('{"errors":[{"code":"UNAUTHORIZED","message":"s3cret words"}]}');
    return false;
  }

  function answer(request: IncomingMessage, response: ServerResponse, record: SeenRequest, body: Uint8Array): void {
    const target = record.target;
    const origin = `${options.tls === undefined ? "http" : "https"}://${request.headers.host}`;
    if (auth?.kind === "bearer" && target.startsWith("/token")) {
      if (record.authorization === basic)
        response.end(JSON.stringify({ token: `token-${(tokens += 1)}`, expires_in: 300 }));
      else response.writeHead(401).end();
      return;
    }
    const plan = plans.find(({ part, faults }) => target.includes(part) && faults.length > 0);
    const fault = plan?.faults.shift() ?? "none";
    if (fault !== "none" && fault.do === "status")
      return void response.writeHead(fault.status, fault.headers).end(fault.body ?? "");
    if (fault !== "none" && fault.do === "redirect") return void response.writeHead(307, { location: fault.to }).end();
    if (!allowed(request, response, origin)) return;
    if (target === "/v2/") return void response.end("{}");
    const absent = () => void response.writeHead(404).end('{"errors":[{"code":"MANIFEST_UNKNOWN"}]}');
    const manifest = /^\/v2\/(.+)\/manifests\/([^/]+)$/.exec(target);
    if (manifest !== null) {
      const [, path = "", name = ""] = manifest;
      if (record.method === "PUT") {
        const stored = { bytes: body, mediaType: request.headers["content-type"] ?? "" };
        manifests.set(sha256Of(body), stored);
        if (!name.startsWith("sha256:")) manifests.set(`${path}:${name}`, stored);
        return void response.writeHead(201).end();
      }
      const found = manifests.get(name.startsWith("sha256:") ? name : `${path}:${name}`);
      return found === undefined
        ? absent()
        : sendBody(response, record, found.bytes, { "content-type": found.mediaType }, fault, 200);
    }
    const upload = /^\/v2\/(.+)\/blobs\/uploads\/(.*)$/.exec(target);
    if (upload !== null) {
      if (record.method === "POST") {
        const id = String(uploads.size);
        uploads.add(id);
        return void response.writeHead(202, { location: `/v2/${upload[1]}/blobs/uploads/${id}?state=x` }).end();
      }
      const digest = new URL(target, "http://x").searchParams.get("digest") ?? "";
      if (sha256Of(body) !== digest) return void response.writeHead(400).end();
      blobs.set(digest, body);
      return void response.writeHead(201).end();
    }
    const blob = blobs.get(/\/blobs\/(sha256:[0-9a-f]+)$/.exec(target)?.[1] ?? "");
    if (blob === undefined) return absent();
    if (record.method === "HEAD") return void response.writeHead(200, { "content-length": blob.length }).end();
    const from = options.withoutRanges === true ? 0 : Number(/^bytes=([0-9]+)-$/.exec(record.range ?? "")?.[1] ?? 0);
    if (from > 0 && from >= blob.length) return void response.writeHead(416).end();
    sendBody(
      response,
      record,
      blob.subarray(from),
      from > 0 ? { "content-range": `bytes ${from}-${blob.length - 1}/${blob.length}` } : {},
      fault,
      from > 0 ? 206 : 200,
    );
  }

  const server =
    options.tls === undefined
      ? createHttpServer((request, response) => receive(request, response))
      : createHttpsServer({ cert: options.tls.certificate, key: options.tls.key }, (request, response) =>
          receive(request, response),
        );

  function receive(request: IncomingMessage, response: ServerResponse): void {
    const record: SeenRequest = {
      method: request.method ?? "",
      target: request.url ?? "",
      authorization: request.headers.authorization,
      range: request.headers.range,
      sentBytes: 0,
    };
    seen.push(record);
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.once("end", () => answer(request, response, record, Buffer.concat(chunks)));
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const registry: TestRegistry = {
    host: `127.0.0.1:${port}`,
    seen,
    manifests,
    blobs,
    addBlob(bytes) {
      const digest = sha256Of(bytes);
      blobs.set(digest, bytes);
      return digest;
    },
    addManifest(value, mediaType, names = []) {
      const bytes = Buffer.from(JSON.stringify(value));
      for (const name of [sha256Of(bytes), ...names]) manifests.set(name, { bytes, mediaType });
      return sha256Of(bytes);
    },
    addImage(path, layers, { tag, architecture = "amd64", labels } = {}) {
      const config = Buffer.from(
        JSON.stringify({
          architecture,
          os: "linux",
          ...(labels === undefined ? {} : { config: { Labels: labels } }),
          rootfs: { type: "layers", diff_ids: layers.map(({ bytes, plain }) => sha256Of(plain ?? bytes)) },
        }),
      );
      const described = (mediaType: string, bytes: Uint8Array) => ({
        mediaType,
        digest: registry.addBlob(bytes),
        size: bytes.length,
      });
      const value = {
        schemaVersion: 2,
        mediaType: ociManifest,
        config: described("application/vnd.oci.image.config.v1+json", config),
        layers: layers.map(({ mediaType, bytes, plain }) =>
          described(mediaType ?? `application/vnd.oci.image.layer.v1.tar${plain === undefined ? "" : "+gzip"}`, bytes),
        ),
      };
      return registry.addManifest(value, ociManifest, tag === undefined ? [] : [`${path}:${tag}`]);
    },
    plan: (part, ...faults) => void plans.push({ part, faults: [...faults] }),
    sentOf: (part) =>
      seen.filter(({ target }) => target.includes(part)).reduce((sum, { sentBytes }) => sum + sentBytes, 0),
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
  return registry;
}

function sendBody(
  response: ServerResponse,
  record: SeenRequest,
  bytes: Uint8Array,
  headers: Readonly<Record<string, string>>,
  fault: Fault | "none",
  status: number,
): void {
  const plain = fault === "none" ? undefined : fault.do;
  response.writeHead(status, plain === "shorten" ? headers : { ...headers, "content-length": String(bytes.length) });
  const send = (part: Uint8Array) => {
    record.sentBytes += part.length;
    return part;
  };
  if (fault === "none") return void response.end(send(bytes));
  switch (fault.do) {
    case "cut":
      return void response.write(send(bytes.subarray(0, fault.afterBytes)), () => response.destroy());
    case "shorten":
      return void response.end(send(bytes.subarray(0, fault.toBytes)));
    case "garble":
      return void response.end(send(bytes.map((byte) => byte ^ 1)));
    case "stall":
      return void response.write(send(bytes.subarray(0, fault.afterBytes)));
    case "trickle": {
      let at = 0;
      const timer = setInterval(() => response.write(send(bytes.subarray(at, (at += 1)))), fault.everyMs);
      response.once("close", () => clearInterval(timer));
      return;
    }
    case "status":
    case "redirect":
      throw new Error("bug: answered before");
  }
}
