import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { clockFrom, type Clock } from "../../ports/clock.ts";
import type { HttpResponse } from "../../ports/http.ts";
import { silentLogger } from "../../ports/logger.ts";
import type { Random } from "../../ports/random.ts";
import type { WebhookCaller } from "./admission/admission-webhooks.ts";
import { memoryStore } from "./storage/memory-store.ts";
import { createApiServer, type ApiServer, type ApiServerOptions } from "./server.ts";
import { sharedSecretKeys } from "./access/service-account-tokens.ts";
import type { Store } from "./storage/store.ts";

interface Json {
  readonly [field: string]: unknown;
}

/** A clock that only moves when told to. */
function manualClock(): Clock & { advance(milliseconds: number): void } {
  let now = Date.UTC(2030, 0, 1);
  let timers: { at: number; run: () => void }[] = [];
  return {
    ...clockFrom({
      now: () => now,
      monotonic: () => now,
      after(milliseconds, run) {
        const timer = { at: now + milliseconds, run };
        timers.push(timer);
        return () => {
          timers = timers.filter((one) => one !== timer);
        };
      },
    }),
    advance(milliseconds) {
      now += milliseconds;
      const due = timers.filter((timer) => timer.at <= now);
      timers = timers.filter((timer) => timer.at > now);
      for (const timer of due) timer.run();
    },
  };
}

/** The same chance each time. */
function countingRandom(): Random {
  let count = 0;
  return {
    next: () => (count++ % 97) / 97,
    uuid: () => `00000000-0000-4000-8000-${String(count++).padStart(12, "0")}`,
    bytes: (length) => new Uint8Array(length).fill(count++ % 256),
  };
}

const admin = { name: "admin", groups: ["system:masters"] };

function start(options: Partial<ApiServerOptions> = {}) {
  const clock = manualClock();
  const store: Store = memoryStore();
  const made = {
    store,
    clock,
    random: countingRandom(),
    log: silentLogger,
    tokenKeys: sharedSecretKeys(new Uint8Array(32)),
    ...options,
  };
  const server = createApiServer(made);
  return { server, clock, store: made.store };
}

async function call(
  server: ApiServer,
  method: string,
  target: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ status: number; json: Json; headers: HttpResponse["headers"] }> {
  const response = await server.as(admin)(
    { method, target, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) },
    new AbortController().signal,
  );
  return {
    status: response.status,
    headers: response.headers,
    json: JSON.parse(typeof response.body === "string" ? response.body : "null") as Json,
  };
}

async function watch(
  server: ApiServer,
  target: string,
  signal = new AbortController().signal,
): Promise<AsyncIterator<string | Uint8Array>> {
  const { body } = await server.as(admin)({ method: "GET", target, headers: {} }, signal);
  if (typeof body === "string" || body instanceof Uint8Array) throw new Error(String(body));
  return body[Symbol.asyncIterator]();
}

const lines = async (iterator: AsyncIterator<string | Uint8Array>): Promise<string[]> => {
  const { value, done } = await iterator.next();
  if (done === true) return ["end"];
  return String(value)
    .trim()
    .split("\n")
    .map((line) => {
      const event = JSON.parse(line) as {
        type: string;
        object: { metadata?: { name?: string }; message?: string; code?: number };
      };
      return `${event.type} ${event.object.metadata?.name ?? event.object.code ?? ""}`.trim();
    });
};

const maps = "/api/v1/namespaces/default/configmaps";
const map = (name: string, more: Json = {}) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, ...more } });
const revisionOf = (reply: { json: Json }) => String((reply.json["metadata"] as Json)["resourceVersion"]);

