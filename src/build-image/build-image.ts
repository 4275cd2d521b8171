import { createGunzip } from "node:zlib";
import { Readable } from "node:stream";
import { McoError } from "../api/errors.ts";
import { imagesOfContainerfile, renderedProblem, stepsOfContainerfile } from "../core/build/build-containerfile.ts";
import {
  type BuildFailure,
  type FailureClass,
  classifyFailure,
  classifyImageError,
  excerptOf,
} from "../core/build/build-failures.ts";
import {
  type BuildPart,
  type PartOutcome,
  buildFiles,
  buildPaths,
  labelsOfImage,
  mountTargets,
  stepMarker,
} from "../core/build/image-build.ts";
import { pulledNameProblem } from "../core/images/image-reference.ts";
import { redactText } from "../core/text/redact.ts";
import { type Clock, DeadlineExceeded } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Processes } from "../ports/process.ts";
import type { ImageStore, ImageStoreSettings } from "../registry/image-store.ts";
import { digestOf } from "../registry/registry-client.ts";
import { readTar } from "../registry/tar.ts";
import { pushedProblem } from "../registry/verify-pushed.ts";
import { type BuildContext, readBuildContext } from "./build-context.ts";
import {
  type BuildahOptions,
  type BuildahStore,
  buildahVersion,
  readsHeredocs,
  runBuildah,
  stepFollower,
  storeArguments,
  timeArguments,
} from "./buildah.ts";
import { claimFolder } from "./claim-folder.ts";
import { type ReadBelow, onBase, readLayout, withOwnLayer } from "./read-layout.ts";
import type { ParentImage } from "../registry/compose-image.ts";
import { own } from "../api/schema/own.ts";

export interface BuildImageOptions {
  readonly files: Files;
  readonly processes: Processes;
  readonly clock: Clock;
  readonly readBelow: ReadBelow;
  /** Of this process; what buildah gets of it is chosen here. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Where a path of the container lies. */
  readonly at: (path: string) => string;
  /** A line of the log. */
  readonly print: (line: string) => void;
  readonly storeFor: (settings: ImageStoreSettings) => ImageStore;
}

/** For images on this machine only: signatures are checked for images in registries. */
const localPolicy = "local-policy.json";
const acceptAnything = '{"default":[{"type":"insecureAcceptAnything"}]}';

/** A failed step, with the message for users. */
class StepFailed extends Error {
  override readonly name = "StepFailed";
  readonly failure: BuildFailure;

  constructor(failure: BuildFailure) {
    super(failure.cause);
    this.failure = failure;
  }
}

/** A pod that is terminated has some seconds in all. */
const removalMs = 5000;
/**
 * Beyond so long a list of images, some hundreds, a store is emptied: what is left of old builds is of no use any more.
 */
const maxImageListBytes = 400 * 1024;
/** Stores for different contents that steps saw; the oldest go first. */
const storesKept = 3;

/** Prints where the build is, and knows it when something fails. */
function stepWriter(print: (line: string) => void) {
  let current = "ca";
  let isOpen = false;
  const end = (code: number) => {
    if (isOpen) print(stepMarker(current, "end", code));
    isOpen = false;
  };
  return {
    current: () => current,
    /** An earlier container of the build began this step, and did not end it. */
    resume(step: string) {
      current = step;
      isOpen = true;
    },
    begin(step: string) {
      if (isOpen && step === current) return;
      end(0);
      current = step;
      isOpen = true;
      print(stepMarker(step, "start"));
    },
    end,
  };
}

type StepWriter = ReturnType<typeof stepWriter>;

/**
 * Does one part of making an image as the files of the container describe. Never rejects: every result is reported.
 * Aborting ends the running step and counts as a lost builder.
 */
export async function buildImage(
  options: BuildImageOptions,
  part: BuildPart,
  signal: AbortSignal,
): Promise<PartOutcome> {
  const print = withoutSecrets(options.print);
  const steps = stepWriter(print);
  const folder = options.at(part === "pull" ? buildPaths.pullWork : buildPaths.work);
  try {
    const outcome = await perform({ ...options, print }, part, steps, folder, signal);
    // The next container continues with this one's step.
    if ("digest" in outcome) steps.end(0);
    return outcome;
  } catch (error) {
    const failure = failureOf(error, steps.current(), signal);
    steps.end(failure.exitCode ?? 1);
    return { failure };
  } finally {
    await options.files
      .remove(workIn(folder))
      .catch((error: unknown) =>
        print(
          `warning: files of the build are left in ${folder}: ${error instanceof Error ? error.message : String(error)}`,
        ),
      );
  }
}

