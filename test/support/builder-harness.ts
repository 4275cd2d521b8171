import { ControllerConfig } from "../../src/api/kinds/controller-config.ts";
import { type Secret, kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { MachineConfig } from "../../src/api/kinds/machine-config.ts";
import { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import { MachineOSBuild } from "../../src/api/kinds/machine-os-build.ts";
import { MachineOSConfig } from "../../src/api/kinds/machine-os-config.ts";
import { annotations, buildNamespace, imageLabels, labels, namespace, objects } from "../../src/api/names.ts";
import { conditionOf } from "../../src/api/schema/object.ts";
import { encodeDataUrl } from "../../src/ignition/data-url.ts";
import { createEventRecorder } from "../../src/kube/event-recorder.ts";
import { WatchCache } from "../../src/kube/watch-cache.ts";
import { builderPolicies } from "../../src/operator/admission-policies.ts";
import type { BuildRequest } from "../../src/os-builder/backend.ts";
import { FakeBackend } from "./fake-backend.ts";
import type { ImageAccess, Images } from "../../src/os-builder/images.ts";
import { runOsBuilder } from "../../src/os-builder/run-os-builder.ts";
import { clockFrom } from "../../src/ports/clock.ts";
import type { HttpHandler } from "../../src/ports/http.ts";
import { type Logger, silentLogger } from "../../src/ports/logger.ts";
import { memoryJournal } from "../../src/ports/journal.ts";
import { type InProcessCluster, inProcessCluster } from "../simulation/in-process-cluster.ts";
import { Kernel } from "../simulation/kernel.ts";
import { type BuildState, stateOfBuild } from "../../src/core/config/build-phase.ts";
import { VirtualHarness } from "./virtual-harness.ts";

export const repository = "r.example.com/team/os";
export const baseImage = (letter: string) => `b.example.com/os@sha256:${letter.repeat(64)}`;
const credentials = (host: string) => btoa(JSON.stringify({ auths: { [host]: { auth: btoa("u:p") } } }));

const taggedName = (image: string, letter: string) =>
  `${image.slice(0, image.lastIndexOf(":"))}@sha256:${letter.repeat(64)}`;

/** Images of a registry that does not exist, as the test defines them. */
export class FakeRegistry implements Images {
  /** Pullspec → labels. */
  readonly images = new Map<string, Readonly<Record<string, string>>>();
  readonly deleted: string[] = [];
  is: "up" | "down" | "denying" = "up";
  pushing: "yes" | "denied" = "yes";
  worldReadable = false;
  passwd = "root:x:0:0\n";
  architecture = "amd64";
  deletes: "deleted" | "denied" = "deleted";

  /** The letter of the digest that a tag means to whoever asks with these rules. */
  tagged: (access: ImageAccess) => string = () => "f";

  resolve(image: string): Promise<string> {
    return Promise.resolve(taggedName(image, "f"));
  }

  /** The registry as it answers whoever asks with these rules. */
  as(access: ImageAccess): Images {
    const view = Object.create(this) as FakeRegistry;
    view.resolve = (image) => Promise.resolve(taggedName(image, this.tagged(access)));
    return view;
  }

  inspect(image: string): ReturnType<Images["inspect"]> {
    if (this.is === "down") return Promise.resolve({ is: "unreachable", problem: "connection refused" });
    const isBase = image.startsWith("b.example.com/");
    const has = isBase ? { "containers.bootc": "1" } : this.images.get(image);
    if (this.is === "denying" && !isBase) return Promise.resolve({ is: "denied", problem: "401" });
    if (has === undefined) return Promise.resolve({ is: "absent", problem: "manifest unknown" });
    return Promise.resolve({
      is: "image",
      digest: image.slice(image.indexOf("@") + 1),
      architecture: this.architecture,
      created: Date.UTC(2025, 0, 1),
      labels: has,
      layers: [],
      diffIds: [],
    });
  }

  readFiles(): ReturnType<Images["readFiles"]> {
    return Promise.resolve(new Map([["/etc/passwd", new TextEncoder().encode(this.passwd)]]));
  }

  delete(image: string, _signal?: AbortSignal): ReturnType<Images["delete"]> {
    if (this.deletes === "denied") return Promise.resolve("denied");
    this.deleted.push(image);
    return Promise.resolve(this.images.delete(image) ? "deleted" : "absent");
  }

  mayPush(): ReturnType<Images["mayPush"]> {
    return Promise.resolve(this.is === "down" ? "unreachable" : this.pushing);
  }

  isWorldReadable(): Promise<boolean> {
    return Promise.resolve(this.worldReadable);
  }
}

export interface WantedConfig {
  readonly files?: Readonly<Record<string, string>>;
  readonly spec?: object;
  readonly base?: string;
}

/** The os-builder and an API server in virtual time; the test supplies the backend and the registry. */
export class BuilderHarness extends VirtualHarness {
  readonly backend: FakeBackend;
  readonly registry = new FakeRegistry();
  readonly journal = memoryJournal();
  /** The credentials that the registry received. */
  readonly accesses: ImageAccess[] = [];
  /** Intercepts requests of the os-builder to the API server. */
  intercept: (handler: HttpHandler) => HttpHandler = (handler) => handler;
  readonly poolKind = MachineConfigPool;
  readonly buildKind = MachineOSBuild;
  readonly #asBuilder: HttpHandler;
  #renders = 0;

  private constructor(kernel: Kernel, cluster: InProcessCluster) {
    super(kernel, cluster);
    // With the builder's name, which policies bound.
    this.#asBuilder = cluster.server.as({
      name: `system:serviceaccount:${namespace}:${objects.osBuilder}`,
      groups: ["system:masters"],
    });
    this.backend = new FakeBackend(kernel.clock);
    this.backend.onImage = (image: string, request: BuildRequest) =>
      this.registry.images.set(image, { ...request.labels, "containers.bootc": "1" });
  }

  static async make(pools: readonly string[] = ["worker"]): Promise<BuilderHarness> {
    const kernel = new Kernel(7);
    const harness: BuilderHarness = new BuilderHarness(kernel, await kernel.complete(inProcessCluster(kernel), 60_000));
    await harness.act(async () => {
      const { kube } = harness;
      for (const name of [namespace, buildNamespace])
        await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
      await kube.create(ControllerConfig, {
        apiVersion: ControllerConfig.apiVersion,
        kind: "ControllerConfig",
        metadata: { name: objects.controllerConfig },
        spec: {
          clusterDNSIP: "10.0.0.10",
          cloudProviderConfig: "",
          kubeAPIServerServingCAData: "",
          rootCAData: "",
          cloudProviderCAData: null,
          additionalTrustBundle: null,
          images: {},
          baseOSContainerImage: "os@sha256:0",
          releaseImage: "r",
          proxy: null,
          infra: null,
          dns: null,
          ipFamilies: "IPv4",
        },
      });
      for (const policy of builderPolicies({ image: "suite", isolation: "userNamespace", defaultOptIn: true }))
        await kube.create(
          policy.kind === "ValidatingAdmissionPolicy"
            ? kubernetes.ValidatingAdmissionPolicy
            : kubernetes.ValidatingAdmissionPolicyBinding,
          policy,
        );
      harness.copySecrets();
      await harness.secret("push", "r.example.com");
      await harness.secret(objects.globalPullSecret, "b.example.com");
      for (const pool of pools) {
        await kube.create(MachineConfigPool, {
          apiVersion: MachineConfigPool.apiVersion,
          kind: "MachineConfigPool",
          metadata: { name: pool },
          spec: { nodeSelector: { matchLabels: { [`node-role.kubernetes.io/${pool}`]: "" } } },
        });
        await harness.render(pool, { files: { "/etc/a": "1" } });
      }
    });
    return harness;
  }

  override pass(ms: number): Promise<void> {
    // Virtual time passes from event to event: schedule one at its end.
    this.kernel.schedule(ms, "passed", () => undefined);
    return super.pass(ms);
  }

  /** In place of the operator: copies each Secret for the builder. */
  copySecrets(): void {
    const { kube } = this;
    const { clock, random } = this.kernel;
    const copies = new WatchCache<Secret>({
      kube,
      clock,
      random,
      log: silentLogger,
      resource: kubernetes.Secret,
      selection: { namespace },
      keep: (secret) => secret,
    });
    copies.onChange(({ before, after }) => {
      const key = { name: (after ?? before)?.metadata.name ?? "", namespace: buildNamespace };
      void (async () => {
        if (after === undefined) return kube.delete(kubernetes.Secret, key);
        const metadata = { ...key, labels: { [labels.buildCredential]: "" } };
        const { type, data } = after;
        await kube.apply<Secret>(
          kubernetes.Secret,
          {
            apiVersion: "v1",
            kind: "Secret",
            metadata,
            ...(type === undefined ? {} : { type }),
            ...(data === undefined ? {} : { data }),
          },
          { owner: "operator", force: true },
        );
      })().catch(() => undefined);
    });
    void copies.run(new AbortController().signal).catch(() => undefined);
  }

  secret(name: string, host: string) {
    return this.kube.create(kubernetes.Secret, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name, namespace },
      type: "kubernetes.io/dockerconfigjson",
      data: { ".dockerconfigjson": credentials(host) },
    });
  }

  configMap(name: string, data: Readonly<Record<string, string>>) {
    return this.kube.apply(
      kubernetes.ConfigMap,
      { metadata: { name, namespace }, data: { ...data } },
      { owner: "people", force: true },
    );
  }

  buildConfig(more: Readonly<Record<string, string>> = {}) {
    return this.configMap(objects.buildConfig, {
      baseImagePullSecretName: objects.globalPullSecret,
      finalImagePushSecretName: "push",
      finalImagePullspec: `${repository}:v1`,
      ...more,
    });
  }

  /** Makes a rendered configuration and points the pool to it. */
  async render(
    pool: string,
    { files = {}, spec = {}, base = "b" }: WantedConfig,
    name = `rendered-${pool}-${(this.#renders += 1)}`,
  ): Promise<string> {
    await this.kube.apply(
      MachineConfig,
      {
        metadata: { name },
        spec: {
          osImageURL: baseImage(base),
          config: {
            ignition: { version: "3.4.0" },
            storage: {
              files: Object.entries(files).map(([path, text]) => ({
                path,
                mode: 0o644,
                contents: { source: encodeDataUrl(text) },
              })),
            },
          },
          ...spec,
        },
      },
      { owner: "render" },
    );
    await this.point(pool, name);
    return name;
  }

  point(pool: string, name: string) {
    return this.kube.patch(
      MachineConfigPool,
      { name: pool },
      { type: "merge", body: { spec: { configuration: { name } } } },
    );
  }

  optIn(pool = "worker", has: Readonly<Record<string, string>> = {}, spec: Partial<MachineOSConfig["spec"]> = {}) {
    return this.kube.create(MachineOSConfig, {
      apiVersion: MachineOSConfig.apiVersion,
      kind: "MachineOSConfig",
      metadata: { name: pool, annotations: { ...has } },
      spec: {
        machineConfigPool: { name: pool },
        imageBuilder: { imageBuilderType: "Job" },
        renderedImagePushSecret: { name: "push" },
        renderedImagePushSpec: `${repository}:latest`,
        ...spec,
      },
    });
  }

  node(
    name: string,
    pool: string,
    has: {
      readonly labels?: Readonly<Record<string, string>>;
      readonly annotations?: Readonly<Record<string, string>>;
    } = {},
  ) {
    return this.kube.create(kubernetes.Node, {
      apiVersion: "v1",
      kind: "Node",
      metadata: {
        name,
        labels: { [`node-role.kubernetes.io/${pool}`]: "", [labels.arch]: "amd64", ...has.labels },
        annotations: { ...has.annotations },
      },
      spec: {},
    });
  }

  annotatePool(changes: Readonly<Record<string, string | null>>, pool = "worker") {
    return this.kube.patch(
      MachineConfigPool,
      { name: pool },
      { type: "merge", body: { metadata: { annotations: changes } } },
    );
  }

  labelPool(changes: Readonly<Record<string, string | null>>, pool = "worker") {
    return this.kube.patch(
      MachineConfigPool,
      { name: pool },
      { type: "merge", body: { metadata: { labels: changes } } },
    );
  }

  annotateConfig(changes: Readonly<Record<string, string | null>>, name = "worker") {
    return this.kube.patch(MachineOSConfig, { name }, { type: "merge", body: { metadata: { annotations: changes } } });
  }

  /** Custom steps that no image has yet, so that a build runs. */
  steps(text = "FROM configs\nRUN true"): Partial<MachineOSConfig["spec"]> {
    return { containerFile: [{ containerfileArch: "NoArch", content: text }] };
  }

  #skipped = 0;

  /** Moves the os-builder's wall clock ahead, and triggers another pass. */
  async skip(ms: number): Promise<void> {
    this.#skipped += ms;
    await this.act(() => this.annotateConfig({ "test/skipped": String(this.#skipped) }));
  }

  /** The failures that were retried. */
  readonly failures: string[] = [];

  #log(): Logger {
    const log: Logger = {
      ...silentLogger,
      child: () => log,
      warn: (fields, message) =>
        void this.failures.push(`${message}: ${fields["error"] instanceof Error ? (fields["error"].stack ?? "") : ""}`),
    };
    return log;
  }

  /** Starts the os-builder; the function that it returns kills it. */
  start(identity = "one"): AbortController {
    const stopping = new AbortController();
    const kube = this.cluster.client((request, signal) => this.intercept(this.#asBuilder)(request, signal));
    const { monotonic, after } = this.kernel.clock;
    const ports = {
      clock: clockFrom({ now: () => this.kernel.clock.now() + this.#skipped, monotonic, after }),
      random: this.kernel.random,
      log: this.#log(),
      journal: this.journal,
    };
    const events = createEventRecorder({ ...ports, kube, component: "machine-os-builder" });
    void runOsBuilder(
      {
        ...ports,
        kube,
        events,
        identity,
        version: "1.0.0",
        backends: () => [this.backend],
        images: (access) => (this.accesses.push(access), this.registry.as(access)),
        lease: { leaseSeconds: 150, renewSeconds: 100, retrySeconds: 20 },
      },
      stopping.signal,
    ).catch(() => undefined);
    return stopping;
  }

  async builds(): Promise<readonly MachineOSBuild[]> {
    const { items } = await this.act(() => this.kube.list(MachineOSBuild));
    return items.toSorted(
      (a, b) =>
        (a.metadata.creationTimestamp ?? "").localeCompare(b.metadata.creationTimestamp ?? "") ||
        Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion),
    );
  }

  async states(): Promise<readonly string[]> {
    return (await this.builds()).map(
      (build) =>
        `${build.spec.machineConfig.name} ${build.metadata.annotations?.[annotations.buildStrategy]} ${textOf(stateOfBuild(build))}`,
    );
  }

  async config(name = "worker"): Promise<MachineOSConfig> {
    const found = await this.act(() => this.kube.get(MachineOSConfig, { name }));
    if (found === undefined) throw new Error(`there is no MachineOSConfig ${name}`);
    return found;
  }

  async condition(type: string, name = "worker") {
    return conditionOf((await this.config(name)).status?.conditions, type);
  }

  async pool(name = "worker") {
    const pool = await this.act(() => this.kube.get(MachineConfigPool, { name }));
    const conditions = pool?.status?.conditions as
      | { type: string; status: string; reason: string; message: string }[]
      | undefined;
    return {
      pool,
      notes: pool?.metadata.annotations ?? {},
      labels: pool?.metadata.labels ?? {},
      of: (type: string) => conditionOf(conditions, type),
    };
  }

  async events(reason: string): Promise<string[]> {
    const { items } = await this.act(() => this.kube.list(kubernetes.Event));
    return items.filter((event) => event.reason === reason).map(({ message }) => message ?? "");
  }

  /** Labels that an image of ours carries. */
  imageLabels(mode: "full" | "os-only", base = "b") {
    return {
      [imageLabels.content]: mode,
      [imageLabels.recipe]: "1",
      [imageLabels.baseDigest]: `sha256:${base.repeat(64)}`,
    };
  }
}

const textOf = ({ phase, reason }: BuildState) => (reason === "" ? phase : `${phase}/${reason}`);

/** A pool with an image rolled out, and the os-builder running. */
export async function builtPool(
  how: {
    readonly has?: Readonly<Record<string, string>>;
    readonly spec?: Partial<MachineOSConfig["spec"]>;
    readonly pools?: readonly string[];
  } = {},
): Promise<{ harness: BuilderHarness; process: AbortController; image: string }> {
  const harness = await BuilderHarness.make(how.pools ?? ["worker"]);
  for (const pool of how.pools ?? ["worker"]) await harness.act(() => harness.optIn(pool, how.has, how.spec));
  const process = harness.start();
  await harness.pass(20_000);
  return { harness, process, image: (await harness.config()).status?.currentImagePullSpec ?? "" };
}
