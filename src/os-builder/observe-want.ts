import { McoError } from "../api/errors.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import type { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import type { MachineOSConfig } from "../api/kinds/machine-os-config.ts";
import { objects } from "../api/names.ts";
import {
  type BuildInputs,
  type BuildSources,
  buildInputs,
  contextConfigMapOf,
  installsPackages,
  readRendered,
} from "../core/build/build-inputs.ts";
import {
  type InputFacts,
  type ModeReading,
  type OptedIn,
  architectureOf,
  containerfileOf,
  contentModeOf,
  inputProblems,
  readCustom,
} from "../core/build/build-intent.ts";
import { classifyImageError } from "../core/build/build-failures.ts";
import { sha256Hex } from "../core/build/build-key.ts";
import { type OwnerIds, contentProblems, ownerNamesOf } from "../core/config/image-content.ts";
import { mergedAuth } from "../core/images/registry-access.ts";
import { parseImageReference, repositoryOf } from "../core/images/image-reference.ts";
import { acceptsAnything, mostKeyCharacters, withKnownKeys } from "../core/images/signature-policy.ts";
import { type NodeConfig, type ContentMode, textToParse } from "../core/config/node-config.ts";
import type { Caches } from "../kube/controller.ts";
import type { Clock } from "../ports/clock.ts";
import { ownerIdsOf } from "../registry/owner-ids.ts";
import {
  authIn,
  nodeAuthIn,
  buildSettingsIn,
  configMapIn,
  nodesIn,
  secretDataIn,
  secretIn,
  secretFacts,
  surroundings,
} from "./cluster-facts.ts";
import type { ImageAccess, Images, OpenImages } from "./images.ts";
import { type InputProblem, errorsOf } from "../core/build/input-problem.ts";
import { own } from "../api/schema/own.ts";
import { defined } from "../api/schema/defined.ts";
import { readOncePerObject } from "../core/text/read-once.ts";

/** An image that a pool is to have: everything that it is made from, read and resolved. */
export interface Want {
  readonly verdict: "want";
  readonly pool: string;
  readonly config: MachineOSConfig;
  readonly rendered: MachineConfig;
  readonly mode: ContentMode;
  readonly architecture: string;
  readonly sources: BuildSources;
  readonly inputs: Extract<BuildInputs, { readonly verdict: "inputs" }>;
  readonly images: Images;
  readonly owners: OwnerIds | undefined;
  readonly problems: readonly InputProblem[];
}

export type WantReading =
  | Want
  | { readonly verdict: "invalid"; readonly problems: readonly InputProblem[] }
  /** Something outside has to answer first. */
  | {
      readonly verdict: "waits";
      readonly reason: string;
      readonly message: string;
      readonly problems: readonly InputProblem[];
    };

/** Answers of registries hold this long. */
const answerMs = 600_000;
const mostAnswers = 256;
/** How far apart two denials are that count as two. */
const denialMs = 30_000;

const emptyOwners: OwnerIds = { users: new Map(), groups: new Map() };

type Configured = OptedIn & { readonly config: MachineOSConfig };

/** What the cluster's objects say of the inputs of a pool's image. */
interface Material {
  readonly content: NodeConfig;
  /** The pool's nodes. */
  readonly members: InputFacts["nodes"];
  readonly architecture: string;
  readonly mode: ModeReading;
  /** The custom Containerfile. */
  readonly custom: InputFacts["containerfile"];
  readonly access: ImageAccess;
  readonly images: Images;
  /** Name and content of the ConfigMap with files for custom steps. */
  readonly contextMap: string | undefined;
  readonly context: Readonly<Record<string, string>> | undefined;
}

/** Images by digest, and owners of files as the base image has them. */
interface Resolved {
  readonly base: string;
  readonly extensionsImage?: string;
  readonly owners: OwnerIds | undefined;
}

