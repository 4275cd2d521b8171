import { pushAll } from "../../api/schema/push-all.ts";
import type { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { type MachineOSConfig, containerfileArchitectures } from "../../api/kinds/machine-os-config.ts";
import { annotations } from "../../api/names.ts";
import type { ContainerfileReading } from "./build-containerfile.ts";
import { readContainerfile } from "./build-containerfile.ts";
import { parseImageReference, repositoryOf } from "../images/image-reference.ts";
import { clipText } from "../text/clip-text.ts";
import { needsOfVerification } from "../images/signature-policy.ts";
import { type OptInSource, machineOSConfigOf, optInOf } from "../config/opt-in.ts";
import { supportedExtensions } from "../config/validate-machine-config.ts";
import type { ContentMode } from "../config/node-config.ts";
import { type InputProblem, error, warning } from "./input-problem.ts";
import { type Data, buildConfigKeys, defaultOptInOf } from "./build-settings.ts";
import { listText } from "../text/list-text.ts";
import { own } from "../../api/schema/own.ts";

const builderTypes: ReadonlySet<string> = new Set([
  "",
  "Job",
  "PodImageBuilder",
  "openshift-image-builder",
  "custom-pod-builder",
]);

export interface IntentFacts {
  readonly pool: MachineConfigPool;
  /** All of the cluster. */
  readonly machineOSConfigs: readonly MachineOSConfig[];
  /** Of the ConfigMap on-cluster-build-config; `undefined`: there is none. */
  readonly buildConfig: Data | undefined;
  /** Of the ConfigMap on-cluster-build-custom-dockerfile. */
  readonly customContainerfiles: Data | undefined;
}

export interface OptedIn {
  readonly opted: "in";
  readonly source: OptInSource;
  /** The deciding MachineOSConfig; absent until it is created. */
  readonly config: MachineOSConfig | undefined;
  /** The spec of the suite's own MachineOSConfig; absent if a user created it or its inputs are missing. */
  readonly materialised?: MachineOSConfig["spec"];
  readonly problems: readonly InputProblem[];
  readonly because: string;
}

export interface OptedOut {
  readonly opted: "out";
  readonly reason: "OptedOut" | "NotAsked";
  readonly because: string;
}

export type Intent = OptedIn | OptedOut;

/** Whether a pool is opted in to images, by which rule, and the inputs. */
export function compileIntent({ pool, machineOSConfigs, buildConfig, customContainerfiles }: IntentFacts): Intent {
  const { name } = pool.metadata;
  // No image is built for machines that only keep theirs for a time.
  const optIn = optInOf(pool, {
    configs: machineOSConfigs,
    defaultOptIn: defaultOptInOf(buildConfig),
    graceMs: 0,
    now: 0,
  });
  if (optIn.opted !== "in")
    return optIn.opted === "out" && optIn.reason === "OptedOut"
      ? { opted: "out", reason: "OptedOut", because: `${annotations.layeringEnabled} of the pool says no` }
      : {
          opted: "out",
          reason: "NotAsked",
          because: "neither the pool, nor a MachineOSConfig, nor the cluster's default asks for images",
        };
  const { source, config } = optIn;
  if (source === "MachineOSConfig")
    return {
      opted: "in",
      source,
      config,
      problems: [],
      because: `the MachineOSConfig ${config?.metadata.name ?? ""} names the pool`,
    };
  const because =
    source === "PoolLabel"
      ? `the pool carries ${annotations.layeringEnabled}`
      : "every pool is opted in by the cluster's default";
  const read = specFrom(name, buildConfig, own(customContainerfiles, name));
  return {
    opted: "in",
    source,
    config,
    ...(read.spec === undefined ? {} : { materialised: read.spec }),
    problems: read.problems,
    because,
  };
}

/** The spec that two ConfigMaps yield for a pool, and everything missing in them. */
function specFrom(
  pool: string,
  data: Data | undefined,
  containerfile: string | undefined,
): { readonly spec?: MachineOSConfig["spec"]; readonly problems: readonly InputProblem[] } {
  const where = "ConfigMap on-cluster-build-config";
  if (data === undefined)
    return {
      problems: [
        error(
          "BuildConfigMissing",
          `the ${where} is missing; bring it back: until then the pool keeps the images that it has`,
        ),
      ],
    };
  const problems = [buildConfigKeys.basePullSecret, buildConfigKeys.pushSecret, buildConfigKeys.pushSpec].flatMap(
    (key) =>
      (data[key] ?? "").trim() === "" ? [error("BuildConfigKeyMissing", `${where}: ${key} is missing or empty`)] : [],
  );
  const type = (data[buildConfigKeys.builderType] ?? "").trim();
  if (!builderTypes.has(type))
    problems.push(
      error(
        "BuilderTypeInvalid",
        `${where}: ${buildConfigKeys.builderType} ${JSON.stringify(type)} is not known; leave it out`,
      ),
    );
  const reading = parseImageReference((data[buildConfigKeys.pushSpec] ?? "").trim());
  if ((data[buildConfigKeys.pushSpec] ?? "").trim() !== "" && reading.verdict === "refused")
    problems.push(error("PushSpecInvalid", `${where}: ${buildConfigKeys.pushSpec}: ${reading.problem}`));
  if (problems.length > 0 || reading.verdict === "refused") return { problems };
  const text = containerfile ?? "";
  return {
    problems,
    spec: {
      machineConfigPool: { name: pool },
      imageBuilder: { imageBuilderType: "Job" },
      baseImagePullSecret: { name: (data[buildConfigKeys.basePullSecret] ?? "").trim() },
      renderedImagePushSecret: { name: (data[buildConfigKeys.pushSecret] ?? "").trim() },
      renderedImagePushSpec: `${repositoryOf(reading.reference)}:latest`,
      // Text that is too long is read from its ConfigMap.
      ...(text.trim() === "" || text.length > containerfileLimit
        ? {}
        : { containerFile: [{ containerfileArch: "NoArch", content: text }] }),
    },
  };
}

/** Of one entry of a MachineOSConfig: openshift/api machineconfiguration/v1/types_machineosconfig.go (master). */
const containerfileLimit = 4096;
const pushSpecLimit = 447;

/** MachineOSConfigs of a pool that do not decide about it, with the reason of their condition Accepted. */
export function notAccepted(
  facts: Pick<IntentFacts, "pool" | "machineOSConfigs">,
): ReadonlyMap<string, { readonly reason: "OptedOut" | "DuplicateForPool"; readonly message: string }> {
  const { name } = facts.pool.metadata;
  const naming = facts.machineOSConfigs.filter(
    ({ metadata, spec }) =>
      spec.machineConfigPool.name === name &&
      metadata.deletionTimestamp === undefined &&
      metadata.annotations?.[annotations.optInSource] === undefined,
  );
  const deciding = machineOSConfigOf(name, naming);
  const optIn = optInOf(facts.pool, { configs: naming, defaultOptIn: undefined, graceMs: 0, now: 0 });
  const isRefused = optIn.opted === "out" && optIn.reason === "OptedOut";
  const found = new Map<string, { reason: "OptedOut" | "DuplicateForPool"; message: string }>();
  for (const config of naming) {
    if (config !== deciding)
      found.set(config.metadata.name, {
        reason: "DuplicateForPool",
        message: `${deciding?.metadata.name ?? ""} decides about the pool ${name}; delete one of the two`,
      });
    else if (isRefused)
      found.set(config.metadata.name, {
        reason: "OptedOut",
        message: `the pool ${name} carries ${annotations.layeringEnabled} with a value that says no; take that away to have images again`,
      });
  }
  return found;
}

export type ModeReading =
  | { readonly verdict: "mode"; readonly mode: ContentMode }
  | { readonly verdict: "refused"; readonly problem: InputProblem };

/** What images of a pool contain: as the MachineOSConfig says, else the pool, else everything. */
export function contentModeOf(
  pool: Pick<MachineConfigPool, "metadata">,
  config: Pick<MachineOSConfig, "metadata"> | undefined,
): ModeReading {
  const [on, text] =
    config?.metadata.annotations?.[annotations.imageContent] !== undefined
      ? [`MachineOSConfig ${config.metadata.name}`, config.metadata.annotations[annotations.imageContent]]
      : [`pool ${pool.metadata.name}`, pool.metadata.annotations?.[annotations.imageContent]];
  if (text === undefined || text === "full") return { verdict: "mode", mode: "full" };
  if (text === "os-only") return { verdict: "mode", mode: "os-only" };
  return {
    verdict: "refused",
    problem: error(
      "ContentModeInvalid",
      `${annotations.imageContent} of ${on} is ${JSON.stringify(text)}: full or os-only`,
    ),
  };
}

/** Names of architectures in Containerfiles, by those of Kubernetes. */
const containerfileArchOf: Readonly<Record<string, (typeof containerfileArchitectures)[number]>> = {
  amd64: "AMD64",
  arm64: "ARM64",
  ppc64le: "PPC64LE",
  s390x: "S390X",
};

/**
 * The custom Containerfile of a pool: its architecture's, else the one for all architectures. A long one is only in its
 * ConfigMap.
 */
export function containerfileOf(
  intent: Pick<OptedIn, "config" | "source">,
  architecture: string,
  fromConfigMap: string | undefined,
): string | undefined {
  if (intent.source !== "MachineOSConfig" && fromConfigMap !== undefined)
    return fromConfigMap.trim() === "" ? undefined : fromConfigMap;
  const entries = intent.config?.spec.containerFile ?? [];
  const found =
    entries.find(({ containerfileArch }) => containerfileArch === containerfileArchOf[architecture]) ??
    entries.find(({ containerfileArch }) => (containerfileArch ?? "NoArch") === "NoArch");
  return found === undefined || found.content.trim() === "" ? undefined : found.content;
}

/** The parts of a Secret that a check may see: never its values. */
export type SecretFacts =
  | { readonly is: "absent" }
  | {
      readonly is: "present";
      readonly type: string;
      /** `undefined`: it cannot be read. */ readonly hosts: readonly string[] | undefined;
      /** Pools whose builds may use it; `undefined`: those of every pool. */
      readonly pools: readonly string[] | undefined;
    };

export interface InputFacts {
  readonly pool: string;
  readonly config: MachineOSConfig;
  readonly source: OptInSource;
  readonly mode: ModeReading;
  readonly containerfile: ContainerfileReading | undefined;
  readonly secrets: {
    readonly push: SecretFacts;
    /** Absent: the cluster's own is used. */ readonly pull?: SecretFacts;
  };
  /** The pool's nodes. */
  readonly nodes: readonly { readonly name: string; readonly architecture: string; readonly imageBased: boolean }[];
  readonly extensions: readonly string[];
  readonly kernelType: string;
  readonly extensionsImage: string;
  readonly osImage: string;
  /** Text of the configuration's policy.json, with the keys that the configuration brings. */
  readonly policy?: string | undefined;
  /** Of the configuration, for images that hold it. */
  readonly content: readonly { readonly code: string; readonly path: string; readonly detail: string }[];
  /** Which MachineConfig brought a path. */
  readonly sourceOf: (path: string) => string | undefined;
  /** Known responses of the registry. */
  readonly mayPush?: "yes" | "denied" | "unreachable";
  /** Denials in a row. */
  readonly pushDenials: number;
  readonly isWorldReadable?: boolean;
  /** What the backend lacks. */
  readonly preflight: readonly { readonly code: string; readonly message: string }[];
}

const secretTypes: ReadonlySet<string> = new Set(["kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson"]);
/** Tolerated refusals of a token: the services that issue tokens start with the cluster. */
const forgivenDenials = 3;
const shownNames = 10;
const listed = (names: readonly string[]) => listText(names, shownNames);

/** No colon behind the field: what follows one that is named like a secret is masked in events and journals. */
function secretProblems(
  field: string,
  {
    name,
    secret,
    host,
    pool,
  }: { readonly name: string; readonly secret: SecretFacts; readonly host: string; readonly pool: string },
): readonly InputProblem[] {
  const named = `${field} names the Secret ${name}`;
  if (secret.is === "absent")
    return [
      error(
        "SecretMissing",
        `${named}, which is not in openshift-machine-config-operator; create it there, or name another one`,
      ),
    ];
  if (secret.pools?.includes(pool) === false)
    return [
      error(
        "SecretOfOtherPools",
        `${named}, which its annotation ${annotations.secretPools} keeps for builds of ${secret.pools.join(", ") || "no pool"}; name another one, or have ${pool} added there`,
      ),
    ];
  if (!secretTypes.has(secret.type))
    return [
      error(
        "SecretType",
        `${named} of type ${secret.type}, and not kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg`,
      ),
    ];
  if (secret.hosts === undefined) return [error("SecretFormat", `${named}, which holds no JSON of credentials`)];
  return secret.hosts.some((each) => each === host || each.startsWith(`${host}/`))
    ? []
    : [warning("SecretNoAuthForHost", `${named}, which has no entry for ${host}`)];
}

/** All problems of the inputs of a pool's image. */
export const inputProblems = (facts: InputFacts): readonly InputProblem[] => [
  ...pushProblems(facts),
  ...containerfileProblems(facts),
  ...contentProblems(facts),
  ...nodeProblems(facts),
  ...baseProblems(facts),
  ...fullImageProblems(facts),
  ...tokenProblems(facts),
  ...facts.preflight.map(({ code, message }) => error(code, message)),
];

/** Where the image goes, and the credentials for that and for its base. */
function pushProblems(facts: InputFacts): readonly InputProblem[] {
  const { spec } = facts.config;
  const problems: InputProblem[] = [];
  const reading = parseImageReference(spec.renderedImagePushSpec);
  const host = reading.verdict === "reference" ? reading.reference.host : "";
  if (spec.renderedImagePushSpec.length > pushSpecLimit)
    problems.push(error("PushSpecInvalid", `spec.renderedImagePushSpec is longer than ${pushSpecLimit} characters`));
  else if (reading.verdict === "refused")
    problems.push(error("PushSpecInvalid", `spec.renderedImagePushSpec: ${reading.problem}`));
  else if (reading.reference.digest !== undefined)
    problems.push(
      error("PushSpecInvalid", "spec.renderedImagePushSpec: it names a digest; name a repository, with any tag"),
    );
  if (host !== "") {
    pushAll(
      problems,
      secretProblems("spec.renderedImagePushSecret", {
        name: spec.renderedImagePushSecret.name,
        secret: facts.secrets.push,
        host,
        pool: facts.pool,
      }),
    );
    const base = parseImageReference(facts.osImage);
    if (facts.secrets.pull !== undefined && spec.baseImagePullSecret !== undefined)
      pushAll(
        problems,
        secretProblems("spec.baseImagePullSecret", {
          name: spec.baseImagePullSecret.name,
          secret: facts.secrets.pull,
          host: base.verdict === "reference" ? base.reference.host : "",
          pool: facts.pool,
        }),
      );
  }
  return problems;
}

/** The custom Containerfile for each architecture. */
function containerfileProblems(facts: InputFacts): readonly InputProblem[] {
  const { spec } = facts.config;
  const problems: InputProblem[] = [];
  const entries = spec.containerFile ?? [];
  const architectures = entries.map(({ containerfileArch }) => containerfileArch ?? "NoArch");
  for (const architecture of architectures)
    if (!containerfileArchitectures.includes(architecture))
      problems.push(
        error(
          "ArchInvalid",
          `spec.containerFile: ${JSON.stringify(architecture)} is no architecture: one of ${containerfileArchitectures.join(", ")}`,
        ),
      );
  for (const architecture of new Set(architectures.filter((each, index) => architectures.indexOf(each) !== index)))
    problems.push(error("ArchDuplicate", `spec.containerFile: two entries are for ${architecture}`));
  for (const { content } of entries)
    if (content.length > containerfileLimit)
      problems.push(
        error(
          "ContainerfileInvalid",
          `spec.containerFile: a text has ${content.length} characters, and ${containerfileLimit} is the most`,
        ),
      );
  if (facts.containerfile?.verdict === "refused") {
    const { line, instruction, problem } = facts.containerfile;
    problems.push(
      error(
        "ContainerfileInvalid",
        `the custom Containerfile, line ${line}${instruction === "" ? "" : ` (${instruction})`}: ${problem}`,
      ),
    );
  } else if ((facts.containerfile?.heredocs.length ?? 0) > 0)
    problems.push(
      warning(
        "ContainerfileHeredoc",
        `the custom Containerfile, line ${facts.containerfile?.heredocs.join(", ")}: buildah before 1.33 does not read here-documents; use COPY from a build context, or printf`,
      ),
    );
  return problems;
}

/** What the image is to hold. */
function contentProblems(facts: InputFacts): readonly InputProblem[] {
  const { spec } = facts.config;
  const problems: InputProblem[] = [];
  if (spec.imageBuilder.imageBuilderType !== "Job")
    problems.push(error("BuilderTypeInvalid", "spec.imageBuilder.imageBuilderType: Job is the one that there is"));
  if (facts.mode.verdict === "refused") problems.push(facts.mode.problem);
  for (const extension of facts.extensions)
    if (!Object.hasOwn(supportedExtensions, extension))
      problems.push(
        error(
          "ExtensionUnknown",
          `the configuration asks for the extension ${JSON.stringify(extension)}: one of ${Object.keys(supportedExtensions).join(", ")}`,
        ),
      );
  if ((facts.extensions.length > 0 || facts.kernelType !== "default") && facts.extensionsImage === "")
    problems.push(
      error(
        "ExtensionsImageMissing",
        "the configuration asks for extensions or another kernel, and names no baseOSExtensionsContainerImage to take them from",
      ),
    );
  return problems;
}

/** Nodes that cannot boot the image. */
function nodeProblems(facts: InputFacts): readonly InputProblem[] {
  const problems: InputProblem[] = [];
  const unsupported = facts.nodes.filter(({ imageBased }) => !imageBased).map(({ name }) => name);
  if (unsupported.length > 0)
    problems.push(
      error(
        "PoolHasUnsupportedNodes",
        `the operating system of ${listed(unsupported)} is not one of images; move these nodes to another pool`,
      ),
    );
  pushAll(problems, architectureProblems(facts.nodes));
  return problems;
}

/** The base image. */
function baseProblems(facts: InputFacts): readonly InputProblem[] {
  const problems: InputProblem[] = [];
  const base = parseImageReference(facts.osImage);
  if (facts.osImage === "")
    problems.push(error("BaseImageMissing", "the rendered configuration names no osImageURL to build on"));
  else if (base.verdict === "refused") problems.push(error("BaseImageInvalid", `osImageURL: ${base.problem}`));
  else if (base.reference.digest === undefined)
    problems.push(
      warning(
        "BaseImageNotPinned",
        `osImageURL ${facts.osImage} names no digest: the image that it stands for now is taken`,
      ),
    );
  return [...problems, ...signatureProblems(facts)];
}

/** Files of keys that are named of an image. */
const mostMissingKeys = 20;

/** What a build would need to verify its images as the machines do, and does not have. */
function signatureProblems({
  policy,
  osImage,
  extensions,
  kernelType,
  extensionsImage,
}: InputFacts): readonly InputProblem[] {
  if (policy === undefined) return [];
  const takesPackages = extensions.length > 0 || kernelType !== "default";
  return [
    { field: "osImageURL", image: osImage },
    ...(takesPackages ? [{ field: "baseOSExtensionsContainerImage", image: extensionsImage }] : []),
  ].flatMap(({ field, image }) => {
    const read = parseImageReference(image);
    if (read.verdict === "refused") return [];
    const { paths, unsupported, exact } = needsOfVerification(policy, read.reference);
    const demand = `/etc/containers/policy.json demands of ${field} ${image}`;
    return [
      ...paths
        .slice(0, mostMissingKeys)
        .map((path) =>
          error(
            "SignatureKeyMissing",
            `/etc/containers/policy.json has ${field} ${image} verified with ${clipText(path, 256)}, and the configuration does not bring all keys of that requirement, or more than is read (16 Ki characters of a key, 1 Mi of all that the policy names), so that a build cannot verify it; bring the file with a MachineConfig of the pool, or write the key into the policy as keyData`,
          ),
        ),
      ...unsupported.map((requirement) =>
        error(
          "SignatureUnverifiable",
          `${demand} what the builder cannot verify, ${requirement}; demand sigstoreSigned with keyData or keyPath, or have the pool built from an image of a scope that demands it`,
        ),
      ),
      ...(exact
        ? [
            error(
              "SignatureUnverifiable",
              `${demand} a signature for exactly its name (matchExact), and builds take the image by its digest; write matchRepoDigestOrExact`,
            ),
          ]
        : []),
    ];
  });
}

/** Checks that apply only if the image contains the configuration. */
function fullImageProblems(facts: InputFacts): readonly InputProblem[] {
  const { spec } = facts.config;
  const problems: InputProblem[] = [];
  if (facts.mode.verdict === "mode" && facts.mode.mode === "full") {
    for (const { code, path, detail } of facts.content)
      problems.push(
        error(
          code,
          `${path}${facts.sourceOf(path) === undefined ? "" : ` of MachineConfig ${facts.sourceOf(path)}`}: ${detail}`,
        ),
      );
    if (facts.isWorldReadable === true)
      problems.push(
        warning(
          "ImageWorldReadable",
          `${spec.renderedImagePushSpec} allows anonymous pulls: the image holds the pool's configuration, secrets included`,
        ),
      );
  }
  return problems;
}

/** Whether the registry lets the builder push. */
function tokenProblems(facts: InputFacts): readonly InputProblem[] {
  const { spec } = facts.config;
  const problems: InputProblem[] = [];
  if (facts.mayPush === "denied")
    problems.push(
      (facts.pushDenials > forgivenDenials ? error : warning)(
        "PushTokenDenied",
        `the registry gives no right to push to ${spec.renderedImagePushSpec}; check the Secret ${spec.renderedImagePushSecret.name}`,
      ),
    );
  return problems;
}

function architectureProblems(nodes: InputFacts["nodes"]): readonly InputProblem[] {
  const byArchitecture = Map.groupBy(
    nodes.filter(({ architecture }) => architecture !== ""),
    ({ architecture }) => architecture,
  );
  if (byArchitecture.size <= 1) return [];
  const each = [...byArchitecture]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([architecture, members]) => `${architecture}: ${listed(members.map(({ name }) => name).sort())}`);
  return [
    error(
      "PoolMixedArchitectures",
      `the pool has nodes of several architectures (${each.join("; ")}); put each architecture into a pool of its own`,
    ),
  ];
}

/** The architecture that a pool's image is for: that of its nodes, of the control plane while it has none. */
export function architectureOf(
  nodes: readonly { readonly architecture: string }[],
  controlPlane: readonly { readonly architecture: string }[],
): string {
  return (
    nodes.find(({ architecture }) => architecture !== "")?.architecture ??
    controlPlane.find(({ architecture }) => architecture !== "")?.architecture ??
    "amd64"
  );
}

/**
 * Whether the reference implementation created the object and rolled out images from it, and this suite has not
 * modified it yet.
 */
export function isOfReference(config: MachineOSConfig, finalizer: string, isOurs: (build: string) => boolean): boolean {
  const { metadata, status } = config;
  const named = metadata.annotations?.[annotations.currentMachineOSBuild];
  if (metadata.finalizers?.includes(finalizer) === true) return false;
  if (status?.currentImagePullSpec === undefined && named === undefined) return false;
  return named === undefined || !isOurs(named);
}

export const readCustom = (text: string | undefined): ContainerfileReading | undefined =>
  text === undefined ? undefined : readContainerfile(text);
