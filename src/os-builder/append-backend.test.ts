import { describe, expect, test } from "vitest";
import { McoError } from "../api/errors.ts";
import type { Secret } from "../api/foreign/kubernetes.ts";
import { imageLabels } from "../api/names.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { systemClock } from "../ports/node/index.ts";
import type { ImageStore, ImageStoreSettings } from "../registry/image-store.ts";
import { appendBackend } from "./append-backend.ts";
import type { BuildRequest, RunRef } from "./backend.ts";
import type { RunState } from "../core/build/run-decision.ts";
import type { Addition } from "../registry/compose-image.ts";

const never = new AbortController().signal;
const digest = `sha256:${"a".repeat(64)}`;
const base = `registry.example/os/stock@sha256:${"1".repeat(64)}`;
const request: BuildRequest = {
  id: "worker-k-1",
  build: {
    metadata: { name: "worker-k" },
    spec: {
      machineConfig: { name: "rendered-worker-1" },
      machineOSConfig: { name: "worker" },
      renderedImagePushSpec: "registry.example/os:w",
    },
  },
  attempt: 1,
  pool: "worker",
  mode: "full",
  architecture: "amd64",
  base,
  context: [],
  configLayer: { bytes: Buffer.from("layer"), digest: "sha256:l", diffId: "sha256:d" },
  mounts: [],
  auth: { pull: "pull", push: "push" },
  trust: ["TRUST"],
  registryCertificates: { "registry.example": ["OWN"] },
  target: { repository: "registry.example/os", tag: "worker-k" },
  epoch: 7,
  noCache: false,
  isolation: "userNamespace",
  limits: { seconds: 60, pushSeconds: 60, cpu: "1", memory: "1Gi", storage: "1Gi" },
  labels: { recipe: "1" },
};
const unavailable = new McoError("MCO_IMAGE_UNREACHABLE", {
  host: "registry.example",
  status: 503,
  action: "push",
  retryable: false,
});

/** A backend on a registry that a test scripts. */
function harness(store: Partial<ImageStore> = {}, secrets: readonly string[] = ["pull", "push"]) {
  const published: Addition[] = [];
  const settings: ImageStoreSettings[] = [];
  const kube = {
    get: async (_: unknown, { name }: { name: string }): Promise<Secret | undefined> =>
      secrets.includes(name)
        ? {
            apiVersion: "v1",
            kind: "Secret",
            metadata: { name },
            type: "kubernetes.io/dockerconfigjson",
            data: { ".dockerconfigjson": btoa(`{"auths":{"${name}.example":{"auth":"x"}}}`) },
          }
        : undefined,
  } as unknown as KubeClient;
  const whole = {
    parentOf: async () => ({ mediaType: "", config: {}, layers: [] }),
    publish: async (_: unknown, addition: Addition) => (published.push(addition), { digest }),
    inspect: async () =>
      ({ is: "image", digest, architecture: "amd64", created: 0, labels: {}, layers: [], diffIds: [] }) as const,
    ...store,
  } as unknown as ImageStore;
  const make = () => appendBackend({ kube, clock: systemClock, storeFor: (given) => (settings.push(given), whole) });
  const backend = make();
  /** The first state of a run that it does not leave by itself. */
  const end = (run: RunRef): Promise<RunState> =>
    new Promise((resolve) => {
      const look = async () => {
        const state = await backend.observe(run, never);
        if (!["Pending", "Running"].includes(state.phase)) resolve(state);
      };
      backend.watch(() => void look());
      void look();
    });
  return { backend, make, end, published, settings };
}