function inputFacts(
  pool: MachineConfigPool,
  { source, config }: Configured,
  { content, members, mode, custom, contextMap, context }: Material,
  caches: Caches,
): Omit<InputFacts, "content" | "pushDenials"> {
  const { renderedImagePushSecret: push, baseImagePullSecret: pull } = config.spec;
  return {
    pool: pool.metadata.name,
    config,
    source,
    mode,
    containerfile: custom,
    secrets: {
      push: secretFacts(caches, push.name),
      ...(pull === undefined ? {} : { pull: secretFacts(caches, pull.name) }),
    },
    nodes: members,
    extensions: content.extensions,
    kernelType: content.kernelType,
    extensionsImage: content.extensionsImage,
    osImage: content.osImage,
    policy: policyIn(content),
    sourceOf: (path) => sourceOf(path, pool, caches),
    preflight:
      contextMap !== undefined && context === undefined
        ? [
            {
              code: "BuildContextMissing",
              message: `there is no ConfigMap ${contextMap} in openshift-machine-config-operator, which brings files for the custom Containerfile`,
            },
          ]
        : [],
  };
}

function sourcesOf(
  rendered: MachineConfig,
  config: MachineOSConfig,
  mode: ContentMode,
  { architecture, custom, context }: Material,
  { base, extensionsImage }: Resolved,
  caches: Caches,
): BuildSources {
  const { trust } = surroundings(caches);
  const [repos, gpg] = [configMapIn(caches, objects.yumRepos), secretDataIn(caches, objects.rpmGpg)];
  return {
    rendered,
    config,
    mode,
    architecture,
    base,
    ...defined({ extensionsImage }),
    custom,
    ...defined({ context, trust, repos, gpg }),
  };
}

/** Reads what a pool's image is to be made from. Answers of registries are remembered for a while. */
export class WantObserver {
  readonly #open: OpenImages;
  readonly #clock: Clock;
  readonly #answers = new Map<string, { readonly at: number; readonly value: unknown }>();
  readonly #denials = new Map<string, { readonly count: number; readonly at: number }>();

  constructor(open: OpenImages, clock: Clock) {
    this.#open = open;
    this.#clock = clock;
  }

  /** Facts about an image digest never change; everything else is queried again after a while. */
  async #answer<T>(key: string, ask: () => Promise<T>): Promise<T> {
    const known = this.#answers.get(key);
    if (known !== undefined && this.#clock.monotonic() - known.at < answerMs) return known.value as T;
    const value = await ask();
    this.#answers.delete(key);
    this.#answers.set(key, { at: this.#clock.monotonic(), value });
    const oldest = this.#answers.keys().next();
    if (this.#answers.size > mostAnswers && oldest.done !== true) this.#answers.delete(oldest.value);
    return value;
  }

  /** Access to registries as builds of a MachineOSConfig have it. */
  access(config: MachineOSConfig, content: NodeConfig, architecture: string, caches: Caches): ImageAccess {
    const { trust, certificates, proxy } = surroundings(caches);
    const pool = config.spec.machineConfigPool.name;
    return {
      pool,
      pull: authIn(caches, basePullSecretOf(config, caches), pool),
      push: authIn(caches, config.spec.renderedImagePushSecret.name, pool),
      registries: textToParse(content, "/etc/containers/registries.conf"),
      policy: policyIn(content),
      certificates,
      trust: trust === undefined ? [] : [trust],
      proxy,
      architecture,
    };
  }

  /**
   * The same credentials as on nodes: the pull secrets of the cluster and of the internal registry, if known, but no
   * push credentials of builds.
   */
  nodeAccess(access: ImageAccess, caches: Caches): ImageAccess {
    const { nodeAuth } = surroundings(caches);
    const pull = mergedAuth([nodeAuthIn(caches), nodeAuth]);
    return { ...access, pull: pull ?? access.pull, push: undefined };
  }

  open(access: ImageAccess): Images {
    return this.#open(access);
  }

  async observe(
    pool: MachineConfigPool,
    intent: Configured,
    rendered: MachineConfig,
    caches: Caches,
    signal: AbortSignal,
  ): Promise<WantReading> {
    const read = readRendered(rendered);
    if (read.verdict === "refused")
      return { verdict: "invalid", problems: [{ code: "ContentInvalid", severity: "error", message: read.reason }] };
    const material = this.#gather(pool, intent, read.config, caches);
    const { content, mode, images } = material;
    const { config } = intent;
    const pushSpec = parseImageReference(config.spec.renderedImagePushSpec);
    const repository = pushSpec.verdict === "reference" ? repositoryOf(pushSpec.reference) : undefined;
    const asked = await this.#askRegistry(config, repository, material.access, images, signal);
    const given = [...intent.problems, ...buildSettingsIn(caches).problems];
    const check = (contents: ReturnType<typeof contentProblems>) => [
      ...given,
      ...inputProblems({ ...inputFacts(pool, intent, material, caches), content: contents, ...asked }),
    ];
    const first = check(contentProblems(content));
    if (errorsOf(first).length > 0 || mode.verdict === "refused") return { verdict: "invalid", problems: first };

    let resolved: Resolved;
    try {
      resolved = await this.#resolve(content, mode.mode, material, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof McoError) || !error.code.startsWith("MCO_IMAGE_")) throw error;
      const failure = classifyImageError("pull-base", error);
      const message = `the base image cannot be looked at: ${failure.cause}`;
      return { verdict: "waits", reason: failure.class, message, problems: first };
    }
    const problems = resolved.owners === undefined ? first : check(contentProblems(content, resolved.owners));
    if (errorsOf(problems).length > 0) return { verdict: "invalid", problems };
    const sources = sourcesOf(rendered, config, mode.mode, material, resolved, caches);
    const inputs = buildInputs(sources);
    if (inputs.verdict === "refused")
      return {
        verdict: "invalid",
        problems: [...problems, { code: "ContentInvalid", severity: "error", message: inputs.reason }],
      };
    const { architecture } = material;
    return {
      verdict: "want",
      pool: pool.metadata.name,
      config,
      rendered,
      mode: mode.mode,
      architecture,
      sources,
      inputs,
      images,
      owners: resolved.owners,
      problems,
    };
  }

  /** What the cluster's objects say of the inputs of a pool's image. */
  #gather(pool: MachineConfigPool, intent: Configured, content: NodeConfig, caches: Caches): Material {
    const { config } = intent;
    const nodes = nodesIn(caches);
    const members = nodes.filter((node) => node.pool === pool.metadata.name);
    const architecture = architectureOf(
      members,
      nodes.filter(({ isControlPlane }) => isControlPlane),
    );
    const access = this.access(config, content, architecture, caches);
    const contextMap = contextConfigMapOf(config);
    return {
      content,
      members,
      architecture,
      mode: contentModeOf(pool, config),
      custom: readCustom(
        containerfileOf(
          intent,
          architecture,
          own(configMapIn(caches, objects.customContainerfiles), pool.metadata.name),
        ),
      ),
      access,
      images: this.#open(access),
      contextMap,
      context: contextMap === undefined ? undefined : configMapIn(caches, contextMap),
    };
  }