describe("watches", () => {
  test("a watcher that does not read is disconnected, the others continue", async () => {
    const { server } = start({ watchBacklog: 3 });
    const since = revisionOf(await call(server, "GET", maps));
    const slow = await watch(server, `${maps}?watch=true&resourceVersion=${since}`);
    const quick = await watch(server, `${maps}?watch=true&resourceVersion=${since}`);
    for (let number = 0; number < 5; number++) {
      await call(server, "POST", maps, map(`m${number}`));
      expect(await lines(quick)).toEqual([`ADDED m${number}`]);
    }
    expect(await lines(slow)).toEqual(["end"]);
  });

  test("a watch resumes after a restart, and one from before the history gets an error", async () => {
    const store = memoryStore();
    const first = start({ store });
    const early = revisionOf(await call(first.server, "POST", maps, map("a")));
    const late = revisionOf(await call(first.server, "POST", maps, map("b")));
    await call(first.server, "DELETE", `${maps}/a`);
    first.server.close();

    const second = start({ store });
    expect(await lines(await watch(second.server, `${maps}?watch=true&resourceVersion=${early}`))).toEqual([
      "ADDED b",
      "DELETED a",
    ]);
    store.compact(Number(late));
    expect(await lines(await watch(second.server, `${maps}?watch=true&resourceVersion=${early}`))).toEqual([
      "ERROR 410",
    ]);
    expect(await lines(await watch(second.server, `${maps}?watch=true&resourceVersion=${late}`))).toEqual([
      "DELETED a",
    ]);
  });

  test("the history in memory may be short: the store remembers the rest", async () => {
    const { server } = start({ history: { memoryEvents: 2, storedEvents: 1_000 } });
    const since = revisionOf(await call(server, "POST", maps, map("first")));
    for (let number = 0; number < 9; number++) await call(server, "POST", maps, map(`m${number}`));
    const seen = await lines(await watch(server, `${maps}?watch=true&resourceVersion=${since}`));
    expect(seen).toEqual(Array.from({ length: 9 }, (_, number) => `ADDED m${number}`));
  });

  test("changes of one large object are forgotten before they fill the memory or the disk [apiserver-limits-5]", async () => {
    const history = { memoryEvents: 1_000, storedEvents: 1_000, memoryBytes: 120_000, storedCharacters: 200_000 };
    const { server, store } = start({ history });
    const first = revisionOf(await call(server, "POST", maps, map("large")));
    const change = (number: number) => ({ ...map("large"), data: { text: `${number}`.padEnd(10_000, "x") } });
    const revisions: number[] = [];
    for (let number = 0; number < 100; number++)
      revisions.push(Number(revisionOf(await call(server, "PUT", `${maps}/large`, change(number)))));
    const kept = store.events(store.compactedThrough(), 1_000);
    const characters = kept.verdict === "events" ? kept.events.reduce((sum, { value }) => sum + value.length, 0) : 0;
    expect(characters).toBeGreaterThan(90_000);
    expect(characters).toBeLessThan(210_000);
    // What is in memory no more is read from the log, and what is in neither answers 410.
    const since = async (revision: string | number) =>
      lines(await watch(server, `${maps}?watch=true&resourceVersion=${revision}`));
    expect(await since(revisions.at(-3) ?? 0)).toEqual(["MODIFIED large", "MODIFIED large"]);
    expect(await since(revisions.at(-9) ?? 0)).toEqual(Array.from({ length: 8 }, () => "MODIFIED large"));
    expect(await since(first)).toEqual(["ERROR 410"]);
  });

  test("bookmarks arrive every minute, and a watch ends at its timeout", async () => {
    const { server, clock } = start();
    const iterator = await watch(
      server,
      `${maps}?watch=true&resourceVersion=0&allowWatchBookmarks=true&timeoutSeconds=90&fieldSelector=metadata.name%3Dnone`,
    );
    clock.advance(60_000);
    expect(await lines(iterator)).toEqual(["BOOKMARK"]);
    clock.advance(30_000);
    expect(await lines(iterator)).toEqual(["BOOKMARK"]);
    expect(await lines(iterator)).toEqual(["end"]);
  });

  test("a watch ends with its caller and with the server", async () => {
    const { server } = start();
    const caller = new AbortController();
    const one = await watch(server, `${maps}?watch=true&resourceVersion=1`, caller.signal);
    caller.abort();
    expect(await lines(one)).toEqual(["end"]);
    const other = await watch(server, "/api/v1/pods?watch=true");
    const waiting = lines(other);
    server.close();
    expect(await waiting).toEqual(["end"]);
  });
});

describe("the store behind the server", () => {
  test("everything is there after a restart, and nothing is bootstrapped twice", async () => {
    const store = memoryStore();
    const first = start({ store });
    const made = await call(first.server, "POST", maps, map("a"));
    const before = store.revision();
    const second = start({ store });
    expect(store.revision()).toBe(before);
    expect((await call(second.server, "GET", `${maps}/a`)).json).toEqual(made.json);
  });

  test("the same requests with the same chance give the same objects", async () => {
    const run = async () => {
      const { server } = start();
      await call(server, "POST", maps, { apiVersion: "v1", kind: "ConfigMap", metadata: { generateName: "x-" } });
      await call(server, "PATCH", `${maps}/y?fieldManager=me`, map("y"), {
        "content-type": "application/apply-patch+yaml",
      });
      return (await call(server, "GET", maps)).json;
    };
    expect(await run()).toEqual(await run());
  });
});

