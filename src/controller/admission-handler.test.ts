import { describe, expect, test } from "vitest";
import { type ClusterObjects } from "../core/preview/plan-cluster.ts";
import { renderPool } from "../core/render/render-pool.ts";
import { silentLogger } from "../ports/logger.ts";
import { type AdmissionAccess, admissionHandler, admissionPath } from "./admission-handler.ts";

const handle = admissionHandler({ log: silentLogger });
const renderedName = `rendered-worker-${"1".padStart(32, "0")}`;
const controllerUser = "system:serviceaccount:openshift-machine-config-operator:machine-config-controller";

interface Answer {
  readonly uid: string;
  readonly allowed: boolean;
  readonly warnings?: readonly string[];
  readonly status?: {
    readonly message: string;
    readonly code: number;
    readonly details: { readonly causes: readonly { readonly field: string; readonly message: string }[] };
  };
}

async function send(body: unknown, target = `${admissionPath}?timeout=5s`, method = "POST") {
  const response = await handle(
    { method, target, headers: {}, body: typeof body === "string" ? body : JSON.stringify(body) },
    undefined,
    new AbortController().signal,
  );
  return { status: response.status, text: typeof response.body === "string" ? response.body : "" };
}

async function review(kind: string, object: object, oldObject?: object, username?: string): Promise<Answer> {
  const { status, text } = await send({
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: {
      uid: "u",
      kind: { group: "machineconfiguration.openshift.io", kind },
      object,
      oldObject: oldObject ?? null,
      ...(username === undefined ? {} : { userInfo: { username } }),
    },
  });
  expect(status).toBe(200);
  return (JSON.parse(text) as { response: Answer }).response;
}

const config = (spec: object, metadata: object = {}) => ({
  metadata: { name: "99-x", labels: { "machineconfiguration.openshift.io/role": "worker" }, ...metadata },
  spec,
});
const ignition = (storage: object) => ({ config: { ignition: { version: "3.4.0" }, storage } });

describe("admission of MachineConfigs", () => {
  test("a good one passes without a word", async () => {
    expect(
      await review(
        "MachineConfig",
        config(ignition({ files: [{ path: "/etc/a", mode: 420, contents: { source: "data:,x" } }] })),
      ),
    ).toEqual({ uid: "u", allowed: true });
  });

  test("an invalid one is refused with field, reason and remedy", async () => {
    const answer = await review("MachineConfig", config(ignition({ files: [{ path: "etc/relative" }] })));
    expect(answer.allowed).toBe(false);
    expect(answer.status).toMatchObject({ code: 422, reason: "Invalid" });
    expect(answer.status?.message).toMatch(/^MachineConfig 99-x is invalid: spec\.config\.storage\.files\[0\]\.path: /);
    expect(answer.status?.details).toMatchObject({ kind: "MachineConfig", name: "99-x" });
    expect(answer.status?.details.causes[0]?.field).toBe("spec.config.storage.files[0].path");
  });

  test("what renders and then does not do what one expects is warned of", async () => {
    const answer = await review(
      "MachineConfig",
      config(ignition({ files: [{ path: "/etc/a", append: [{ source: "data:,x" }] }] })),
    );
    expect(answer.allowed).toBe(true);
    expect(answer.warnings?.[0]).toContain("spec.config.storage.files[0].append");
  });

  test.for([
    { who: "from a user, is judged, whatever its name and owner", username: "kubernetes-admin", allowed: false },
    {
      who: "from another component, is judged",
      username: controllerUser.replace("controller", "daemon"),
      allowed: false,
    },
    { who: "from the controller, is not: it was merged from judged ones", username: controllerUser, allowed: true },
  ])("one that looks rendered, $who", async ({ username, allowed }) => {
    const owner = { kind: "MachineConfigPool", name: "worker", uid: "u", controller: true };
    for (const metadata of [{ name: "rendered-x" }, { name: renderedName, ownerReferences: [owner] }])
      expect(
        (await review("MachineConfig", config({ kernelType: "fast" }, metadata), undefined, username)).allowed,
      ).toBe(allowed);
  });

  test("an invalid one that was stored before may still be labelled and deleted, but not get another invalid spec", async () => {
    const bad = config({ kernelType: "fast" });
    expect((await review("MachineConfig", config({ kernelType: "fast" }, { labels: { a: "b" } }), bad)).allowed).toBe(
      true,
    );
    expect((await review("MachineConfig", config({ kernelType: "faster" }), bad)).allowed).toBe(false);
  });
});