/** The build's own files in a folder that it may write. */
const workIn = (folder: string) => `${folder}/build`;

async function perform(
  options: BuildImageOptions,
  part: BuildPart,
  steps: StepWriter,
  folder: string,
  signal: AbortSignal,
): Promise<PartOutcome> {
  if (part === "push") return { digest: await push(options, steps, signal) };
  if (part === "steps") steps.resume("pull-base");
  else steps.begin("ca");
  await options.files.remove(workIn(folder));
  const context = await readBuildContext(options.files, options.at);
  const { containerfile, request } = context;
  if (containerfile === undefined)
    throw new McoError("MCO_BUILD_CONTEXT_INVALID", { file: buildFiles.containerfile, problem: "it is not there" });
  if (part === "pull")
    options.print(`builds ${request.id} on ${request.base} for ${request.target.repository}:${request.target.tag}`);
  await withBuildah(part, options, context, containerfile, steps, folder, signal);
  return { done: part };
}

/**
 * The output of steps may contain anything; a private key spans many lines, none of which is recognizable by itself.
 */
function withoutSecrets(print: (line: string) => void): (line: string) => void {
  let isKey = false;
  return (line) => {
    const begins = /-----BEGIN [A-Z0-9 ]*PRIVATE KEY/.test(line);
    const ends = /-----END [A-Z0-9 ]*PRIVATE KEY/.test(line);
    if (!isKey || begins) print(redactText(line));
    isKey = (isKey || begins) && !ends;
  };
}

function failureOf(error: unknown, step: string, signal: AbortSignal): BuildFailure {
  const made = (failureClass: FailureClass, exitCode: number, text: string): BuildFailure => ({
    class: failureClass,
    step,
    exitCode,
    cause: redactText(text).slice(0, 300),
    excerpt: excerptOf(text),
  });
  if (signal.aborted) return made("BuilderLost", 143, "the build was asked to end");
  if (error instanceof StepFailed) return error.failure;
  if (error instanceof DeadlineExceeded) return made("Timeout", 124, `${step} was ${error.message}`);
  if (error instanceof McoError && error.code.startsWith("MCO_IMAGE_"))
    return { exitCode: 1, ...classifyImageError(step, error) };
  const text = error instanceof Error ? error.message : String(error);
  return error instanceof McoError ? made("Internal", 1, text) : { ...classifyFailure({ step, exitCode: 1, text }) };
}

/** Lays the configuration on what the steps left, or on the base itself, and pushes it. @returns its digest. */
async function push(options: BuildImageOptions, steps: StepWriter, signal: AbortSignal): Promise<string> {
  const { files, at, print } = options;
  const context = await readBuildContext(files, at);
  const { request } = context;
  if (context.containerfile === undefined) {
    steps.begin("ca");
    print(`lays the configuration of ${request.id} on ${request.base}`);
  } else steps.resume("commit");
  const store = options.storeFor({
    auth: context.auth,
    certificates: async (host) => [
      ...(own(request.certificates, host) ?? []),
      ...(context.trust === undefined ? [] : [context.trust]),
    ],
    registries: context.registries,
    policy: context.policy,
    architecture: request.architecture,
    proxy: context.proxy,
  });
  const parent =
    context.containerfile === undefined
      ? await baseAlone(store, context, steps, signal)
      : await readBuilt(store, options, context, signal);

  steps.begin("config-layer");
  steps.begin("push");
  const deadline = options.clock.deadline(request.pushSeconds * 1000, signal);
  let digest: string;
  try {
    ({ digest } = await store.publish(
      parent,
      {
        dropTopLayer: false,
        ...(context.configLayer === undefined ? {} : { layer: context.configLayer }),
        labels: labelsOfImage(request),
        ...request.target,
        createdSeconds: request.epoch,
      },
      deadline.signal,
    ));
  } finally {
    deadline.cancel();
  }
  print(`pushed ${request.target.repository}@${digest}`);

  steps.begin("verify");
  const problem = await pushedProblem(store, `${request.target.repository}@${digest}`, request.architecture, signal);
  if (problem !== undefined) throw new StepFailed(problem);
  return digest;
}

const baseOf = (image: string) => ({
  repository: image.slice(0, image.indexOf("@")),
  digest: image.slice(image.indexOf("@") + 1),
});

