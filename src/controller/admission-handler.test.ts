import { describe, expect, test } from "vitest";
import { labels } from "../api/names.ts";
import { type ClusterObjects } from "../core/preview/plan-cluster.ts";
import { renderPool } from "../core/render/render-pool.ts";
import { silentLogger } from "../ports/logger.ts";
import type { Logger } from "../ports/logger.ts";
import {
  type AdmissionAccess,
  admissionPath,
  answerReview,
  admissionHandler as handlerOf,
} from "./admission-handler.ts";

/** Both halves of the endpoint in one thread. */
const admissionHandler = ({
  log,
  access = { to: "open" },
  facts,
}: {
  readonly log: Logger;
  readonly access?: AdmissionAccess;
  readonly facts?: () => ClusterObjects | undefined;
}) =>
  handlerOf({
    access,
    isReady: () => true,
    review: (body) =>
      Promise.resolve(
        answerReview(body, { log, ...(facts === undefined || access.to === "verdicts" ? {} : { facts }) }),
      ),
  });

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
  test("a valid one passes without a warning", async () => {
    expect(
      await review(
        "MachineConfig",
        config(ignition({ files: [{ path: "/etc/a", mode: 420, contents: { source: "data:,x" } }] })),
      ),
    ).toEqual({ uid: "u", allowed: true });
  });

  test("an invalid one is refused with its field, reason and remedy", async () => {
    const answer = await review("MachineConfig", config(ignition({ files: [{ path: "etc/relative" }] })));
    expect(answer.allowed).toBe(false);
    expect(answer.status).toMatchObject({ code: 422, reason: "Invalid" });
    expect(answer.status?.message).toMatch(/^MachineConfig 99-x is invalid: spec\.config\.storage\.files\[0\]\.path: /);
    expect(answer.status?.details).toMatchObject({ kind: "MachineConfig", name: "99-x" });
    expect(answer.status?.details.causes[0]?.field).toBe("spec.config.storage.files[0].path");
  });

  test("a valid one with an unexpected effect gets a warning", async () => {
    const answer = await review(
      "MachineConfig",
      config(ignition({ files: [{ path: "/run/a", contents: { source: "data:,x" } }] })),
    );
    expect(answer.allowed).toBe(true);
    expect(answer.warnings?.[0]).toContain("spec.config.storage.files[0].path");
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

  test("a stored invalid one can be labelled and deleted, but gets no other invalid spec", async () => {
    const bad = config({ kernelType: "fast" });
    expect((await review("MachineConfig", config({ kernelType: "fast" }, { labels: { a: "b" } }), bad)).allowed).toBe(
      true,
    );
    expect((await review("MachineConfig", config({ kernelType: "faster" }), bad)).allowed).toBe(false);
  });

  test("who changes one field need not correct another that an earlier release accepted [admission-standing-1]", async () => {
    const entry = (path: string, more: object = {}) => ({ path, contents: { source: "data:,x" }, ...more });
    const stored = config(ignition({ files: [entry("/etc/a"), entry("etc/old")] }));
    const withFile = config(ignition({ files: [entry("/etc/new"), entry("/etc/a"), entry("etc/old", { mode: 420 })] }));
    const answer = await review("MachineConfig", withFile, stored);
    expect(answer.allowed).toBe(true);
    expect(answer.warnings).toEqual([
      expect.stringMatching(
        /^spec\.config\.storage\.files\[2\]\.path: .*\(it was stored so, and is not refused for that\)/,
      ),
    ]);
    const another = config(ignition({ files: [entry("/etc/a"), entry("etc/old"), entry("etc/other")] }));
    const refused = await review("MachineConfig", another, stored);
    expect(refused.allowed).toBe(false);
    expect(refused.status?.details.causes.map(({ field }) => field)).toEqual(["spec.config.storage.files[2].path"]);
    const moved = config(ignition({ files: [entry("/etc/a"), entry("etc/older")] }));
    expect((await review("MachineConfig", moved, stored)).allowed).toBe(false);
    expect((await review("MachineConfig", withFile)).allowed).toBe(false);
  });

  test("a KubeletConfig and a ContainerRuntimeConfig likewise [admission-standing-2]", async () => {
    const settings = (kind: string, spec: object) => ({ ...config(spec), kind });
    const kubelet = (more: object) => settings("KubeletConfig", { kubeletConfig: { maxPods: -1, ...more } });
    expect((await review("KubeletConfig", kubelet({ podPidsLimit: 1000 }))).allowed).toBe(false);
    expect((await review("KubeletConfig", kubelet({ podPidsLimit: 1000 }), kubelet({}))).allowed).toBe(true);
    expect((await review("KubeletConfig", kubelet({ imageGCHighThresholdPercent: 101 }), kubelet({}))).allowed).toBe(
      false,
    );
    const elsewhere = kubelet({ podPidsLimit: 1000 });
    const others = {
      ...elsewhere,
      spec: { ...elsewhere.spec, machineConfigPoolSelector: { matchLabels: { a: "b" } } },
    };
    expect((await review("KubeletConfig", others, kubelet({}))).allowed).toBe(false);
    const runtime = (more: object) =>
      settings("ContainerRuntimeConfig", { containerRuntimeConfig: { pidsLimit: 3, ...more } });
    expect((await review("ContainerRuntimeConfig", runtime({ logLevel: "debug" }))).allowed).toBe(false);
    expect((await review("ContainerRuntimeConfig", runtime({ logLevel: "debug" }), runtime({}))).allowed).toBe(true);
  });

  test("problems below a long key are told from those that stood in little time and memory [admission-standing-5]", async () => {
    const headers = (count: number) => ({
      ...config({
        kubeletConfig: { staticPodURLHeader: { ["a".repeat(100_000)]: Array.from({ length: count }, () => 1) } },
      }),
      kind: "KubeletConfig",
    });
    const empty = { ...config({}), kind: "KubeletConfig" };
    const [began, heap] = [process.cpuUsage(), process.memoryUsage().heapUsed];
    const refused = await review("KubeletConfig", headers(20_000), empty);
    expect(process.cpuUsage(began).user / 1e6).toBeLessThan(2);
    expect(process.memoryUsage().heapUsed - heap).toBeLessThan(200e6);
    expect(refused).toMatchObject({ allowed: false, status: { code: 422 } });
    expect((await review("KubeletConfig", headers(20_000), headers(20_000))).allowed).toBe(true);
    expect((await review("KubeletConfig", headers(20_001), headers(20_000))).allowed).toBe(false);
  });

  describe("of a list with more problems than are said", () => {
    const kubelet = (kubeletConfig: object, metadata: object = {}) => ({
      ...config({ kubeletConfig }, metadata),
      kind: "KubeletConfig",
    });
    const isAllowed = async (before: object, after: object, metadata: object = {}) =>
      (await review("KubeletConfig", kubelet(after, metadata), kubelet(before))).allowed;
    const taints = (count: number): readonly object[] =>
      Array.from({ length: count }, (_, i) => ({ key: `k${i}`, effect: "No" }));
    const wrong = { key: "k", effect: "Never" };

    test.for([150, 20_000])(
      "of %i problems none is new where the list stays or is shortened [admission-standing-6]",
      async (count) => {
        const registerWithTaints = taints(count);
        const before = { registerWithTaints };
        expect(await isAllowed(before, before, { labels: { a: "b" } })).toBe(true);
        expect(await isAllowed(before, { ...before, podPidsLimit: 1000 })).toBe(true);
        expect(await isAllowed(before, { registerWithTaints: registerWithTaints.slice(1) })).toBe(true);
        expect(await isAllowed(before, { registerWithTaints: registerWithTaints.slice(-20) })).toBe(true);
        expect(await isAllowed(before, { registerWithTaints: [] })).toBe(true);
      },
    );

    test.for([150, 20_000])(
      "beside %i problems a new one is refused, wherever it is and whatever it takes the place of [admission-standing-7]",
      async (count) => {
        const registerWithTaints = taints(count);
        const before = { registerWithTaints };
        for (const changed of [
          [...registerWithTaints, wrong],
          [wrong, ...registerWithTaints],
          registerWithTaints.with(-1, wrong),
          [...registerWithTaints.slice(1), { key: "k1", effect: "No" }],
        ])
          expect(await isAllowed(before, { registerWithTaints: changed })).toBe(false);
        expect(await isAllowed(before, { ...before, maxPods: -1 })).toBe(false);
        expect(await isAllowed(before, { ...before, maxPods: "many" })).toBe(false);
      },
    );

    test("what another field makes wrong with a list is new, whatever number of problems it has [admission-standing-8]", async () => {
      const enforceNodeAllocatable = [...Array.from({ length: 20_000 }, (_, i) => `x${i}`), "pods"];
      expect(await isAllowed({ enforceNodeAllocatable }, { enforceNodeAllocatable, podPidsLimit: 1000 })).toBe(true);
      expect(await isAllowed({ enforceNodeAllocatable }, { enforceNodeAllocatable, cgroupsPerQOS: false })).toBe(false);
      const vmodule = Array.from({ length: 20_000 }, () => ({ filePattern: "=" }));
      const options = { text: { splitStream: true } };
      expect(await isAllowed({ logging: { vmodule } }, { logging: { vmodule, verbosity: 2 } })).toBe(true);
      expect(await isAllowed({ logging: { vmodule } }, { logging: { vmodule, format: "json" } })).toBe(false);
      expect(await isAllowed({ logging: { vmodule } }, { logging: { vmodule, options } })).toBe(false);
    });

    test("the items of a map are told apart by their names [admission-standing-9]", async () => {
      const headers = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`h${i}`, i]));
      const { h7: _, ...fewer } = headers;
      expect(await isAllowed({ staticPodURLHeader: headers }, { staticPodURLHeader: fewer })).toBe(true);
      expect(await isAllowed({ staticPodURLHeader: headers }, { staticPodURLHeader: { ...headers, h7: 8 } })).toBe(
        false,
      );
      expect(await isAllowed({ staticPodURLHeader: fewer }, { staticPodURLHeader: headers })).toBe(false);
    });
  });
});