describe("deletion of MachineConfigs", () => {
  const rendered = {
    metadata: {
      name: renderedName,
      ownerReferences: [
        {
          apiVersion: "machineconfiguration.openshift.io/v1",
          kind: "MachineConfigPool",
          name: "worker",
          uid: "u",
          controller: true,
        },
      ],
    },
    spec: {},
  };
  const usersOf = (config: string) =>
    config === renderedName ? ["node worker-0 (currentConfig)", "pool worker (status)"] : [];
  async function deletion(
    oldObject: object,
    know: ((config: string) => readonly string[] | undefined) | undefined,
  ): Promise<Answer> {
    const handler = admissionHandler({ log: silentLogger, ...(know === undefined ? {} : { usersOf: know }) });
    const body = {
      apiVersion: "admission.k8s.io/v1",
      kind: "AdmissionReview",
      request: {
        uid: "u",
        kind: { group: "machineconfiguration.openshift.io", kind: "MachineConfig" },
        operation: "DELETE",
        object: null,
        oldObject,
      },
    };
    const response = await handler(
      { method: "POST", target: admissionPath, headers: {}, body: JSON.stringify(body) },
      undefined,
      new AbortController().signal,
    );
    return (JSON.parse(response.body as string) as { response: Answer }).response;
  }

  test("a rendered one that is in use stays; the answer names its users and the remedy [controller-admission-handler-1]", async () => {
    const answer = await deletion(rendered, usersOf);
    expect(answer).toMatchObject({ allowed: false, status: { code: 403, reason: "Forbidden" } });
    expect(answer.status?.message).toMatch(
      /^rendered-worker-0{31}1 is in use by node worker-0 \(currentConfig\), pool worker \(status\): .*bring them to another configuration first/,
    );
  });

  test("one that nothing uses goes, and so does any while nobody knows who uses what; others are their authors' own [controller-admission-handler-2]", async () => {
    expect((await deletion(rendered, () => [])).allowed).toBe(true);
    expect((await deletion(rendered, () => undefined)).allowed).toBe(true);
    expect((await deletion(rendered, undefined)).allowed).toBe(true);
    expect((await deletion({ metadata: { name: renderedName }, spec: {} }, usersOf)).allowed).toBe(true);
  });
});

describe("admission of pools", () => {
  const pool = (annotations: object) => ({
    metadata: { name: "worker", annotations },
    spec: { nodeSelector: { matchLabels: { a: "" } }, machineConfigSelector: { matchLabels: { a: "" } } },
  });
  const key = "machineconfiguration.openshift.io/drain-after-deadline";

  test("an annotation that is not understood is refused where somebody writes it, and stands in nobody's way where it was", async () => {
    const bad = pool({ [key]: "force: all" });
    const refused = await review("MachineConfigPool", bad, pool({}));
    expect(refused.allowed).toBe(false);
    expect(refused.status?.message).toBe(
      `MachineConfigPool worker is invalid: metadata.annotations[${key}]: "force: all" is not understood; write "wait", "skip", or "force: " and what may be overridden, of pdb, refused, unmanaged, emptyDir`,
    );
    expect(refused.status?.details.causes[0]?.field).toBe(`metadata.annotations[${key}]`);
    expect((await review("MachineConfigPool", { ...bad, spec: { ...bad.spec, paused: true } }, bad)).allowed).toBe(
      true,
    );
    expect((await review("MachineConfigPool", pool({}), bad)).allowed).toBe(true);
  });
});