async function baseAlone(
  store: ImageStore,
  { request }: BuildContext,
  steps: StepWriter,
  signal: AbortSignal,
): Promise<ParentImage> {
  steps.begin("pull-base");
  return store.parentOf(request.base, signal);
}

/** What the parts of a build with buildah share. */
interface BuildahWork {
  readonly options: BuildImageOptions;
  readonly context: BuildContext;
  readonly containerfile: string;
  readonly steps: StepWriter;
  /** Folder of the build's own files. */
  readonly work: string;
  readonly buildah: BuildahOptions;
  readonly version: Awaited<ReturnType<typeof knownVersion>>;
  readonly mounts: Awaited<ReturnType<typeof writeMounts>>;
  readonly signal: AbortSignal;
}

/** Runs one command of buildah; a bad end is a failure of the step that it was in. */
type RunCommand = (args: readonly string[], onLine?: (line: string) => void) => Promise<string>;

/** Pulls into buildah's store what the steps stand on, or runs them and writes the image into the result's folder. */
async function withBuildah(
  part: "pull" | "steps",
  options: BuildImageOptions,
  context: BuildContext,
  containerfile: string,
  steps: StepWriter,
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  const { files, at } = options;
  const work = workIn(folder);
  const buildah: BuildahOptions = { ...options, environment: environmentFor(options, context, folder) };
  const version = await knownVersion(buildah, signal);
  await writeSettings(files, context, folder);
  if (part === "pull") steps.begin("context");
  refuseUnreadable(containerfile, version);
  const mounts = await writeMounts(options, context, work);
  const cache = at(buildPaths.cache);
  const claimed = await claimFolder(cache, context.request.id, options);
  let used: BuildahStore | undefined;
  let isPulled = false;
  try {
    const alone = await claimed.isAlone();
    used = await chooseStore(options, buildah, cache, mounts.seen, alone, signal);
    const all = { options, context, containerfile, steps, work, buildah, version, mounts, signal };
    if (part === "pull") await pullAll(used, alone, all);
    else await runAll(used, all);
    isPulled = part === "pull";
  } finally {
    // Some versions leave the container of a stage that has no instructions, and with it a mount (buildah 1.28); so
    // does a step that was ended.
    if (used !== undefined && (await claimed.isAlone())) await removeContainers(files, used, buildah);
    // What was pulled is not removed by another build before the next container has claimed it.
    await claimed.release({ keepsClaim: isPulled });
  }
}

const stepFailed = (failureClass: FailureClass, step: string, cause: string) =>
  new StepFailed({ class: failureClass, step, exitCode: 1, cause, excerpt: "" });

async function knownVersion(buildah: BuildahOptions, signal: AbortSignal) {
  const version = await buildahVersion(buildah, signal);
  if (version === undefined)
    throw stepFailed("Internal", "ca", "BuilderBinaryMissing: there is no buildah where this build runs");
  return version;
}

function refuseUnreadable(containerfile: string, version: BuildahWork["version"]): void {
  const found = renderedProblem(containerfile, { readsHeredocs: readsHeredocs(version) });
  if (found !== undefined)
    throw stepFailed(
      "ContainerfileInvalid",
      "context",
      `line ${found.line} of the Containerfile, with buildah ${version.join(".")}: ${found.problem}`,
    );
}

/** A store, and the way to run buildah in it. */
async function storeCommands(store: BuildahStore, { context, steps, work, buildah, signal }: BuildahWork) {
  const global = [
    ...storeArguments(store),
    ...(context.registries === undefined ? [] : ["--registries-conf", `${work}/${buildFiles.registries}`]),
  ];
  const run: RunCommand = async (args, onLine) => {
    const { exitCode, text } = await runBuildah([...global, ...args], buildah, signal, onLine);
    if (exitCode !== 0) throw new StepFailed(classifyFailure({ step: steps.current(), exitCode, text }));
    return text;
  };
  return { run, access: accessArguments(work) };
}

/** Pulls every image that the Containerfile names: no step runs here. */
async function pullAll(store: BuildahStore, alone: boolean, all: BuildahWork): Promise<void> {
  const { options, context, containerfile, steps, buildah } = all;
  const { request } = context;
  if (store.driver === "vfs")
    options.print("warning: there is no overlay file system for buildah here; with vfs each layer is a whole copy");
  const { run, access } = await storeCommands(store, all);
  if (alone) await cleared(options.files, store, buildah, run);
  const own = [request.base, ...(request.extensions === undefined ? [] : [request.extensions])];
  const named = imagesOfContainerfile(containerfile).filter(({ image }) => !own.includes(image));
  for (const { image, step } of [...own.map((each) => ({ image: each, step: "pull-base" })), ...named]) {
    steps.begin(step);
    const problem = pulledNameProblem(image);
    if (problem !== undefined) throw stepFailed("ContainerfileInvalid", step, problem);
    await run(["pull", "-q", "--policy", "missing", ...access, "--", image]);
  }
  steps.begin("pull-base");
}

