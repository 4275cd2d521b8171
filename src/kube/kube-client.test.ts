import { describe, expect, test } from "vitest";
import { type ConfigMap, kubernetes } from "../api/foreign/kubernetes.ts";
import type { HttpRequest, HttpResponse } from "../ports/http.ts";
import { Kernel } from "../../test/simulation/kernel.ts";
import { createKubeClient, updateByDecision } from "./kube-client.ts";
import { KubeError, isPassing, isTooLarge } from "./kube-error.ts";

const answer = (status: number, body: object = {}, headers: Record<string, string> = {}): HttpResponse => ({
  status,
  headers,
  body: JSON.stringify(body),
});
const never = (signal: AbortSignal) =>
  new Promise<never>((_, reject) =>
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }),
  );

/** A client whose server answers by `serve`, with a record of the requests and their times. */
function clientOf(
  serve: (request: HttpRequest, turn: number, signal: AbortSignal) => HttpResponse | Promise<HttpResponse>,
) {
  const kernel = new Kernel(5);
  const asked: { at: number; target: string }[] = [];
  const kube = createKubeClient({
    transport: async (request, signal) => {
      asked.push({ at: kernel.now, target: request.target });
      return serve(request, asked.length, signal);
    },
    clock: kernel.clock,
    random: kernel.random,
    userAgent: "test",
  });
  async function outcomeOf<T>(work: Promise<T>): Promise<{ value: T } | { error: unknown }> {
    let outcome: { value: T } | { error: unknown } | undefined;
    work.then(
      (value) => (outcome = { value }),
      (error: unknown) => (outcome = { error }),
    );
    await kernel.run({ until: () => outcome !== undefined, maxMs: 600_000 });
    return outcome ?? { error: new Error("it did not end") };
  }
  return { kernel, kube, asked, outcomeOf };
}

const key = { name: "a", namespace: "default" };

describe("a busy server", () => {
  test.for([
    { title: "429", status: 429 },
    { title: "503", status: 503 },
  ])("that answers $title and says when to come back is obeyed, never early", async ({ status }) => {
    const { kube, asked, outcomeOf } = clientOf((_, turn) =>
      turn < 3
        ? answer(status, { reason: "TooManyRequests", message: "later" }, { "retry-after": "2" })
        : answer(201, { metadata: key }),
    );
    expect(
      await outcomeOf(kube.create(kubernetes.ConfigMap, { apiVersion: "v1", kind: "ConfigMap", metadata: key })),
    ).toEqual({ value: { metadata: key } });
    expect(asked).toHaveLength(3);
    for (const [index, { at }] of asked.slice(1).entries()) {
      const waited = at - (asked[index]?.at ?? 0);
      expect(waited).toBeGreaterThanOrEqual(2000);
      expect(waited).toBeLessThanOrEqual(2400);
    }
  });

  test("is not waited for longer than a request may take; the caller learns how long to leave it alone", async () => {
    const { kube, asked, outcomeOf } = clientOf(() =>
      answer(429, { reason: "TooManyRequests" }, { "retry-after": "60" }),
    );
    const outcome = await outcomeOf(kube.get(kubernetes.ConfigMap, key));
    expect(asked).toHaveLength(1);
    expect(outcome).toMatchObject({ error: { httpStatus: 429, retryAfterMs: 60_000 } });
  });

  test("that says nothing of coming back is left to the caller", async () => {
    const { kube, asked, outcomeOf } = clientOf(() => answer(500, { reason: "InternalError" }));
    expect(await outcomeOf(kube.get(kubernetes.ConfigMap, key))).toMatchObject({ error: { httpStatus: 500 } });
    expect(asked).toHaveLength(1);
  });

  test("is something else than a budget that forbids an eviction: that is an answer", async () => {
    const { kube, asked, outcomeOf } = clientOf(() =>
      answer(429, {
        reason: "TooManyRequests",
        details: { retryAfterSeconds: 5, causes: [{ reason: "DisruptionBudget", message: "no" }] },
      }),
    );
    const outcome = await outcomeOf(kube.evict({ apiVersion: "v1", kind: "Pod", metadata: key }));
    expect(asked).toHaveLength(1);
    expect("error" in outcome && isPassing(outcome.error)).toBe(false);
  });
});