describe("events", () => {
  test("an event expires an hour after its last write", async () => {
    const { server, clock } = start();
    const path = "/api/v1/namespaces/default/events";
    const event = (name: string) => ({
      apiVersion: "v1",
      kind: "Event",
      metadata: { name },
      involvedObject: { kind: "Pod", name: "p", namespace: "default" },
      reason: "Started",
    });
    const names = async () =>
      ((await call(server, "GET", path)).json["items"] as { metadata: { name: string } }[]).map(
        ({ metadata }) => metadata.name,
      );
    await call(server, "POST", path, event("once"));
    await call(server, "POST", path, event("again"));
    clock.advance(1_800_000);
    await call(server, "PATCH", `${path}/again`, { count: 2 }, { "content-type": "application/merge-patch+json" });
    clock.advance(1_800_000);
    await call(server, "POST", path, event("new"));
    expect(await names()).toEqual(["again", "new"]);
    clock.advance(1_800_000);
    await call(server, "POST", path, event("newer"));
    expect(await names()).toEqual(["new", "newer"]);
  });

  test("a write removes 50 events that are due, and turns of the server's own the rest [apiserver-event-expiry-1]", async () => {
    const waiting: (() => void)[] = [];
    const errors: string[] = [];
    const { server, clock, store } = start({
      log: { ...silentLogger, error: (_fields, message) => void errors.push(message) },
      turns: {
        begin: () => Promise.resolve("begun"),
        goOn: ({ of }, signal) =>
          new Promise((resolve, reject) => {
            expect(of).toBe("system:apiserver");
            waiting.push(resolve);
            signal.addEventListener("abort", () => reject(signal.reason as Error));
          }),
      },
    });
    const write = async (name: string) => {
      const involvedObject = { kind: "Pod", name: "p", namespace: "default" };
      const event = { apiVersion: "v1", kind: "Event", metadata: { name }, involvedObject, reason: "Started" };
      expect((await call(server, "POST", "/api/v1/namespaces/default/events", event)).status).toBe(201);
    };
    const left = () => store.list({ limit: 1_000 }).items.filter(({ key }) => key.resource === "events").length;
    for (let index = 0; index < 240; index++) await write(`e${index}`);
    clock.advance(3_600_000);
    await write("first");
    expect(left()).toBe(191);
    await write("second");
    expect(left()).toBe(142);
    expect(waiting).toHaveLength(1);
    waiting.pop()?.();
    await vi.waitFor(() => expect(waiting).toHaveLength(1));
    expect(left()).toBe(92);
    waiting.pop()?.();
    await vi.waitFor(() => expect(waiting).toHaveLength(1));
    expect(left()).toBe(42);
    waiting.pop()?.();
    await vi.waitFor(() => expect(left()).toBe(2));
    expect(waiting).toEqual([]);
    // A server that closes leaves what is due to the next one.
    for (let index = 0; index < 60; index++) await write(`f${index}`);
    clock.advance(3_600_000);
    await write("last");
    expect(waiting).toHaveLength(1);
    server.close();
    await Promise.resolve();
    expect(left()).toBe(13);
    expect(errors).toEqual([]);
  });
});