  /**
   * Resolves names to digests; looks up owners by name if the configuration has some. What a tag means is remembered
   * for those who ask the same registries in the same way: the configuration of a pool names mirrors, and judges
   * signatures, for itself alone.
   */
  async #resolve(
    content: NodeConfig,
    mode: ContentMode,
    { access, images }: Pick<Material, "access" | "images">,
    signal: AbortSignal,
  ): Promise<{ base: string; extensionsImage?: string; owners: OwnerIds | undefined }> {
    const asker = sha256Hex(
      JSON.stringify([access.registries, access.pull, access.policy].map((text) => text ?? null)),
    );
    // Strategies that make no image judge nothing later on.
    const digestOf = (image: string) =>
      isTakenByDigest(image, access.policy)
        ? Promise.resolve(image)
        : this.#answer(`resolve ${image} ${asker}`, () => images.resolve(image, signal));
    const base = await digestOf(content.osImage);
    const extensionsImage =
      installsPackages(content) && content.extensionsImage !== "" ? await digestOf(content.extensionsImage) : undefined;
    const named = ownerNamesOf(content);
    const asks = mode === "full" && (named.users.length > 0 || named.groups.length > 0);
    const owners = asks ? await this.ownersOf(base, content, images, signal) : undefined;
    return { base, ...defined({ extensionsImage }), owners };
  }

  /** Numbers of the owners that a configuration names, as an image has them. */
  async ownersOf(image: string, content: NodeConfig, images: Images, signal: AbortSignal): Promise<OwnerIds> {
    const named = ownerNamesOf(content);
    if (named.users.length === 0 && named.groups.length === 0) return emptyOwners;
    return this.#answer(`owners ${image}`, () => ownerIdsOf(images, image, signal));
  }

  /** Seconds since the epoch: what everything in the image is dated. */
  async epochOf(base: string, images: Images, signal: AbortSignal): Promise<number> {
    const info = await this.#answer(`inspect ${base}`, async () => {
      const found = await images.inspect(base, signal);
      if (found.is !== "image")
        throw new McoError(
          found.is === "absent"
            ? "MCO_IMAGE_ABSENT"
            : found.is === "denied"
              ? "MCO_IMAGE_UNAUTHORIZED"
              : "MCO_IMAGE_UNREACHABLE",
          { image: base, problem: found.problem, retryable: found.is === "unreachable" },
        );
      return found;
    });
    return Math.floor(info.created / 1000);
  }

  async #askRegistry(
    config: MachineOSConfig,
    repository: string | undefined,
    access: ImageAccess,
    images: Images,
    signal: AbortSignal,
  ): Promise<{ mayPush?: "yes" | "denied" | "unreachable"; pushDenials: number; isWorldReadable?: boolean }> {
    const push = config.spec.renderedImagePushSecret.name;
    const key = `${repository ?? ""} ${push} ${access.push === undefined ? "" : sha256Hex(access.push)}`;
    if (repository === undefined || access.push === undefined) return { pushDenials: 0 };
    try {
      const mayPush = await this.#answer(`push ${key}`, () => images.mayPush(repository, signal));
      const now = this.#clock.monotonic();
      const before = this.#denials.get(key);
      // A denial is checked again soon; asking at once would return the same answer.
      const isNew = before === undefined || now - before.at >= denialMs;
      if (mayPush !== "yes" && isNew) this.#answers.delete(`push ${key}`);
      const denials = mayPush !== "denied" ? 0 : isNew ? (before?.count ?? 0) + 1 : before.count;
      if (denials === 0) this.#denials.delete(key);
      else if (isNew) this.#denials.set(key, { count: denials, at: now });
      const isWorldReadable =
        mayPush === "unreachable"
          ? undefined
          : await this.#answer(`world ${repository}`, () => images.isWorldReadable(repository, signal));
      return { mayPush, pushDenials: denials, ...defined({ isWorldReadable }) };
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof McoError)) throw error;
      return { pushDenials: this.#denials.get(key)?.count ?? 0 };
    }
  }
}