/** Runs the steps, and writes the image into the folder of the result. */
async function runAll(store: BuildahStore, all: BuildahWork): Promise<void> {
  const { options, context, containerfile, steps, work } = all;
  const { files, at } = options;
  const { request } = context;
  await writeContext(files, context, containerfile, work);
  const { run, access } = await storeCommands(store, all);
  const tag = `localhost/machine-config/${request.target.tag.toLowerCase().slice(0, 100)}`;
  await runSteps(tag, access, run, all);

  steps.begin("commit");
  const layout = `${at(buildPaths.result)}/${buildFiles.layout}`;
  await files.remove(layout);
  await run([
    "push",
    "-q",
    "--format",
    "oci",
    "--signature-policy",
    `${work}/${localPolicy}`,
    tag,
    `oci:${layout}:built`,
  ]);
}

/** What lets buildah read from registries. */
const accessArguments = (work: string): readonly string[] => [
  "--authfile",
  `${work}/auth.json`,
  "--signature-policy",
  `${work}/${buildFiles.policy}`,
];

async function runSteps(
  tag: string,
  access: readonly string[],
  run: RunCommand,
  { context: { request }, containerfile, steps, work, version, mounts }: BuildahWork,
): Promise<void> {
  const stepAt = stepFollower(stepsOfContainerfile(containerfile));
  const args = [
    "build",
    "--isolation",
    "chroot",
    // A step that has it leaves its chroot by a folder that it holds open. buildah itself needs it. Since 1.29 it is no
    // default of steps: containers/buildah issue 4576.
    "--cap-drop",
    "CAP_SYS_CHROOT",
    "--layers",
    "--format",
    "oci",
    "--identity-label=false",
    "--pull=false",
    ...access,
    ...timeArguments(version, request.epoch),
    ...(request.noCache ? ["--no-cache"] : []),
    ...mounts.arguments,
    "-f",
    `${work}/${buildFiles.containerfile}`,
    "-t",
    tag,
    `${work}/context`,
  ];
  await run(args, (line) => {
    const step = stepAt(line);
    if (step !== undefined) steps.begin(step);
  });
}

/** The image that was built, as one on the registry's base, with the configuration's layer apart. */
async function readBuilt(
  store: ImageStore,
  { at, readBelow }: BuildImageOptions,
  { request, configLayer: layer }: BuildContext,
  signal: AbortSignal,
): Promise<ParentImage> {
  const built = await readLayout(at(buildPaths.result), buildFiles.layout, readBelow);
  const base = await store.parentOf(request.base, signal);
  const parent = onBase(built, base, baseOf(request.base));
  if (layer === undefined) return parent;
  const ofBase = new Set(base.layers.map(({ diffId }) => diffId));
  return withOwnLayer(parent, { ...layer, digest: digestOf(layer.bytes) }, ofBase, signal);
}

/** Working containers of a store that no other build uses. */
async function removeContainers(files: Files, store: BuildahStore, buildah: BuildahOptions): Promise<void> {
  if ((await sizeOf(files, store, "containers")) <= "[]".length) return;
  const deadline = buildah.clock.deadline(removalMs);
  try {
    await runBuildah(
      [...storeArguments(store), "rm", "--all"],
      { ...buildah, print: () => undefined },
      deadline.signal,
    );
  } catch (error) {
    buildah.print(
      `warning: working containers are left in ${store.folder}: ${error instanceof Error ? error.message : String(error)}`,
    );
  } finally {
    deadline.cancel();
  }
}