describe("any input", () => {
  const anyJson = fc.jsonValue({ maxDepth: 4 });
  const anyText = fc.oneof(
    fc.string(),
    anyJson.map((value) => JSON.stringify(value)),
  );
  const kinds = [
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/nodes",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "/api/v1/namespaces/default/events",
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
  ];

  test("is answered, never with a failure of the server", async () => {
    const { server } = start();
    for (const kind of kinds)
      await call(
        server,
        "PATCH",
        `${kind}/there?fieldManager=x&force=true`,
        { apiVersion: kind.startsWith("/api/") ? "v1" : kind.split("/").slice(2, 4).join("/"), kind: "x" },
        { "content-type": "application/apply-patch+yaml" },
      );
    const send = async (method: string, target: string, type: string, body: string) => {
      const response = await server.as(admin)(
        { method, target, headers: { "content-type": type }, body },
        new AbortController().signal,
      );
      expect(
        response.status,
        `${method} ${target} ${type} ${body}: ${typeof response.body === "string" ? response.body : ""}`,
      ).not.toBe(500);
    };
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...kinds),
        fc.record(
          {
            metadata: fc.oneof(
              anyJson,
              fc.record({
                name: fc.constant("x"),
                labels: anyJson,
                finalizers: anyJson,
                ownerReferences: anyJson,
                managedFields: anyJson,
              }),
            ),
            spec: anyJson,
            status: anyJson,
            rules: anyJson,
            data: anyJson,
          },
          { requiredKeys: [] },
        ),
        async (kind, object) => {
          await send("POST", `${kind}?dryRun=All`, "application/json", JSON.stringify(object));
        },
      ),
      { numRuns: 300 },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom("POST", "PUT", "PATCH", "DELETE"),
        fc.constantFrom(
          ...kinds,
          "/api/v1/namespaces/default/serviceaccounts/default/token",
          "/apis/authorization.k8s.io/v1/subjectaccessreviews",
          "/api/v1/namespaces/default/pods/x/eviction",
        ),
        fc.constantFrom("", "/default"),
        fc.constantFrom(
          "application/json",
          "application/merge-patch+json",
          "application/json-patch+json",
          "application/strategic-merge-patch+json",
          "application/apply-patch+yaml?",
          "application/yaml",
          "application/vnd.kubernetes.protobuf",
        ),
        anyText,
        async (method, kind, name, type, body) => {
          await send(method, `${kind}${name}?fieldManager=x`, type.replace("?", ""), body);
        },
      ),
      { numRuns: 400 },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(
          "labelSelector",
          "fieldSelector",
          "continue",
          "limit",
          "resourceVersion",
          "timeoutSeconds",
          "dryRun",
        ),
        fc.string(),
        async (parameter, value) => {
          await send("GET", `${kinds[0] ?? ""}?${parameter}=${encodeURIComponent(value)}`, "application/json", "");
        },
      ),
      { numRuns: 200 },
    );
  });

  test("any patch of a stored object is answered, and what is stored stays readable", async () => {
    const { server } = start();
    await call(server, "POST", maps, map("there"));
    await call(server, "POST", "/api/v1/namespaces/default/pods", {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "there" },
      spec: { containers: [{ name: "c", image: "i" }] },
    });
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(
          `${maps}/there`,
          "/api/v1/namespaces/default/pods/there",
          "/api/v1/namespaces/default/pods/there/status",
        ),
        fc.constantFrom(
          "application/merge-patch+json",
          "application/strategic-merge-patch+json",
          "application/apply-patch+yaml",
        ),
        fc.record(
          {
            apiVersion: fc.constant("v1"),
            metadata: fc.oneof(
              anyJson,
              fc.record(
                { labels: anyJson, annotations: anyJson, managedFields: anyJson, deletionTimestamp: anyJson },
                { requiredKeys: [] },
              ),
            ),
            spec: anyJson,
            status: anyJson,
            data: anyJson,
          },
          { requiredKeys: [] },
        ),
        async (target, type, patch) => {
          const kind = target.includes("pods") ? "Pod" : "ConfigMap";
          const response = await server.as(admin)(
            {
              method: "PATCH",
              target: `${target}?fieldManager=x&force=true`,
              headers: { "content-type": type },
              body: JSON.stringify(type.includes("apply") ? { ...patch, apiVersion: "v1", kind } : patch),
            },
            new AbortController().signal,
          );
          // A 500 without a reason is a refusal that the real server gives, too.
          expect(
            typeof response.body === "string" ? response.body : "",
            `${target} ${type} ${JSON.stringify(patch)}`,
          ).not.toContain('"reason":"InternalError"');
          const read = await call(server, "GET", target);
          expect(read.status).toBe(200);
        },
      ),
      { numRuns: 400 },
    );
  });
});