test.for([
  { status: 401, passing: true },
  { status: 403, passing: false },
  { status: 404, passing: false },
  { status: 409, passing: true },
  { status: 422, passing: false },
  { status: 429, passing: true },
  { status: 500, passing: true },
  { status: 504, passing: true },
])("$status passes by itself: $passing", ({ status, passing }) => {
  expect(isPassing(new KubeError(status, {}, "GET /"))).toBe(passing);
});

test.for([
  { title: "etcd", message: "etcdserver: request is too large" },
  {
    title: "etcd's client",
    message: "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2500000 vs. 2097152)",
  },
])(
  "an object that $title finds too large does not become smaller by waiting, though the answer is 500 [kube-error-1]",
  ({ message }) => {
    const error = new KubeError(500, { message }, "PATCH /api/v1/nodes/w");
    expect(isPassing(error)).toBe(false);
    expect(isTooLarge(error)).toBe(true);
    expect(isTooLarge(new KubeError(413, {}, "PATCH /"))).toBe(true);
    expect(isTooLarge(new KubeError(500, { message: "etcdserver: request timed out" }, "PATCH /"))).toBe(false);
  },
);

describe("the refusal of an admission policy", () => {
  // As kube-apiserver v1.34.4 words it.
  const refusal = (httpStatus: number, text: string) => {
    const message = `machineconfigpools.machineconfiguration.openshift.io "worker" is forbidden: ValidatingAdmissionPolicy 'streams' ${text}`;
    return new KubeError(httpStatus, { reason: "Invalid", message }, "PATCH /");
  };

  test.for([422, 403])("is passing while the server does not know the policy's parameters (%i)", (httpStatus) => {
    const text =
      "failed to find resource referenced by paramKind: 'machineconfiguration.openshift.io/v1, Kind=OSImageStream'";
    expect(isPassing(refusal(httpStatus, `denied request: failed to configure policy: ${text}`))).toBe(true);
    const bound = `with binding 'streams' denied request: failed to configure binding: ${text}`;
    expect(isPassing(refusal(httpStatus, bound))).toBe(true);
  });

  test("lasts where the policy judged the object", () => {
    expect(isPassing(refusal(422, "with binding 'streams' denied request: no such stream"))).toBe(false);
  });
});

test("a server that cannot be reached is passing, and a failure of ours is not", async () => {
  const { kube, outcomeOf } = clientOf(() => Promise.reject(new Error("connection refused")));
  const outcome = await outcomeOf(kube.get(kubernetes.ConfigMap, key));
  expect("error" in outcome && isPassing(outcome.error)).toBe(true);
  expect(isPassing(new Error("bug"))).toBe(false);
});

test("an answer that is cut short is no answer", async () => {
  const { kube, outcomeOf } = clientOf(() => ({ status: 200, headers: {}, body: '{"metadata":{"na' }));
  expect(await outcomeOf(kube.get(kubernetes.ConfigMap, key))).toMatchObject({
    error: { code: "MCO_KUBE_REQUEST_FAILED" },
  });
});

test("a watch whose response does not start fails like any request; a started one may be idle", async () => {
  const silent = clientOf((_request, _turn, signal) => never(signal));
  const first = (kube: typeof silent.kube, signal: AbortSignal) =>
    kube
      .watch(kubernetes.ConfigMap, {}, { resourceVersion: "1", timeoutSeconds: 600 }, signal)
      [Symbol.asyncIterator]()
      .next();
  expect(await silent.outcomeOf(first(silent.kube, new AbortController().signal))).toMatchObject({
    error: { code: "MCO_KUBE_REQUEST_FAILED" },
  });
  expect(silent.kernel.now).toBe(30_000);
  const open = clientOf((_request, _turn, signal) => ({
    status: 200,
    headers: {},
    body: (async function* () {
      await Promise.race([open.kernel.clock.sleep(120_000), never(signal)]);
      yield `${JSON.stringify({ type: "ADDED", object: { metadata: key } })}\n`;
    })(),
  }));
  expect(await open.outcomeOf(first(open.kube, new AbortController().signal))).toMatchObject({
    value: { value: { type: "ADDED" } },
  });
});