/** Below the home folder: authorities of one registry, which vouch for no other. Source: containers-certs.d(5). */
const certificatesOfHosts = ".config/containers/certs.d";
const hostName = /^[\w[][\w.:[\]-]*$/;
/** Authorities that vouch for every registry, beside the image's own. Source: Go's crypto/x509/root_linux.go (master). */
const trustFolder = "home/trust";
const systemTrust = ["/etc/ssl/certs", "/etc/pki/tls/certs"] as const;

/** What buildah and its steps see of our environment: no more than they need. */
function environmentFor(
  { environment }: BuildImageOptions,
  { proxy, trust }: BuildContext,
  work: string,
): Readonly<Record<string, string>> {
  const variables = { http_proxy: proxy?.httpProxy, https_proxy: proxy?.httpsProxy, no_proxy: proxy?.noProxy };
  const proxies = Object.entries(variables).flatMap(([name, value]) =>
    value === undefined
      ? []
      : [
          [name, value],
          [name.toUpperCase(), value],
        ],
  );
  return {
    PATH: environment["PATH"] ?? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    HOME: `${work}/home`,
    XDG_RUNTIME_DIR: `${work}/home`,
    TMPDIR: work,
    BUILDAH_ISOLATION: "chroot",
    ...(trust === undefined ? {} : { SSL_CERT_DIR: [`${work}/${trustFolder}`, ...systemTrust].join(":") }),
    ...(Object.fromEntries(proxies) as Record<string, string>),
  };
}

/**
 * Credentials, certificates and rules for registries, as buildah reads them; only this user can. The container that runs
 * steps has no credentials, and so writes none.
 */
async function writeSettings(
  files: Files,
  { request, auth, trust, policy, registries }: BuildContext,
  folder: string,
): Promise<void> {
  const work = workIn(folder);
  await files.makeDirectory(`${folder}/home`, { mode: 0o700 });
  await files.write(`${work}/auth.json`, auth.pull ?? '{"auths":{}}', { mode: 0o600 });
  await files.write(`${work}/${localPolicy}`, acceptAnything);
  await files.write(`${work}/${buildFiles.policy}`, policy ?? acceptAnything);
  if (registries !== undefined) await files.write(`${work}/${buildFiles.registries}`, registries);
  if (trust !== undefined) await files.write(`${folder}/${trustFolder}/${buildFiles.trust}`, trust);
  for (const [host, certificates] of Object.entries(request.certificates)) {
    if (!hostName.test(host)) continue;
    for (const [index, pem] of certificates.entries())
      await files.write(`${folder}/home/${certificatesOfHosts}/${host}/${index}.crt`, pem);
  }
}

async function writeContext(files: Files, context: BuildContext, containerfile: string, work: string): Promise<void> {
  await files.makeDirectory(`${work}/context`);
  for (const { path, contents, mode } of context.files)
    await files.write(`${work}/context/${path}`, contents, { mode });
  if (context.trust !== undefined) await files.write(`${work}/context/${buildFiles.trust}`, context.trust);
  if (context.configLayer !== undefined)
    await files.write(`${work}/context/${buildFiles.configLayer}`, context.configLayer.bytes);
  await files.write(`${work}/${buildFiles.containerfile}`, containerfile);
}

/**
 * Content that steps see but the image does not hold: the cluster's own content, and files of the configuration with
 * package sources. `seen`: identifies what of it may change the result, so that nothing is reused from a build that saw
 * other content.
 */
async function writeMounts(
  { files, at }: BuildImageOptions,
  { request, buildVisible }: BuildContext,
  work: string,
): Promise<{ readonly arguments: readonly string[]; readonly seen: string | undefined }> {
  const given: string[] = [];
  const parts: Uint8Array[] = [];
  for (const kind of request.mounts) {
    const source = at(`${buildPaths.mounts}/${kind}`);
    // Beside the keys, a kubelet has folders of its own there, whose names no key can have (core/v1, AtomicWriter).
    const names = (await files.list(source)).filter((name) => !name.startsWith(".."));
    if (names.length === 0) continue;
    for (const name of names) {
      const contents = (await files.read(`${source}/${name}`)) ?? new Uint8Array();
      await files.write(`${work}/mounts/${kind}/${name}`, contents);
      // An entitlement is renewed and changes nothing that is installed with it.
      if (kind !== "entitlement") parts.push(Buffer.from(`${kind}/${name}\0${digestOf(contents)}\0`));
    }
    given.push("--volume", `${work}/mounts/${kind}:${mountTargets[kind]}:ro`);
  }
  if (buildVisible !== undefined) {
    parts.push(buildVisible);
    const covered = request.mounts.map((kind) => ({ kind, target: mountTargets[kind] }));
    for (const { path, contents, mode } of await unpacked(buildVisible)) {
      // A folder that is mounted whole hides what would be mounted in it.
      const over = covered.find(
        ({ kind, target }) =>
          path.startsWith(`${target}/`) && given.some((argument) => argument.startsWith(`${work}/mounts/${kind}:`)),
      );
      const target =
        over === undefined ? `${work}/visible${path}` : `${work}/mounts/${over.kind}${path.slice(over.target.length)}`;
      await files.write(target, contents, { mode });
      if (over === undefined) given.push("--volume", `${target}:${path}:ro`);
    }
  }
  return {
    arguments: given,
    seen:
      parts.length === 0 ? undefined : digestOf(Buffer.concat(parts)).slice("sha256:".length, "sha256:".length + 12),
  };
}

/** Files of a small archive by their absolute paths. */
async function unpacked(
  archive: Uint8Array,
): Promise<readonly { readonly path: string; readonly contents: Uint8Array; readonly mode: number }[]> {
  const found: { path: string; contents: Uint8Array; mode: number }[] = [];
  for await (const entry of readTar(Readable.from([archive]).pipe(createGunzip()))) {
    if (entry.kind !== "file") continue;
    const parts = entry.path.split("/").filter((part) => part !== "" && part !== ".");
    if (parts.includes("..") || parts.some((part) => part.includes(":")))
      throw new McoError("MCO_BUILD_CONTEXT_INVALID", {
        file: buildFiles.buildVisible,
        problem: `${entry.path.slice(0, 200)} cannot be shown to a step`,
      });
    const chunks: Uint8Array[] = [];
    for await (const chunk of entry.contents) chunks.push(Uint8Array.from(chunk));
    found.push({ path: `/${parts.join("/")}`, contents: Buffer.concat(chunks), mode: entry.mode });
  }
  return found;
}

/** A store of buildah on the best file system that there is; each content that steps see has one of its own. */
async function chooseStore(
  { files }: BuildImageOptions,
  buildah: BuildahOptions,
  cache: string,
  seen: string | undefined,
  alone: boolean,
  signal: AbortSignal,
): Promise<BuildahStore> {
  const quiet = { ...buildah, print: () => undefined };
  for (const driver of ["overlay", "vfs"] as const) {
    const store: BuildahStore = { folder: `${cache}/${driver}${seen === undefined ? "" : `-${seen}`}`, driver };
    await files.makeDirectory(store.folder, { mode: 0o700 });
    // One that images lie in has been tried.
    if ((await sizeOf(files, store, "images")) > 0) return store;
    const { exitCode, text } = await runBuildah([...storeArguments(store), "info"], quiet, signal);
    if (exitCode !== 0) {
      if (driver === "vfs") throw new StepFailed(classifyFailure({ step: "context", exitCode, text }));
      continue;
    }
    if (alone && seen !== undefined) await removeOldStores(files, cache, store, quiet, signal);
    return store;
  }
  throw new Error("bug: no driver was tried");
}

async function removeOldStores(
  files: Files,
  cache: string,
  used: BuildahStore,
  buildah: BuildahOptions,
  signal: AbortSignal,
): Promise<void> {
  const others: { folder: string; at: number }[] = [];
  for (const name of await files.list(cache)) {
    const folder = `${cache}/${name}`;
    const images = await files.stat(listIn({ folder, driver: used.driver }, "images"));
    if (name.startsWith(`${used.driver}-`) && folder !== used.folder && images !== undefined)
      others.push({ folder, at: images.modifiedMs });
  }
  for (const { folder } of others.sort((a, b) => b.at - a.at).slice(storesKept - 1)) {
    for (const verb of ["rm", "rmi"])
      await runBuildah([...storeArguments({ folder, driver: used.driver }), verb, "--all"], buildah, signal);
    await files.remove(folder);
  }
}

/** Removes leftovers of killed builds, and everything when it has become too much. */
async function cleared(
  files: Files,
  store: BuildahStore,
  buildah: BuildahOptions,
  run: (args: readonly string[]) => Promise<string>,
): Promise<void> {
  await removeContainers(files, store, buildah);
  if ((await sizeOf(files, store, "images")) > maxImageListBytes) await run(["rmi", "--all", "--force"]);
}

/** Lists of what a store holds, as it keeps them (containers/storage docs, main). */
const listIn = ({ folder, driver }: BuildahStore, of: "images" | "containers") =>
  `${folder}/root/${driver}-${of}/${of}.json`;
const sizeOf = async (files: Files, store: BuildahStore, of: "images" | "containers"): Promise<number> =>
  (await files.stat(listIn(store, of)))?.sizeBytes ?? 0;