describe("tokens", () => {
  test("a token ends with its time", async () => {
    const { server, clock } = start();
    const issued = await call(server, "POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: { expirationSeconds: 600 },
    });
    const { token } = issued.json["status"] as { token: string };
    const ask = async () =>
      (
        await server.handle(
          { method: "GET", target: "/version", headers: { authorization: `Bearer ${token}` } },
          {},
          new AbortController().signal,
        )
      ).status;
    expect(await ask()).toBe(200);
    clock.advance(599_000);
    expect(await ask()).toBe(200);
    clock.advance(2_000);
    expect(await ask()).toBe(401);
  });

  test("a modified token authenticates nobody", async () => {
    const { server } = start();
    const issued = await call(server, "POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: {},
    });
    const [head = "", , signature = ""] = (issued.json["status"] as { token: string }).token.split(".");
    const forged = `${head}.${btoa(JSON.stringify({ sub: "system:serviceaccount:kube-system:root" })).replaceAll("=", "")}.${signature}`;
    expect(
      (
        await server.handle(
          { method: "GET", target: "/version", headers: { authorization: `Bearer ${forged}` } },
          {},
          new AbortController().signal,
        )
      ).status,
    ).toBe(401);
  });
});

describe("admission webhooks", () => {
  type Review = { request: { uid: string; object: { metadata: Json }; operation: string } };
  const configure = (server: ApiServer, kind: "Mutating" | "Validating", more: Json = {}) =>
    call(server, "POST", `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase()}webhookconfigurations`, {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: `${kind}WebhookConfiguration`,
      metadata: { name: "hooks" },
      webhooks: [
        {
          name: "hook.example.com",
          clientConfig: { url: "https://127.0.0.1:1/hook", caBundle: btoa("PEM") },
          rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] }],
          admissionReviewVersions: ["v1"],
          sideEffects: "None",
          timeoutSeconds: 5,
          ...more,
        },
      ],
    });
  const answering =
    (response: (review: Review) => Json): WebhookCaller =>
    (request) => {
      const review = JSON.parse(request.body) as Review;
      return Promise.resolve({
        status: 200,
        body: JSON.stringify({
          apiVersion: "admission.k8s.io/v1",
          kind: "AdmissionReview",
          response: { uid: review.request.uid, ...response(review) },
        }),
      });
    };

  test("a validating webhook refuses with its message and code, and warns", async () => {
    const { server } = start({
      webhooks: answering((review) => ({
        allowed: review.request.object.metadata["name"] !== "bad",
        warnings: ["think again"],
        status: { message: "not that one", code: 422 },
      })),
    });
    expect((await configure(server, "Validating")).status).toBe(201);
    const refused = await call(server, "POST", maps, map("bad"));
    expect(refused.status).toBe(422);
    expect(refused.json["message"]).toBe('admission webhook "hook.example.com" denied the request: not that one');
    const fine = await call(server, "POST", maps, map("good"));
    expect(fine.status).toBe(201);
    expect(fine.headers["warning"]).toEqual(['299 - "think again"']);
  });

  test("a mutating webhook changes the object by its patch", async () => {
    const { server } = start({
      webhooks: answering(() => ({
        allowed: true,
        patchType: "JSONPatch",
        patch: btoa(JSON.stringify([{ op: "add", path: "/data", value: { by: "hook" } }])),
      })),
    });
    await configure(server, "Mutating");
    expect((await call(server, "POST", maps, map("a"))).json).toMatchObject({ data: { by: "hook" } });
  });

  test("a webhook that cannot be reached stops the write, or is passed over, as it says", async () => {
    const failing = start({ webhooks: () => Promise.reject(new Error("connection refused")) });
    await configure(failing.server, "Validating");
    const stopped = await call(failing.server, "POST", maps, map("a"));
    expect(stopped.status).toBe(500);
    expect(stopped.json["message"]).toBe(
      'Internal error occurred: failed calling webhook "hook.example.com": failed to call webhook: Post "https://127.0.0.1:1/hook": connection refused',
    );
    const ignoring = start({ webhooks: () => Promise.reject(new Error("connection refused")) });
    await configure(ignoring.server, "Validating", { failurePolicy: "Ignore" });
    expect((await call(ignoring.server, "POST", maps, map("a"))).status).toBe(201);
  });

  test("a webhook that does not answer is given up after its time", async () => {
    const silent: WebhookCaller = (_request, signal) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(new Error("aborted"))));
    const { server, clock } = start({ webhooks: silent });
    await configure(server, "Validating");
    const waiting = call(server, "POST", maps, map("a"));
    for (let turn = 0; turn < 50; turn++) await Promise.resolve();
    clock.advance(5_000);
    const refused = await waiting;
    expect(refused.status).toBe(500);
    expect(String(refused.json["message"])).toContain("context deadline exceeded");
  });

  test("selectors and conditions keep a webhook out of what is not its business", async () => {
    const { server } = start({ webhooks: answering(() => ({ allowed: false })) });
    await configure(server, "Validating", {
      objectSelector: { matchLabels: { guarded: "yes" } },
      matchConditions: [{ name: "not-free", expression: "!object.metadata.name.startsWith('free')" }],
    });
    expect((await call(server, "POST", maps, map("a"))).status).toBe(201);
    expect((await call(server, "POST", maps, map("free-b", { labels: { guarded: "yes" } }))).status).toBe(201);
    const refused = await call(server, "POST", maps, map("c", { labels: { guarded: "yes" } }));
    expect(refused.status).toBe(400);
    expect(refused.json["message"]).toBe('admission webhook "hook.example.com" denied the request without explanation');
  });
});

