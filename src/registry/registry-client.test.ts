import { expect, test } from "vitest";
import type { McoError } from "../api/errors.ts";
import { systemClock } from "../ports/node/index.ts";
import { parseAuthFile } from "./auth-file.ts";
import { registryClient } from "./registry-client.ts";
import type { Wire, WireRequest } from "./wire.ts";

const never = new AbortController().signal;

interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** A client whose requests a function answers, with a record of the requests and a clock that only the test moves. */
function client(auths: object, answer: (request: WireRequest) => Answer) {
  const asked: WireRequest[] = [];
  const time = { now: 0 };
  const wire: Wire = async (request) => {
    asked.push(request);
    const { status, headers = {}, body = "" } = answer(request);
    return {
      status,
      headers,
      chunks: (async function* () {
        yield Buffer.from(body);
      })(),
    };
  };
  const made = registryClient({
    wire,
    clock: { ...systemClock, monotonic: () => time.now },
    auth: parseAuthFile(JSON.stringify({ auths })),
    certificates: async (host) => [`certificates of ${host}`],
  });
  return { client: made, asked, time };
}

const bearer = (request: WireRequest, realm = "https://auth.example.com/token"): Answer => {
  if (request.url.pathname === "/token") return { status: 200, body: '{"access_token":"t1","expires_in":100}' };
  return request.headers["authorization"] === undefined
    ? { status: 401, headers: { "www-authenticate": `Bearer realm="${realm}",service="example"` } }
    : { status: 200, body: "{}" };
};
const repository = { host: "quay.io", path: "os/a", insecure: false };

test("docker.io is served by another host", async () => {
  const { client: at, asked } = client({}, () => ({ status: 200, body: "{}" }));
  await at.manifest({ ...repository, host: "docker.io" }, "v1", never);
  expect(asked.map(({ url }) => url.href)).toEqual(["https://registry-1.docker.io/v2/os/a/manifests/v1"]);
});

test("an identity token is exchanged in a body, never in an address, and the token is used until it is old", async () => {
  const { client: at, asked, time } = client({ "quay.io": { identitytoken: "s3cret" } }, bearer);
  await at.manifest(repository, "v1", never);
  const exchange = asked[1];
  expect(exchange).toMatchObject({
    method: "POST",
    trust: { authorities: ["certificates of auth.example.com", "certificates of quay.io"], unverified: false },
  });
  expect(
    Object.fromEntries(
      new URLSearchParams(Buffer.from(exchange?.body instanceof Uint8Array ? exchange.body : "").toString()),
    ),
  ).toMatchObject({
    grant_type: "refresh_token",
    refresh_token: "s3cret",
    service: "example",
    scope: "repository:os/a:pull",
  });
  expect(asked.map(({ url }) => url.href).join(" ")).not.toContain("s3cret");
  expect(asked[2]?.headers["authorization"]).toBe("Bearer t1");

  await at.manifest(repository, "v2", never);
  expect(asked.length).toBe(4);
  time.now = 91_000;
  await at.manifest(repository, "v3", never);
  expect(asked.slice(4).map(({ url, headers }) => [url.pathname, headers["authorization"]])).toEqual([
    ["/v2/os/a/manifests/v3", undefined],
    ["/token", undefined],
    ["/v2/os/a/manifests/v3", "Bearer t1"],
  ]);
});

test("a registry token is sent unchanged", async () => {
  const { client: at, asked } = client({ "quay.io": { registrytoken: "rt" } }, bearer);
  await at.manifest(repository, "v1", never);
  expect(asked.map(({ headers }) => headers["authorization"])).toEqual([undefined, "Bearer rt"]);
});

test("an anonymous token is requested if a registry requires one", async () => {
  const { client: at, asked } = client({}, bearer);
  await at.manifest(repository, "v1", never);
  expect(asked[1]?.url.href).toBe("https://auth.example.com/token?service=example&scope=repository%3Aos%2Fa%3Apull");
  expect(asked[1]?.headers["authorization"]).toBeUndefined();
});