describe("images made by appending a configuration to another image", () => {
  test("a run pushes one labelled image, and verifies it with the machines' credentials", async () => {
    const { backend, end, published, settings } = harness();
    const run = await backend.start(request, never);
    expect(await end(run)).toMatchObject({ phase: "Succeeded", digest });
    expect(published).toEqual([
      {
        dropTopLayer: false,
        layer: request.configLayer,
        labels: {
          recipe: "1",
          [imageLabels.content]: "full",
          [imageLabels.baseDigest]: base.slice(base.indexOf("@") + 1),
        },
        repository: "registry.example/os",
        tag: "worker-k",
        createdSeconds: 7,
      },
    ]);
    expect(settings.map(({ auth }) => auth)).toEqual([
      { pull: '{"auths":{"pull.example":{"auth":"x"}}}', push: '{"auths":{"push.example":{"auth":"x"}}}' },
    ]);
    expect(await settings[0]?.certificates("registry.example")).toEqual(["OWN", "TRUST"]);
    const steps: string[] = [];
    for await (const { step } of backend.logs(run, {}, never)) steps.push(step);
    expect(steps).toEqual(["context", "pull-base", "push", "verify"]);
  });

  test("a run starts once, and is forgotten after its cleanup", async () => {
    const { backend, end, published } = harness();
    const run = await backend.start(request, never);
    expect(await backend.start(request, never)).toEqual(run);
    await end(run);
    await backend.start(request, never);
    expect(published.length).toBe(1);
    await backend.cleanup({ build: "worker-k" }, { keepForInspection: false }, never);
    await end(await backend.start(request, never));
    expect(published.length).toBe(2);
  });

  test("an older configuration is removed from the parent", async () => {
    const { backend, end, published } = harness();
    await end(
      await backend.start(
        { ...request, parent: { image: "registry.example/os@sha256:2", hasConfigLayer: true } },
        never,
      ),
    );
    expect(published).toMatchObject([{ dropTopLayer: true }]);
  });

  test.for<{ title: string; store?: Partial<ImageStore>; secrets?: readonly string[]; failure: object }>([
    {
      title: "a registry that accepts nothing now",
      store: { publish: async () => Promise.reject(unavailable) },
      failure: { class: "PushUnavailable", step: "push" },
    },
    {
      title: "a deleted parent",
      store: { parentOf: async () => Promise.reject(new McoError("MCO_IMAGE_ABSENT", { status: 404 })) },
      failure: { class: "BaseImageNotFound", step: "pull-base" },
    },
    {
      title: "an image that machines may not pull",
      store: { inspect: async () => ({ is: "denied", problem: "401" }) },
      failure: { class: "VerifyFailed", step: "verify" },
    },
    {
      title: "an image for other machines",
      store: {
        inspect: async () => ({
          is: "image",
          digest,
          architecture: "arm64",
          created: 0,
          labels: {},
          layers: [],
          diffIds: [],
        }),
      },
      failure: { class: "VerifyFailed", cause: "the image is for arm64, and the machines are amd64" },
    },
    {
      title: "a deleted secret",
      secrets: ["pull"],
      failure: { class: "InputChanged", cause: "Secret push: there is no such Secret" },
    },
  ])("$title is told as what it is", async ({ store, secrets, failure }) => {
    const { backend, end } = harness(store, secrets);
    expect(await end(await backend.start(request, never))).toMatchObject({ phase: "Failed", failure });
  });

  test("a run that takes too long ends with a timeout", async () => {
    const { backend, end } = harness({
      publish: (_, __, signal) =>
        new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))),
    });
    expect(
      await end(await backend.start({ ...request, limits: { ...request.limits, seconds: 0.02 } }, never)),
    ).toMatchObject({ phase: "Failed", failure: { class: "Timeout", step: "push" } });
  });

  test("a cancelled run ends at once, and does not reappear when its registry answers", async () => {
    let answer: (value: { digest: string }) => void = () => undefined;
    const { backend } = harness({ publish: () => new Promise((resolve) => (answer = resolve)) });
    const run = await backend.start(request, never);
    expect(await backend.list(never)).toEqual([run]);
    await backend.cancel(run, "superseded", never);
    expect(await backend.observe(run, never)).toEqual({ phase: "Gone" });
    answer({ digest });
    expect(await backend.list(never)).toEqual([]);
    expect(await backend.observe(run, never)).toEqual({ phase: "Gone" });
  });

  test("a new process has no runs, and reports earlier ones as lost", async () => {
    const { backend, make } = harness();
    const run = await backend.start(request, never);
    expect(await make().observe(run, never)).toMatchObject({ phase: "Lost", failure: { class: "BuilderLost" } });
  });

  test("the backend refuses steps of a Containerfile", async () => {
    const { backend } = harness();
    expect(await backend.preflight({ ...request, containerfile: "FROM os\nRUN true\n" }, never)).toMatchObject([
      { code: "StepsCannotRun" },
    ]);
    expect(await backend.preflight(request, never)).toEqual([]);
  });
});