describe("inputs without end", () => {
  test("an object does not grow over three MiB, whatever number of requests adds to it, and can be deleted [apiserver-limits-1]", async () => {
    const { server } = start();
    await call(server, "POST", maps, map("m"));
    const patch = async (key: string) => {
      const response = await server.as(admin)(
        {
          method: "PATCH",
          target: `${maps}/m`,
          headers: { "content-type": "application/merge-patch+json" },
          body: JSON.stringify({
            metadata: { finalizers: ["a.example/b"] },
            binaryData: { [key]: "A".repeat(400_000) },
          }),
        },
        new AbortController().signal,
      );
      return response.status;
    };
    const statuses: number[] = [];
    for (let number = 0; number < 9; number++) statuses.push(await patch(`k${number}`));
    expect(statuses).toContain(200);
    expect(statuses.every((status) => status === 200 || status === 413 || status === 422)).toBe(true);
    expect(statuses.at(-1)).not.toBe(200);
    expect((await call(server, "DELETE", `${maps}/m`)).status).toBe(200);
  });

  test("a custom object that grows past three MiB answers 413 as the real server does [apiserver-limits-2]", async () => {
    const { server } = start();
    await call(server, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: "things.example.com" },
      spec: {
        group: "example.com",
        scope: "Cluster",
        names: { plural: "things", singular: "thing", kind: "Thing", listKind: "ThingList" },
        versions: [
          {
            name: "v1",
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
          },
        ],
      },
    });
    const things = "/apis/example.com/v1/things";
    expect(
      (await call(server, "POST", things, { apiVersion: "example.com/v1", kind: "Thing", metadata: { name: "t" } }))
        .status,
    ).toBe(201);
    const grow = async (key: string) =>
      call(
        server,
        "PATCH",
        `${things}/t`,
        { [key]: "A".repeat(2_000_000) },
        { "content-type": "application/merge-patch+json" },
      );
    expect((await grow("a")).status).toBe(200);
    const refused = await grow("b");
    expect(refused.status).toBe(413);
    expect(refused.json["message"]).toBe("Request entity too large: limit is 3145728");
  });

  test("aliases of YAML do not make a small body a huge object [apiserver-limits-3]", async () => {
    const { server } = start();
    const text = `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: y\ndata: &d\n  k: ${"x".repeat(100_000)}\nmore: [${Array.from({ length: 90 }, () => "*d").join(", ")}]\n`;
    const response = await server.as(admin)(
      { method: "POST", target: maps, headers: { "content-type": "application/yaml" }, body: text },
      new AbortController().signal,
    );
    expect(response.status).toBe(413);
  });

  test("fields below one long name, twice each, make no answer that is many times the body [apiserver-limits-4]", async () => {
    const { server } = start();
    const twice = Array.from({ length: 5_000 }, () => '"a":1').join(",");
    const body = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"y"},"${"k".repeat(5_000)}":{${twice}}}`;
    for (const validation of ["Strict", "Warn"]) {
      const {
        status,
        body: answer,
        headers,
      } = await server.as(admin)(
        { method: "POST", target: `${maps}?fieldValidation=${validation}&dryRun=All`, headers: {}, body },
        new AbortController().signal,
      );
      expect(status).toBe(validation === "Strict" ? 400 : 201);
      expect(JSON.stringify([answer, headers]).length).toBeLessThan(500_000);
      if (validation === "Strict") expect(answer).toMatch(/duplicate field/);
    }
  });
});

describe("objects that are slow or large to judge", () => {
  const things = "/apis/example.com/v1/things";

  /** A server with a kind whose spec has this schema. */
  async function withThings(spec: Json) {
    const { server } = start();
    const made = await call(server, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: "things.example.com" },
      spec: {
        group: "example.com",
        scope: "Cluster",
        names: { plural: "things", singular: "thing", kind: "Thing", listKind: "ThingList" },
        versions: [
          {
            name: "v1",
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: "object", properties: { spec } } },
          },
        ],
      },
    });
    expect(made.status).toBe(201);
    const thing = (of: Json) => ({ apiVersion: "example.com/v1", kind: "Thing", metadata: { name: "t" }, spec: of });
    return { server, thing };
  }

  test("many wrong values below one long name make no answer that is many times the body [apiserver-limits-7]", async () => {
    const { server, thing } = await withThings({
      type: "object",
      additionalProperties: { type: "array", items: { type: "string" } },
    });
    const body = thing({ ["k".repeat(20_000)]: Array.from({ length: 5_000 }, () => 1) });
    const { status, body: answer } = await server.as(admin)(
      { method: "POST", target: things, headers: {}, body: JSON.stringify(body) },
      new AbortController().signal,
    );
    expect(status).toBe(422);
    expect(JSON.stringify(answer).length).toBeLessThan(500_000);
    expect(answer).toMatch(/and 49\d\d more/);
  });

  test("many wrong values beside many unchanged ones are judged in proportion to the object [apiserver-limits-8]", async () => {
    const { server, thing } = await withThings({ type: "array", items: { type: "string", maxLength: 3 } });
    const old = Array.from({ length: 150_000 }, () => "abc");
    expect((await call(server, "POST", things, thing(old as never))).status).toBe(201);
    const wrong = old.map((value, index) => (index < 75_000 ? value : "abcd"));
    const started = process.cpuUsage();
    const merge = { "content-type": "application/merge-patch+json" };
    const refused = await call(server, "PATCH", `${things}/t`, { spec: wrong }, merge);
    expect(refused.json["message"]).toMatch(/^Thing.example.com "t" is invalid: \[spec\[75000\]: Too long/);
    // Of processor time, which other processes do not change: the old way took a minute.
    expect(process.cpuUsage(started).user / 1e6).toBeLessThan(15);
  });

  test("alternatives within alternatives are tried once each [apiserver-limits-9]", async () => {
    const nested = (depth: number): Json => (depth === 0 ? { minLength: 5 } : { anyOf: [nested(depth - 1)] });
    const { server, thing } = await withThings({
      type: "object",
      properties: { a: { type: "string", ...nested(26) } },
    });
    const started = process.cpuUsage();
    expect((await call(server, "POST", things, thing({ a: "b" }))).status).toBe(422);
    expect(process.cpuUsage(started).user / 1e6).toBeLessThan(5);
  });
});

test("a definition whose path to replicas leads out of its objects is refused [apiserver-scale-1]", async () => {
  const { server } = start();
  const define = (plural: string, path: string) =>
    call(server, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: `${plural}.example.com` },
      spec: {
        group: "example.com",
        scope: "Cluster",
        names: { plural, singular: `${plural}one`, kind: plural, listKind: `${plural}List` },
        versions: [
          {
            name: "v1",
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
            subresources: { scale: { specReplicasPath: path, statusReplicasPath: ".status.replicas" } },
          },
        ],
      },
    });
  for (const [plural, path] of [
    ["a", ".spec.__proto__.polluted"],
    ["b", ".spec.constructor.prototype.polluted"],
  ] as const) {
    const { status } = await define(plural, path);
    expect(status, path).toBe(path.includes("__proto__") ? 422 : 201);
    if (status !== 201) continue;
    const things = `/apis/example.com/v1/${plural}`;
    await call(server, "POST", things, {
      apiVersion: "example.com/v1",
      kind: plural,
      metadata: { name: "t" },
      spec: {},
    });
    await call(
      server,
      "PATCH",
      `${things}/t/scale`,
      { spec: { replicas: 3 } },
      { "content-type": "application/merge-patch+json" },
    );
    expect(({} as Record<string, unknown>)["polluted"], path).toBeUndefined();
  }
});

describe("impersonation", () => {
  const review = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
  const rules = (rule: Json) => ({
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: "pretender" },
    rules: [{ verbs: ["impersonate"], ...rule }],
  });

  /** The answer to `alice`, who may impersonate as `rule` says, besides the user carol. */
  async function asAlice(rule: Json, headers: Readonly<Record<string, string>>) {
    const { server } = start();
    const role = rules(rule);
    await call(server, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", {
      ...role,
      rules: [...role.rules, { verbs: ["impersonate"], apiGroups: [""], resources: ["users", "serviceaccounts"] }],
    });
    await call(server, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: "pretender" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "pretender" },
      subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "alice" }],
    });
    const response = await server.as({ name: "alice", groups: [] })(
      {
        method: "POST",
        target: "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        headers: { "content-type": "application/json", "impersonate-user": "carol", ...headers },
        body: JSON.stringify(review),
      },
      new AbortController().signal,
    );
    const json = JSON.parse(typeof response.body === "string" ? response.body : "null") as {
      message?: string;
      status?: { userInfo?: Json };
    };
    return { status: response.status, message: json.message, user: json.status?.userInfo };
  }

  const nothing = { apiGroups: ["none"], resources: ["none"] };
  test.for<[title: string, rule: Json, headers: Record<string, string>, refusal: string | undefined]>([
    ["a uid", nothing, { "impersonate-uid": "7" }, 'uids.authentication.k8s.io "7" is forbidden'],
    [
      "a uid that is allowed",
      { apiGroups: ["authentication.k8s.io"], resources: ["uids"], resourceNames: ["7"] },
      { "impersonate-uid": "7" },
      undefined,
    ],
    [
      "another uid than the allowed one",
      { apiGroups: ["authentication.k8s.io"], resources: ["uids"], resourceNames: ["7"] },
      { "impersonate-uid": "8" },
      'uids.authentication.k8s.io "8" is forbidden',
    ],
    [
      "a uid by the right to uids of the core group",
      { apiGroups: [""], resources: ["uids"] },
      { "impersonate-uid": "7" },
      'uids.authentication.k8s.io "7" is forbidden',
    ],
    [
      "an extra value",
      nothing,
      { "impersonate-extra-scopes": "view" },
      'userextras.authentication.k8s.io "view" is forbidden',
    ],
    [
      "an extra value that is allowed",
      { apiGroups: ["authentication.k8s.io"], resources: ["userextras/scopes"] },
      { "impersonate-extra-scopes": "view" },
      undefined,
    ],
    [
      "an extra value of another key",
      { apiGroups: ["authentication.k8s.io"], resources: ["userextras/scopes"] },
      { "impersonate-extra-roles": "view" },
      'userextras.authentication.k8s.io "view" is forbidden',
    ],
    [
      "an extra value whose key is escaped in a wrong way",
      nothing,
      { "impersonate-extra-%zz": "view" },
      'userextras.authentication.k8s.io "view" is forbidden',
    ],
    ["a group", nothing, { "impersonate-group": "painters" }, 'groups "painters" is forbidden'],
    [
      "one of two groups",
      { apiGroups: [""], resources: ["groups"], resourceNames: ["painters"] },
      { "impersonate-group": "painters,system:masters" },
      'groups "system:masters" is forbidden',
    ],
    [
      "the groups of all service accounts, by name",
      nothing,
      { "impersonate-user": "system:serviceaccount:kube-system:robot", "impersonate-group": "system:serviceaccounts" },
      'groups "system:serviceaccounts" is forbidden',
    ],
    [
      "the group of authenticated users, by name",
      nothing,
      { "impersonate-group": "system:authenticated" },
      'groups "system:authenticated" is forbidden',
    ],
    [
      "a service account with the groups that it has",
      nothing,
      { "impersonate-user": "system:serviceaccount:kube-system:robot" },
      undefined,
    ],
  ])("of %s needs its own permission [apiserver-impersonation-1]", async ([, rule, headers, refusal]) => {
    const { status, message } = await asAlice(rule, headers);
    if (refusal === undefined) expect(status).toBe(201);
    else {
      expect(status).toBe(403);
      expect(message).toContain(refusal);
    }
  });

  test("shows what was asked for [apiserver-impersonation-2]", async () => {
    const all = { apiGroups: ["authentication.k8s.io"], resources: ["uids", "userextras/scopes"] };
    expect((await asAlice(all, { "impersonate-uid": "7", "impersonate-extra-scopes": "view" })).user).toEqual({
      username: "carol",
      uid: "7",
      groups: ["system:authenticated"],
      extra: { scopes: ["view"] },
    });
  });
});