test("a list whose next page has been compacted away is asked for once more, in one piece", async () => {
  const { kube, asked, outcomeOf } = clientOf((request, turn) => {
    if (turn === 1)
      return answer(200, { metadata: { resourceVersion: "5", continue: "c" }, items: [{ metadata: { name: "old" } }] });
    if (request.target.includes("continue=")) return answer(410, { reason: "Expired", message: "too old" });
    return answer(200, { metadata: { resourceVersion: "9" }, items: [{ metadata: { name: "new" } }] });
  });
  expect(await outcomeOf(kube.list(kubernetes.ConfigMap))).toMatchObject({
    value: { resourceVersion: "9", items: [{ metadata: { name: "new" } }] },
  });
  expect(asked.map(({ target }) => target.includes("limit="))).toEqual([true, true, false]);
});

test("objects of tenants and nodes that fill whole pages are read in smaller ones [attack-requests-2]", async () => {
  const large = "x".repeat(1_200_000);
  const limits: number[] = [];
  let sent = 0;
  const { kube, outcomeOf } = clientOf(({ target }) => {
    const { searchParams } = new URL(target, "http://server");
    const [limit, from] = [Number(searchParams.get("limit")), Number(searchParams.get("continue") ?? 0)];
    limits.push(limit);
    const to = Math.min(600, from + limit);
    return {
      status: 200,
      headers: {},
      body: (async function* () {
        yield `{"metadata":{"resourceVersion":"5"${to < 600 ? `,"continue":"${to}"` : ""}},"items":[`;
        for (let i = from; i < to; i++) {
          sent += large.length;
          // Only the first ones are large.
          yield `${i === from ? "" : ","}{"metadata":{"name":"p${i}"},"data":{"a":"${i < 500 ? large : ""}"}}`;
        }
        yield "]}";
      })(),
    };
  });
  const keep = ({ metadata: { name }, data }: ConfigMap) =>
    ({ metadata: { name }, kept: data?.["a"]?.length }) as never;
  const outcome = await outcomeOf(kube.list<ConfigMap>(kubernetes.ConfigMap, {}, { keep }));
  expect(outcome).toMatchObject({ value: { resourceVersion: "5" } });
  const { items } = (outcome as unknown as { value: { items: readonly { readonly kept: number }[] } }).value;
  expect(items.length).toBe(600);
  expect(items[0]).toEqual({ metadata: { name: "p0" }, kept: large.length });
  expect(limits[0]).toBe(500);
  // Pages that were broken off cost no more than those that were read.
  expect(sent).toBeLessThan(2.5 * 500 * large.length);
});

test("a list of the first so many objects reads no further pages, and leaves out what is not kept [kube-client-most-1]", async () => {
  const items = (turn: number) => [1, 2, 3].map((each) => ({ metadata: { name: `${turn}-${each}` } }));
  const { kube, asked, outcomeOf } = clientOf((_, turn) =>
    answer(200, { metadata: { resourceVersion: "5", continue: "more" }, items: items(turn) }),
  );
  const keep = (object: ConfigMap) => (object.metadata.name.endsWith("2") ? undefined : object);
  const outcome = await outcomeOf(kube.list(kubernetes.ConfigMap, {}, { most: 3, keep }));
  expect("value" in outcome && outcome.value.items.map(({ metadata }) => metadata.name)).toEqual(["1-1", "1-3", "2-1"]);
  expect(asked).toHaveLength(2);
});

test("a list of metadata asks for nothing else, in pages of some MiB, and its items keep their kind [kube-client-metadata-1]", async () => {
  const large = "x".repeat(40_000);
  const limits: number[] = [];
  const accepted = new Set<string | undefined>();
  const { kube, outcomeOf } = clientOf(({ target, headers }) => {
    accepted.add(headers["accept"]);
    const limit = Number(new URL(target, "http://server").searchParams.get("limit"));
    limits.push(limit);
    const items = Array.from({ length: Math.min(limit, 400) }, (_, index) => ({
      kind: "PartialObjectMetadata",
      apiVersion: "meta.k8s.io/v1",
      metadata: { name: `a${index}`, annotations: { large } },
    }));
    return answer(200, { metadata: { resourceVersion: "5" }, items });
  });
  const { kind, apiVersion } = kubernetes.ConfigMap;
  const keep = ({ metadata: { name }, ...rest }: ConfigMap): ConfigMap => ({ ...rest, metadata: { name } });
  const outcome = await outcomeOf(kube.list(kubernetes.ConfigMap, {}, { metadataOnly: true, keep }));
  expect(outcome).toMatchObject({
    value: { items: { length: 62, 0: { kind, apiVersion, metadata: { name: "a0" } } } },
  });
  expect(limits).toEqual([500, 62]);
  expect([...accepted]).toEqual(["application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"]);
});