describe("the plan of a change", () => {
  const labelled = { labels: { "machineconfiguration.openshift.io/role": "worker" } };
  const file = (path: string, text: string) => ignition({ files: [{ path, contents: { source: `data:,${text}` } }] });
  const object = (kind: string, name: string, spec: object, metadata: object = {}) => ({
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind,
    metadata: { name, ...metadata },
    spec,
  });
  const workers = {
    nodeSelector: { matchLabels: { "node-role.kubernetes.io/worker": "" } },
    machineConfigSelector: { matchLabels: labelled.labels },
  };
  const facts = {
    pools: [object("MachineConfigPool", "worker", workers)],
    machineConfigs: [object("MachineConfig", "00-worker", file("/etc/a", "a"), labelled)],
    machineConfiguration: undefined,
    controllerConfig: object("ControllerConfig", "machine-config-controller", { baseOSContainerImage: "os@sha256:1" }),
    nodes: ["w0", "w1"].map((name) => ({
      apiVersion: "v1",
      kind: "Node",
      metadata: { name, labels: workers.nodeSelector.matchLabels },
    })),
  } as unknown as ClusterObjects;
  const planning = admissionHandler({ log: silentLogger, facts: () => facts });
  const ask = async (request: object, handler = planning): Promise<Answer> => {
    const body = {
      apiVersion: "admission.k8s.io/v1",
      kind: "AdmissionReview",
      request: {
        uid: "u",
        kind: { group: "machineconfiguration.openshift.io", kind: "MachineConfig" },
        object: null,
        oldObject: null,
        ...request,
      },
    };
    const response = await handler(
      { method: "POST", target: admissionPath, headers: {}, body: JSON.stringify(body) },
      undefined,
      new AbortController().signal,
    );
    return (JSON.parse(typeof response.body === "string" ? response.body : "") as { response: Answer }).response;
  };

  test("says which pools get a new configuration, what their machines go through, and what conflicts", async () => {
    const { allowed, warnings } = await ask({ object: config(file("/etc/a", "b")) });
    expect(allowed).toBe(true);
    expect(warnings).toEqual([
      expect.stringMatching(
        /^pool worker gets rendered-worker-[0-9a-f]{32}; 2 machines: drain and reboot, because \/etc\/a has no disruption policy$/,
      ),
      "conflict in pool worker: 99-x replaces the contents that 00-worker gives /etc/a",
    ]);
  });

  test("a user's configuration that is called rendered has one like any other", async () => {
    const { warnings } = await ask({ object: config(file("/etc/a", "b"), { name: "rendered-x" }) });
    expect(warnings?.[0]).toMatch(/^pool worker gets rendered-worker-/);
  });

  test("a deletion has one too, and a change of labels", async () => {
    expect((await ask({ oldObject: facts.machineConfigs[0] })).warnings?.[0]).toContain(
      "pool worker would not render: the pool worker selects no MachineConfig",
    );
    const stored = { ...facts.machineConfigs[0], metadata: { name: "00-worker", labels: {} } };
    expect(
      (await ask({ object: stored, oldObject: facts.machineConfigs[0] })).warnings?.some((line) =>
        line.includes("would not render"),
      ),
    ).toBe(true);
  });

  test("what running machines could not follow is told with the plan", async () => {
    const current = renderPool({
      pool: { metadata: { name: "worker" } },
      members: facts.machineConfigs,
      controllerConfig: { spec: { baseOSContainerImage: "os@sha256:1" } },
    });
    if (current.verdict === "refused") throw new Error("refused");
    expect((await ask({ object: config(ignition({ disks: [{ device: "/dev/vdb" }] })) })).warnings?.[0]).toMatch(
      /^pool worker would not render: 99-x: the section disks changes/,
    );
  });

  test("our own controllers and annotations get none; nor does anybody while facts are missing", async () => {
    const body = { object: config(file("/etc/b", "b")) };
    expect(
      (
        await ask({
          ...body,
          userInfo: { username: controllerUser },
        })
      ).warnings,
    ).toBe(undefined);
    expect((await ask({ ...body, oldObject: body.object })).warnings).toBe(undefined);
    expect((await ask(body, handle)).warnings).toBe(undefined);
    expect((await ask(body, admissionHandler({ log: silentLogger, facts: () => undefined }))).warnings).toBe(undefined);
  });

  test("a plan that cannot be made hinders nobody", async () => {
    const failing = admissionHandler({
      log: silentLogger,
      facts: () => {
        throw new Error("no caches");
      },
    });
    expect(await ask({ object: config(file("/etc/b", "b")) }, failing)).toEqual({ uid: "u", allowed: true });
  });

  test("a cluster of a thousand machines and a pool of a hundred members is answered far within the webhook's time", async () => {
    const many = {
      ...facts,
      machineConfigs: Array.from({ length: 100 }, (_, i) =>
        object("MachineConfig", `${10 + i}-m`, file(`/etc/${i}`, "x".repeat(2000)), labelled),
      ),
      nodes: Array.from({ length: 1000 }, (_, i) => ({
        apiVersion: "v1",
        kind: "Node",
        metadata: { name: `w${i}`, labels: workers.nodeSelector.matchLabels },
      })),
    } as unknown as ClusterObjects;
    const { warnings } = await ask(
      { object: config(file("/etc/b", "b")) },
      admissionHandler({ log: silentLogger, facts: () => many }),
    );
    expect(warnings?.[0]).toContain("1000 machines: drain and reboot");
  }, 5000);
});