describe("admission of pools", () => {
  const pool = (annotations: object) => ({
    metadata: { name: "worker", annotations },
    spec: { nodeSelector: { matchLabels: { a: "" } }, machineConfigSelector: { matchLabels: { a: "" } } },
  });
  const key = "machineconfiguration.openshift.io/drain-after-deadline";

  test("a new invalid annotation is refused; an existing one blocks no other change", async () => {
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

  test("names the re-rendered pools, the actions of their machines, and conflicts", async () => {
    const { allowed, warnings } = await ask({ object: config(file("/etc/a", "b")) });
    expect(allowed).toBe(true);
    expect(warnings).toEqual([
      expect.stringMatching(
        /^pool worker gets rendered-worker-[0-9a-f]{32}; 2 machines: drain and reboot, because \/etc\/a has no disruption policy$/,
      ),
      "conflict in pool worker: 99-x replaces the contents that 00-worker gives /etc/a",
    ]);
  });

  test("a user's configuration that is named like a rendered one gets a plan", async () => {
    const { warnings } = await ask({ object: config(file("/etc/a", "b"), { name: "rendered-x" }) });
    expect(warnings?.[0]).toMatch(/^pool worker gets rendered-worker-/);
  });

  test("a deletion and a change of labels get a plan", async () => {
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

  test("a label that no pool's selector names leaves what an earlier release accepted where it is [admission-standing-4]", async () => {
    const selector = { matchExpressions: [{ key: "team", operator: "In", values: ["a"] }] };
    const teamA = object("MachineConfigPool", "team-a", { ...workers, machineConfigSelector: selector });
    const pools = [...facts.pools, teamA] as unknown as ClusterObjects["pools"];
    const withTeam = admissionHandler({ log: silentLogger, facts: () => ({ ...facts, pools }) });
    const stored = config({ kernelType: "fast" });
    const changed = (more: object) =>
      config({ kernelType: "fast", kernelArguments: ["a"] }, { labels: { ...labelled.labels, ...more } });
    const isAllowed = async (more: object, handler = withTeam) =>
      (await ask({ object: changed(more), oldObject: stored }, handler)).allowed;
    expect(await isAllowed({ app: "x" })).toBe(true);
    expect(await isAllowed({ team: "a" })).toBe(false);
    expect(await isAllowed({ [labels.role]: "infra" })).toBe(false);
    // Without the pools, any label may be one that they name.
    expect(await isAllowed({ app: "x" }, handle)).toBe(false);

    const kind = { group: "machineconfiguration.openshift.io", kind: "KubeletConfig" };
    const settings = (more: object, has: object) =>
      object("KubeletConfig", "k", { kubeletConfig: { maxPods: -1, ...more } }, { labels: has });
    const before = settings({}, {});
    expect((await ask({ kind, object: settings({ podPidsLimit: 9 }, { app: "x" }), oldObject: before })).allowed).toBe(
      true,
    );
  });

  test("the plan lists changes that running machines cannot apply", async () => {
    const current = renderPool({
      pool: { metadata: { name: "worker" } },
      members: facts.machineConfigs,
      controllerConfig: { spec: { baseOSContainerImage: "os@sha256:1" } },
    });
    if (current.verdict === "refused") throw new Error("refused");
    expect((await ask({ object: config(ignition({ disks: [{ device: "/dev/vdb" }] })) })).warnings).toContainEqual(
      expect.stringMatching(/^pool worker would not render: 99-x: the section disks changes/),
    );
  });

  const notes = (name: string, path: string) => ({
    ...object("MachineConfig", name, file(path, "n"), labelled),
  });
  const withNotes = admissionHandler({
    log: silentLogger,
    facts: () =>
      ({ ...facts, machineConfigs: [...facts.machineConfigs, notes("70-notes", "/etc/notes")] }) as ClusterObjects,
  });

  test("a path below a file of another MachineConfig is refused, with both objects and fields [admission-together-1]", async () => {
    const { allowed, status } = await ask({ object: notes("71-notes", "/etc/notes/today") }, withNotes);
    expect(allowed).toBe(false);
    expect(status).toMatchObject({
      code: 422,
      message: expect.stringContaining(
        "MachineConfig 71-notes is invalid: spec.config.storage.files[0].path: 70-notes (spec.config.storage.files[0].path) makes /etc/notes a file, and 71-notes (spec.config.storage.files[0].path) puts a file below it at /etc/notes/today; no disk can hold both; give one of the two another path",
      ) as string,
      details: { causes: [{ field: "spec.config.storage.files[0].path" }] },
    });
    expect((await ask({ object: notes("70-notes", "/etc/notes/today") }, withNotes)).allowed).toBe(true);
  });

  test("two that contradict each other already may be changed otherwise [admission-standing-3]", async () => {
    const stored = [notes("70-notes", "/etc/notes"), notes("71-notes", "/etc/notes/today")];
    const standing = admissionHandler({
      log: silentLogger,
      facts: () => ({ ...facts, machineConfigs: [...facts.machineConfigs, ...stored] }) as ClusterObjects,
    });
    const [, second] = stored;
    const changed = { ...second, spec: { ...(second?.["spec"] as object), kernelArguments: ["quiet"] } };
    const answer = await ask({ object: changed, oldObject: second }, standing);
    expect(answer.allowed).toBe(true);
    expect(answer.warnings).toContainEqual(expect.stringMatching(/^pool worker would not render: 70-notes/));
    expect((await ask({ object: notes("72-notes", "/etc/notes/tomorrow") }, standing)).allowed).toBe(false);
    const entry = (path: string) => ({ path, contents: { source: "data:,n" } });
    const spec = {
      config: { ignition: { version: "3.4.0" }, storage: { files: ["/etc/first", "/etc/notes/today"].map(entry) } },
    };
    expect((await ask({ object: { ...second, spec }, oldObject: second }, standing)).allowed).toBe(true);
  });

  test("a pool that newly selects such MachineConfigs is refused, and one that changes otherwise is not [admission-together-2]", async () => {
    const both = admissionHandler({
      log: silentLogger,
      facts: () =>
        ({
          ...facts,
          machineConfigs: [
            ...facts.machineConfigs,
            object("MachineConfig", "70-notes", file("/etc/notes", "n"), { labels: { [labels.role]: "one" } }),
            object("MachineConfig", "71-notes", file("/etc/notes/today", "n"), { labels: { [labels.role]: "two" } }),
          ],
        }) as ClusterObjects,
    });
    const pool = (values: readonly string[], paused: boolean) => ({
      ...object("MachineConfigPool", "infra", {
        machineConfigSelector: { matchExpressions: [{ key: labels.role, operator: "In", values }] },
        nodeSelector: { matchLabels: { infra: "" } },
        paused,
      }),
    });
    const asked = { kind: { group: "machineconfiguration.openshift.io", kind: "MachineConfigPool" } };
    const newly = await ask({ ...asked, object: pool(["worker", "one", "two"], false) }, both);
    expect(newly.allowed).toBe(false);
    expect(newly.status?.details.causes[0]?.field).toBe("spec.machineConfigSelector");
    expect((await ask({ ...asked, object: pool(["worker", "one"], false) }, both)).allowed).toBe(true);
    const otherwise = {
      object: pool(["worker", "one", "two"], true),
      oldObject: pool(["worker", "one", "two"], false),
    };
    expect((await ask({ ...asked, ...otherwise }, both)).allowed).toBe(true);
  });

  test("a file to append to, and one whose contents nobody gives, are refused with field and remedy [admission-together-3]", async () => {
    const storage = (entry: object) => ({ files: [{ path: "/etc/hosts", ...entry }] });
    const append = await ask({ object: config(ignition(storage({ append: [{ source: "data:,x" }] }))) });
    expect(append.status?.details.causes).toEqual([
      {
        reason: "FieldValueInvalid",
        field: "spec.config.storage.files[0].append",
        message:
          "appends to /etc/hosts, which a machine that runs refuses: writing it twice would append twice; give the whole file in contents, and take append away",
      },
    ]);
    const bare = await ask({ object: config(ignition(storage({ mode: 384 }))) });
    expect(bare.status?.message).toBe(
      "MachineConfig 99-x is invalid: spec.config.storage.files[0]: 99-x: /etc/hosts has no contents in any MachineConfig of the pool; give contents.source, the whole file as a data URL (data:, for an empty file)",
    );
    const mode = { files: [{ path: "/etc/a", mode: 384 }] };
    expect((await ask({ object: config(ignition(mode)) })).allowed).toBe(true);
  });

  test("the suite's controllers and changes of annotations get no plan; no caller gets one while facts are missing", async () => {
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

  test("a failed plan blocks no request", async () => {
    const failing = admissionHandler({
      log: silentLogger,
      facts: () => {
        throw new Error("no caches");
      },
    });
    expect(await ask({ object: config(file("/etc/b", "b")) }, failing)).toEqual({ uid: "u", allowed: true });
  });

  test("a plan for a thousand machines and a pool of a hundred members takes a fraction of the webhook's timeout", async () => {
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

describe("admission of objects about registries", () => {
  const release = `quay.io/openshift/release@sha256:${"a".repeat(64)}`;
  const mirrorSet = (kind: string, field: string, source: string, policy: string) => ({
    apiVersion: "config.openshift.io/v1",
    kind,
    metadata: { name: "set" },
    spec: { [field]: [{ source, mirrors: ["mirror.example.com/set"], mirrorSourcePolicy: policy }] },
  });
  const cluster = {
    pools: [
      {
        apiVersion: "machineconfiguration.openshift.io/v1",
        kind: "MachineConfigPool",
        metadata: { name: "worker", labels: { [labels.builtInPool]: "" } },
        spec: {
          machineConfigSelector: { matchLabels: { "machineconfiguration.openshift.io/role": "worker" } },
          nodeSelector: { matchLabels: { "node-role.kubernetes.io/worker": "" } },
        },
      },
    ],
    machineConfigs: [{ apiVersion: "v1", kind: "MachineConfig", ...config(ignition({}), { name: "01-worker" }) }],
    machineConfiguration: undefined,
    controllerConfig: { metadata: { name: "c", uid: "1" }, spec: { baseOSContainerImage: "os@sha256:1" } },
    nodes: [{ kind: "Node", metadata: { name: "w0", labels: { "node-role.kubernetes.io/worker": "" } } }],
    registries: {
      image: undefined,
      digestMirrorSets: [],
      contentSourcePolicies: [],
      tagMirrorSets: [],
      clusterImagePolicies: [],
      imagePolicies: [],
      releaseImage: release,
    },
  } as unknown as ClusterObjects;
  const ask = async (object: { readonly kind: string }, facts?: () => ClusterObjects): Promise<Answer> => {
    const body = JSON.stringify({
      apiVersion: "admission.k8s.io/v1",
      request: { uid: "u", kind: { group: "config.openshift.io", kind: object.kind }, object, oldObject: null },
    });
    const response = answerReview(body, { log: silentLogger, ...(facts === undefined ? {} : { facts }) });
    return (JSON.parse(typeof response.body === "string" ? response.body : "") as { response: Answer }).response;
  };
  const never = "NeverContactSource";

  test("one that cuts the cluster off from its release is refused, where the cluster is known [admission-registries-1]", async () => {
    const cutting = mirrorSet("ImageTagMirrorSet", "imageTagMirrors", "quay.io/openshift", never);
    const answer = await ask(cutting, () => cluster);
    expect(answer.status).toMatchObject({ code: 422, details: { kind: "ImageTagMirrorSet", name: "set" } });
    expect(answer.status?.details.causes).toMatchObject([
      {
        field: "spec.imageTagMirrors[0].mirrorSourcePolicy",
        message: expect.stringContaining(`cuts the cluster off from the image of its release, ${release}`) as string,
      },
    ]);
    expect(await ask(cutting)).toEqual({ uid: "u", allowed: true });
    const failing = () => {
      throw new Error("no caches");
    };
    expect(await ask(cutting, failing)).toEqual({ uid: "u", allowed: true });
  });

  test("one that is accepted says what may go wrong, and what machines do about it [admission-registries-2]", async () => {
    const digests = mirrorSet("ImageDigestMirrorSet", "imageDigestMirrors", "quay.io/openshift", never);
    const { allowed, warnings } = await ask(digests, () => cluster);
    expect(allowed).toBe(true);
    expect(warnings).toEqual([
      expect.stringContaining("lets machines pull the image of the release") as string,
      expect.stringMatching(/^pool worker gets rendered-worker-[0-9a-f]{32}; 1 machine: /) as string,
    ]);
  });

  test("a ClusterImagePolicy is judged, and its plan said, like other objects about registries [admission-registries-3]", async () => {
    const policy = (rootOfTrust: object) => ({
      apiVersion: "config.openshift.io/v1",
      kind: "ClusterImagePolicy",
      metadata: { name: "set" },
      spec: { scopes: ["quay.io/signed"], policy: { rootOfTrust } },
    });
    const keyData = btoa("-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----\n");
    const taken = await ask(policy({ policyType: "PublicKey", publicKey: { keyData } }), () => cluster);
    expect(taken).toMatchObject({
      allowed: true,
      warnings: [expect.stringMatching(/^pool worker gets rendered-worker-[0-9a-f]{32}; 1 machine: /)],
    });
    const refused = await ask(policy({ policyType: "PublicKey" }), () => cluster);
    expect(refused.status).toMatchObject({
      code: 422,
      details: { causes: [{ field: expect.stringMatching(/^spec\.policy\.rootOfTrust/) }] },
    });
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
  test.for([
    ["abc", "refused"],
    ["", "refused"],
    ["-1", "refused"],
    ["1.5", "refused"],
    ["10 %", "refused"],
    ["101%", "refused"],
    [0, "warned of"],
    ["0%", "warned of"],
    [3, "taken"],
    ["3", "refused"],
    [-1, "refused"],
    ["5.5%", "refused"],
    ["25%", "taken"],
    ["100%", "taken"],
  ] as const)("maxUnavailable %s is %s [controller-admission-handler-5]", async ([maxUnavailable, what]) => {
    const selectors = { nodeSelector: { matchLabels: { a: "" } }, machineConfigSelector: { matchLabels: { a: "" } } };
    const answer = await review("MachineConfigPool", pool({ ...selectors, maxUnavailable }));
    expect(answer.allowed).toBe(what !== "refused");
    expect(answer.status?.details.causes.map(({ field }) => field) ?? []).toEqual(
      what === "refused" ? ["spec.maxUnavailable"] : [],
    );
    if (what === "refused")
      expect(answer.status?.message).toMatch(/write (a number of machines from 1, or a percentage|3 without quotes)/);
    expect(answer.warnings?.length ?? 0).toBe(what === "warned of" ? 1 : 0);
    // A value that was stored before blocks no other change, those of the controllers included.
    const later = { ...pool({ ...selectors, maxUnavailable, paused: true }) };
    expect((await review("MachineConfigPool", later, pool({ ...selectors, maxUnavailable }))).allowed).toBe(true);
  });
  test("missing ones get a warning", async () => {
    const answer = await review("MachineConfigPool", pool({}));
    expect([answer.allowed, answer.warnings?.length]).toEqual([true, 2]);
  });
});

test("a warning is text that kubectl shows as it is [controller-admission-handler-34]", async () => {
  const tagged = { metadata: { name: "a" }, spec: { osImageURL: "registry.example/os:latest" } };
  const { warnings = [] } = await review("MachineConfig", tagged);
  expect(warnings.join("\n")).toContain("registry.example.com/path@sha256:...");
  expect(warnings.join("")).toMatch(/^[ -~]*$/);
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

describe("the caller of a review [controller-admission-access-1]", () => {
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

  test("without authentication gets verdicts about its input, and no content of the cluster", async () => {
    asked.plan = 0;
    const strange = { to: "verdicts" } as const;
    expect((await ask(strange, bad)).text).toContain("is invalid");
    expect((await ask(strange, good)).text).toContain('"allowed":true');
    expect(asked.plan).toBe(0);
    // Not even whether a rendered config is in use: the API server decides that, and answers its own clients only.
    expect((await ask(strange, deletion)).text).toContain('"allowed":true');
    expect(asked.plan).toBe(0);
  });

  test("without the right certificate gets nothing under a client authority; the API server gets everything", async () => {
    asked.plan = 0;
    const known = { to: "certificates", names: ["api-server"] } as const;
    expect((await ask(known, deletion)).status).toBe(401);
    expect((await ask(known, deletion, { commonName: "another" })).status).toBe(403);
    expect((await ask(known, deletion, { commonName: "api-server" })).status).toBe(200);
    await ask(known, good, { commonName: "api-server" });
    expect(asked.plan).toBe(2);
    expect((await ask({ to: "certificates", names: [] }, good, { commonName: "another" })).status).toBe(200);
  });
});

test.each([
  { title: "null", body: "null" },
  {
    title: "an object without metadata",
    body: '{"apiVersion":"admission.k8s.io/v1","request":{"uid":"u","object":{}}}',
  },
  {
    title: "a pool without a spec",
    body: '{"apiVersion":"admission.k8s.io/v1","request":{"uid":"u","kind":{"kind":"MachineConfigPool"},"object":{"metadata":{"name":"a"}}}}',
  },
  {
    title: "fields of other types",
    body: '{"apiVersion":"admission.k8s.io/v1","request":{"uid":"u","kind":{"kind":"MachineConfig"},"object":{"metadata":{"name":5},"spec":{"kernelArguments":7}}}}',
  },
])("a made-up review does not end the planner: $title [attack-admission-3]", async ({ body }) => {
  expect((await send(body)).status).toBe(400);
});