/**
 * The Secret that builds pull the base image with: the named one, otherwise the cluster's pull secret, otherwise the
 * push secret.
 */
export function basePullSecretOf({ spec }: MachineOSConfig, caches: Caches): string {
  return (
    spec.baseImagePullSecret?.name ??
    (secretIn(caches, objects.globalPullSecret) === undefined
      ? spec.renderedImagePushSecret.name
      : objects.globalPullSecret)
  );
}

/** Whether an image is used as it is named, whatever its registry says: what is built already needs no registry. */
function isTakenByDigest(image: string, policy: string | undefined): boolean {
  const reading = parseImageReference(image);
  return (
    reading.verdict === "reference" &&
    reading.reference.digest !== undefined &&
    acceptsAnything(policy, reading.reference)
  );
}

/**
 * The signature policy of a configuration, with the keys that the configuration brings; made once per object, since each pass
 * asks several times.
 */
export const policyIn = readOncePerObject((content: NodeConfig): string | undefined => {
  const policy = textToParse(content, "/etc/containers/policy.json");
  return policy === undefined ? undefined : withKnownKeys(policy, (path) => keyIn(content, path));
});

/** Contents that are too large for a key are not decoded. */
function keyIn(content: NodeConfig, path: string): string | undefined {
  const entry = content.entries.get(path);
  return entry?.kind === "file" && entry.sizeBytes <= mostKeyCharacters ? textToParse(content, path) : undefined;
}

/** Which MachineConfig of a pool brings a path, the last one that does. */
function sourceOf(path: string, pool: MachineConfigPool, caches: Caches): string | undefined {
  const sources =
    (pool.spec.configuration as { readonly source?: readonly { readonly name?: string }[] } | undefined)?.source ?? [];
  return sources
    .flatMap(({ name }) => name ?? [])
    .findLast((name) => {
      const config = caches.of(MachineConfig).get(name);
      const read = config === undefined ? undefined : readRendered(config);
      return read?.verdict === "read" && read.config.entries.has(path);
    });
}