describe("deletion of MachineConfigs", () => {
  const rendered = {
    metadata: {
      name: renderedName,
      ownerReferences: [
        {
          apiVersion: "machineconfiguration.openshift.io/v1",
          kind: "MachineConfigPool",
          name: "worker",
          uid: "u",
          controller: true,
        },
      ],
    },
    spec: {},
  };
  const usersOf = (config: string) =>
    config === renderedName ? ["node worker-0 (currentConfig)", "pool worker (status)"] : [];
  async function deletion(
    oldObject: object,
    know: ((config: string) => readonly string[] | undefined) | undefined,
  ): Promise<Answer> {
    const handler = admissionHandler({ log: silentLogger, ...(know === undefined ? {} : { usersOf: know }) });
    const body = {
      apiVersion: "admission.k8s.io/v1",
      kind: "AdmissionReview",
      request: {
        uid: "u",
        kind: { group: "machineconfiguration.openshift.io", kind: "MachineConfig" },
        operation: "DELETE",
        object: null,
        oldObject,
      },
    };
    const response = await handler(
      { method: "POST", target: admissionPath, headers: {}, body: JSON.stringify(body) },
      undefined,
      new AbortController().signal,
    );
    return (JSON.parse(response.body as string) as { response: Answer }).response;
  }

  test("a rendered one that is in use stays; the answer names its users and the remedy [controller-admission-handler-3]", async () => {
    const answer = await deletion(rendered, usersOf);
    expect(answer).toMatchObject({ allowed: false, status: { code: 403, reason: "Forbidden" } });
    expect(answer.status?.message).toMatch(
      /^rendered-worker-0{31}1 is in use by node worker-0 \(currentConfig\), pool worker \(status\): .*bring them to another configuration first/,
    );
  });

  test("one that nothing uses goes, and so does any while nobody knows who uses what; others are their authors' own [controller-admission-handler-4]", async () => {
    expect((await deletion(rendered, () => [])).allowed).toBe(true);
    expect((await deletion(rendered, () => undefined)).allowed).toBe(true);
    expect((await deletion(rendered, undefined)).allowed).toBe(true);
    expect((await deletion({ metadata: { name: renderedName }, spec: {} }, usersOf)).allowed).toBe(true);
  });
});