describe("a stream of lines", () => {
  async function* chunks(texts: Iterable<string>) {
    for (const text of texts) yield text;
  }
  const linesOf = async (texts: Iterable<string>): Promise<readonly string[]> => {
    const { kube } = clientOf(() => ({ status: 200, headers: {}, body: chunks(texts) }));
    const lines: string[] = [];
    for await (const line of kube.lines("/log", new AbortController().signal)) lines.push(line);
    return lines;
  };

  test("is read by lines, wherever its chunks end", async () => {
    expect(await linesOf(["a", "b\nc\n\nd", "", "e\n", "\nf\n"])).toEqual(["ab", "c", "de", "f"]);
  });

  test("is given up at a line without end [kube-client-lines-1]", async () => {
    let sent = 0;
    function* endless() {
      const chunk = "a".repeat(1024 * 1024);
      for (; sent < 1024; sent += 1) yield chunk;
    }
    await expect(linesOf(endless())).rejects.toThrow(/^the answer has more than/);
    expect(sent).toBeLessThan(32);
  });
});

describe("an update by a decision", () => {
  const object = (resourceVersion: string, data: Readonly<Record<string, string>> | undefined) => ({
    metadata: { ...key, resourceVersion },
    ...(data === undefined ? {} : { data }),
  });
  const decide = ({ metadata, data }: ConfigMap) => {
    const decision = metadata.resourceVersion;
    return data?.["mark"] === "set" ? { decision } : { decision, write: { data: { mark: "set" } } };
  };
  const cached = object("1", undefined) as ConfigMap;

  test.for([
    {
      title: "tells the decision about the version that was written",
      second: answer(200, object("2", {})),
      is: { decision: "2", isWritten: true, object: { metadata: { resourceVersion: "3" } } },
    },
    {
      title: "that another writer made needless is not told as written",
      second: answer(200, object("2", { mark: "set" })),
      is: { decision: "2", isWritten: false, object: { metadata: { resourceVersion: "2" } } },
    },
    { title: "tells nothing of an object that is gone", second: answer(404, { reason: "NotFound" }), is: undefined },
  ])("$title, after a conflict [kube-client-1]", async ({ second, is }) => {
    const turns = [answer(409, { reason: "Conflict" }), second, answer(200, object("3", { mark: "set" }))];
    const { kube, outcomeOf } = clientOf((_, turn) => turns[turn - 1] ?? answer(500));
    const outcome = await outcomeOf(updateByDecision(kube, kubernetes.ConfigMap, key, decide, { cached }));
    if (is === undefined) expect(outcome).toEqual({ value: undefined });
    else expect(outcome).toMatchObject({ value: is });
  });

  const lost = "lost";
  const conflict = answer(409, { reason: "Conflict" });
  test.for([
    {
      title: "is not written twice where only the answer was lost",
      turns: [lost, conflict, answer(200, object("2", { mark: "set" }))],
      is: { decision: "1", isWritten: true, object: { metadata: { resourceVersion: "2" } } },
    },
    {
      title: "is not written twice where several answers are lost",
      turns: [lost, conflict, lost, answer(500), answer(200, object("2", { mark: "set" }))],
      is: { decision: "1", isWritten: true },
    },
    {
      title: "is written again where it did not arrive",
      turns: [lost, lost, answer(500), answer(200, object("2", { mark: "set" }))],
      is: { decision: "1", isWritten: true },
    },
    {
      title: "is decided again where somebody else was first",
      turns: [lost, conflict, answer(200, object("2", {})), answer(200, object("2", {})), answer(200, object("3", {}))],
      is: { decision: "2", isWritten: true },
    },
    { title: "is not sent again after a refusal", turns: [lost, answer(422, { reason: "Invalid" })], is: undefined },
  ])("$title, if the caller insists on an answer [kube-client-2]", async ({ turns, is }) => {
    const { kernel, kube, asked, outcomeOf } = clientOf((_, turn) => {
      const next = turns[turn - 1] ?? answer(500);
      if (typeof next === "string") throw new Error("connection reset");
      return next;
    });
    const outcome = await outcomeOf(
      updateByDecision(kube, kubernetes.ConfigMap, key, decide, { cached, insists: kernel.clock }),
    );
    expect(outcome).toMatchObject(is === undefined ? { error: { httpStatus: 422 } } : { value: is });
    expect(asked).toHaveLength(turns.length);
  });

  test.for([
    { title: "two minutes, if the caller insists", insists: true, atLeast: 60 },
    { title: "no second time, if it does not", insists: false, atLeast: 1 },
  ])("is sent for $title [kube-client-3]", async ({ insists, atLeast }) => {
    const { kernel, kube, asked, outcomeOf } = clientOf(() => Promise.reject(new Error("connection reset")));
    const how = { cached, ...(insists ? { insists: kernel.clock } : {}) };
    const outcome = await outcomeOf(updateByDecision(kube, kubernetes.ConfigMap, key, decide, how));
    expect(outcome).toMatchObject({ error: { code: "MCO_KUBE_REQUEST_FAILED" } });
    expect(asked.length).toBeGreaterThanOrEqual(atLeast);
    expect(asked.length).toBeLessThanOrEqual(insists ? 125 : 1);
  });

  /** A server with one object, at whose answers a watch may lag. */
  function serverOf(data: Readonly<Record<string, string>>) {
    const at = (version: number, has: Readonly<Record<string, string>>) => object(String(version), has) as ConfigMap;
    let present = at(1, data);
    const [shown, requests]: [ConfigMap[], string[]] = [[present], []];
    const put = (next: Readonly<Record<string, string>>) => {
      present = at(1 + shown.length, { ...present.data, ...next });
      shown.push(present);
    };
    /** Fails once: before or after the write was carried out. */
    let loses: "request" | "answer" | undefined;
    const { kube, outcomeOf } = clientOf(({ method, body }) => {
      requests.push(method);
      if (method === "GET") return answer(200, present);
      const lost = loses;
      loses = undefined;
      if (lost === "request") throw new Error("connection reset");
      const sent = JSON.parse(typeof body === "string" ? body : "{}") as ConfigMap;
      if (sent.metadata.resourceVersion !== present.metadata.resourceVersion)
        return answer(409, { reason: "Conflict" });
      put(sent.data ?? {});
      if (lost === "answer") throw new Error("connection reset");
      return answer(200, present);
    });
    /** Has the mark set to a value, by what the watch shows at that version. */
    const set = async (mark: string, version: number, within?: AbortSignal) => {
      const client = within === undefined ? kube : kube.within(within);
      return await outcomeOf(
        updateByDecision(
          client,
          kubernetes.ConfigMap,
          key,
          (has: ConfigMap) => ({ decision: 0, ...(has.data?.["mark"] === mark ? {} : { write: { data: { mark } } }) }),
          { cached: shown[version - 1] as ConfigMap },
        ),
      );
    };
    return { set, put, requests, lose: (what: typeof loses) => (loses = what), mark: () => present.data?.["mark"] };
  }

  test("that takes back an earlier one is written while the watch shows a state before that, or between the two [kube-client-4]", async () => {
    for (const version of [1, 2]) {
      const { set, put, requests, mark } = serverOf({ mark: "off" });
      // Another writer changes another field in between: version 2.
      put({ other: "touched" });
      await set("on", 1, new AbortController().signal);
      expect(mark()).toBe("on");
      await set("off", version);
      expect(mark()).toBe("off");
      // Once the watch has caught up, nothing is read.
      const before = requests.length;
      await set("off", 4);
      expect(requests.slice(before)).toEqual([]);
    }
  });

  test.for(["request", "answer"] as const)(
    "after one whose %s was lost starts from the present state [kube-client-5]",
    async (what) => {
      const { set, lose, requests, mark } = serverOf({ mark: "off" });
      lose(what);
      expect(await set("on", 1)).toMatchObject({ error: { code: "MCO_KUBE_REQUEST_FAILED" } });
      expect(requests.splice(0)).toEqual(["PATCH"]);
      await set("off", 1);
      expect(mark()).toBe("off");
      expect(requests).toEqual(what === "request" ? ["GET"] : ["GET", "PATCH"]);
    },
  );
});