test.for([
  {
    title: "a token service without TLS",
    answer: (request: WireRequest) => bearer(request, "http://auth.example.com/token"),
    problem: "its token service does not speak TLS",
  },
  {
    title: "a token service that is not an address",
    answer: (request: WireRequest) => bearer(request, "file:///etc/passwd"),
    problem: "its token service has no address",
  },
  {
    title: "an empty token",
    answer: (request: WireRequest) =>
      request.url.pathname === "/token" ? { status: 200, body: '{"token":"a\\r\\nb"}' } : bearer(request),
    problem: "its token service gave no token",
  },
  {
    title: "a token that is not JSON",
    answer: (request: WireRequest) =>
      request.url.pathname === "/token" ? { status: 200, body: "s3cret" } : bearer(request),
    problem: "its token service gave no JSON",
  },
  {
    title: "an endless token",
    answer: (request: WireRequest) =>
      request.url.pathname === "/token" ? { status: 200, body: "x".repeat(300_000) } : bearer(request),
    problem: "the token is too large",
  },
  {
    title: "a redirect to a name with a password",
    answer: () => ({ status: 302, headers: { location: "https://user:word@cdn.example.com/" } }),
    problem: "it redirects to an invalid address",
  },
])("$title gets nothing from us", async ({ answer, problem }) => {
  const auth = { "quay.io": { auth: Buffer.from("user:s3cret").toString("base64") } };
  const { client: at, asked } = client(auth, answer);
  const failed: unknown = await at.manifest(repository, "v1", never).catch((error: unknown) => error);
  expect(failed).toMatchObject({ facts: { problem, retryable: false } });
  expect(JSON.stringify(failed) + String(failed)).not.toContain("s3cret");
  expect(asked.filter(({ url }) => url.protocol !== "https:")).toEqual([]);
});

test("a registry may state when to retry", async () => {
  const { client: at } = client({}, () => ({
    status: 429,
    headers: { "retry-after": "7" },
    body: '{"errors":[{"code":"TOOMANYREQUESTS","message":"s3cret"}]}',
  }));
  await expect(at.manifest(repository, "v1", never)).rejects.toMatchObject({
    code: "MCO_IMAGE_UNREACHABLE",
    facts: { status: 429, retryAfterMs: 7000, retryable: true, says: "TOOMANYREQUESTS" },
  });
});

test("a part of a blob that was not requested is refused", async () => {
  const { client: at } = client({}, () => ({
    status: 206,
    headers: { "content-range": "bytes 50-99/100" },
    body: "x",
  }));
  await expect(at.blob(repository, `sha256:${"1".repeat(64)}`, 10, never)).rejects.toMatchObject({
    code: "MCO_IMAGE_UNREACHABLE",
    facts: { retryable: true },
  });
});

test("a registry that redirects uploads elsewhere gets no blob", async () => {
  const { client: at, asked } = client({}, () => ({
    status: 202,
    headers: { location: "https://cdn.example.com/upload" },
  }));
  await expect(at.putBlob(repository, `sha256:${"1".repeat(64)}`, Buffer.from("x"), never)).rejects.toMatchObject({
    code: "MCO_IMAGE_UNREACHABLE",
  });
  expect(asked.map(({ method }) => method)).toEqual(["POST"]);
});

test.for<[title: string, answer: (request: WireRequest) => Answer, shown: string | undefined]>([
  ["the registry", () => ({ status: 400, body: "the quota is used up" }), "the quota is used up"],
  [
    "its token service",
    (request) =>
      request.url.pathname === "/token"
        ? { status: 400, body: "a secret of the cluster's network" }
        : bearer(request, "https://inside.example.com/token"),
    undefined,
  ],
  [
    "what it redirects to",
    ({ url }) =>
      url.host === "inside.example.com"
        ? { status: 400, body: "a secret of the cluster's network" }
        : { status: 307, headers: { location: "https://inside.example.com/" } },
    undefined,
  ],
])("words of a refusal are shown where the registry says them: %s [registry-client-1]", async ([, answer, shown]) => {
  const { client: at } = client({}, answer);
  const failed: unknown = await at
    .hasBlob(repository, `sha256:${"a".repeat(64)}`, never)
    .catch((error: unknown) => error);
  expect(failed).toMatchObject({ facts: { status: 400, action: "push" } });
  expect(JSON.stringify(failed)).not.toContain("secret");
  expect((failed as McoError).facts["problem"]).toBe(shown);
});