describe("admission of pools", () => {
  const pool = (spec: object) => ({ metadata: { name: "infra" }, spec });
  test("empty selectors are refused", async () => {
    const answer = await review(
      "MachineConfigPool",
      pool({ machineConfigSelector: {}, nodeSelector: { matchLabels: {} } }),
    );
    expect(answer.status?.details.causes.map(({ field }) => field)).toEqual([
      "spec.machineConfigSelector",
      "spec.nodeSelector",
    ]);
  });
  test("missing ones are warned of", async () => {
    const answer = await review("MachineConfigPool", pool({}));
    expect([answer.allowed, answer.warnings?.length]).toEqual([true, 2]);
  });
});

test.for([
  { title: "other paths are not found", body: {}, target: "/elsewhere", method: "POST", status: 404 },
  { title: "reviews are posted", body: "", target: admissionPath, method: "GET", status: 405 },
  { title: "what is no JSON is refused", body: "{", target: admissionPath, method: "POST", status: 400 },
  {
    title: "what is no review is refused",
    body: { apiVersion: "v1" },
    target: admissionPath,
    method: "POST",
    status: 400,
  },
  { title: "a probe is answered", body: "", target: "/readyz", method: "GET", status: 200 },
])("$title", async ({ body, target, method, status }) => {
  expect((await send(body, target, method)).status).toBe(status);
});

describe("who asks [controller-admission-access-1]", () => {
  const rendered = {
    metadata: {
      name: renderedName,
      ownerReferences: [{ kind: "MachineConfigPool", name: "worker", controller: true }],
    },
    spec: {},
  };
  const asked = { plan: 0 };
  const handlerFor = (access: AdmissionAccess) =>
    admissionHandler({
      log: silentLogger,
      access,
      facts: () => void (asked.plan += 1),
      usersOf: () => ["node secret-worker (currentConfig)"],
    });
  const ask = async (access: AdmissionAccess, request: object, client?: { commonName: string }) => {
    const body = JSON.stringify({
      apiVersion: "admission.k8s.io/v1",
      request: { uid: "u", kind: { kind: "MachineConfig" }, ...request },
    });
    const response = await handlerFor(access)(
      { method: "POST", target: admissionPath, headers: {}, body },
      client === undefined ? undefined : { ...client, organizations: [] },
      new AbortController().signal,
    );
    return { status: response.status, text: typeof response.body === "string" ? response.body : "" };
  };
  const deletion = { object: null, oldObject: rendered };
  const bad = { object: config({ kernelType: "fast" }) };
  const good = { object: config(ignition({})) };

  test("a stranger gets verdicts about what it sends, and nothing of the cluster", async () => {
    asked.plan = 0;
    const strange = { to: "verdicts" } as const;
    expect((await ask(strange, bad)).text).toContain("is invalid");
    expect((await ask(strange, good)).text).toContain('"allowed":true');
    expect(asked.plan).toBe(0);
    const { text } = await ask(strange, deletion);
    expect(text).toContain('"allowed":false');
    expect(text).not.toContain("secret-worker");
  });

  test("with a client authority, callers without the right certificate get nothing, and the API server all", async () => {
    asked.plan = 0;
    const known = { to: "certificates", names: ["api-server"] } as const;
    expect((await ask(known, deletion)).status).toBe(401);
    expect((await ask(known, deletion, { commonName: "another" })).status).toBe(403);
    expect((await ask(known, deletion, { commonName: "api-server" })).text).toContain("secret-worker");
    await ask(known, good, { commonName: "api-server" });
    expect(asked.plan).toBe(1);
    expect((await ask({ to: "certificates", names: [] }, good, { commonName: "another" })).status).toBe(200);
  });
});
