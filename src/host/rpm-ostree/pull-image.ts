import { type ErrorCode, McoError } from "../../api/errors.ts";
import { parseImageReference, pulledNameProblem } from "../../core/images/image-reference.ts";
import { parseSignaturePolicy, requirementsFor } from "../../core/images/signature-policy.ts";
import type { RunResult } from "../../ports/process.ts";
import type { HostFiles } from "../host.ts";
import { commandFailure, type HostCommands } from "./run-command.ts";

/**
 * Where ostree and, told by us, the others look for the pull secret (containers-auth.json(5); ostree-ext
 * `ostree_ext::globals`).
 */
export const authFile = "/run/ostree/auth.json";
const policyFile = "/etc/containers/policy.json";
const proxyFile = "/etc/mco/proxy.env";

export interface ImagePulls {
  /**
   * How ostree is to be asked for an image, so that the machine's signature policy holds. Refuses what that forbids to
   * begin with.
   */
  imageReference(image: string, signal: AbortSignal): Promise<string>;
  /** Lets `authFile` lead to the merged pull secret if that is one, else to the kubelet's. */
  linkAuthFile(signal: AbortSignal): Promise<void>;
  /** Fetches an operating system into ostree's repository, or any other image into podman's storage. */
  fetch(image: string, signal: AbortSignal): Promise<void>;
  /** Of an image, from where it was fetched. */
  labels(image: string, signal: AbortSignal): Promise<Readonly<Record<string, string>>>;
  proxy(signal: AbortSignal): Promise<Readonly<Record<string, string>>>;
}

/** What an image says of itself (opencontainers/image-spec config.md). */
interface ImageConfig {
  readonly architecture?: string;
  readonly config?: { readonly Labels?: Readonly<Record<string, string>> | null };
}

/** Images whose configuration is remembered: those of an update and the one before it. */
const mostConfigs = 8;

/** @param architecture of the machine, as Node.js says it. */
export function imagePulls({
  commands,
  files,
  architecture,
}: {
  readonly commands: HostCommands;
  readonly files: HostFiles;
  readonly architecture: string;
}): ImagePulls {
  /** By digest, so that what was true stays true. */
  const configs = new Map<string, ImageConfig>();
  const textAt = async (path: string, signal: AbortSignal) => {
    const entry = await files.read(path, signal);
    return entry?.kind === "file" ? new TextDecoder().decode(entry.contents) : undefined;
  };

  async function imageReference(image: string, signal: AbortSignal): Promise<string> {
    const reading = parseImageReference(image);
    if (reading.verdict === "refused")
      throw new McoError("MCO_IMAGE_INVALID", { image, problem: reading.problem, retryable: false });
    const problem = pulledNameProblem(image);
    if (problem !== undefined) throw new McoError("MCO_IMAGE_INVALID", { image, problem, retryable: false });
    const text = await textAt(policyFile, signal);
    if (text === undefined)
      throw new McoError("MCO_IMAGE_REFUSED", { image, problem: `the machine has no ${policyFile}`, retryable: false });
    const policy = parseSignaturePolicy(text);
    if (policy.verdict === "refused")
      throw new McoError("MCO_IMAGE_REFUSED", { image, problem: `${policyFile}: ${policy.problem}`, retryable: false });
    const { scope, requirements } = requirementsFor(policy.policy, reading.reference);
    if (requirements.length === 0 || requirements.some(({ type }) => type === "reject"))
      throw new McoError("MCO_IMAGE_REFUSED", { image, scope, requirement: "reject", retryable: false });
    // Both hold the image against policy.json; the first also wants that its default accepts nothing unsigned, and
    // fails where it does (docs.rs ostree-ext `SignatureSource`; rpm-ostree(1), rebase).
    const strict = policy.policy.otherwise.every(({ type }) => type !== "insecureAcceptAnything");
    return strict ? `ostree-image-signed:docker://${image}` : `ostree-unverified-registry:${image}`;
  }

  async function linkAuthFile(signal: AbortSignal): Promise<void> {
    const merged = "/etc/mco/internal-registry-pull-secret.json";
    const target = isJsonObject((await textAt(merged, signal)) ?? "") ? merged : "/var/lib/kubelet/config.json";
    await files.write([{ path: authFile, entry: { kind: "link", target } }], signal);
  }

  /** Variables of the cluster's proxy, which may hold a password: never on a command line. */
  async function proxy(signal: AbortSignal): Promise<Readonly<Record<string, string>>> {
    const lines = ((await textAt(proxyFile, signal)) ?? "")
      .split("\n")
      .map((line) => /^(HTTPS?_PROXY|NO_PROXY)=(.*)$/.exec(line.trim()));
    return Object.fromEntries(
      lines.flatMap((match) =>
        match?.[1] === undefined ? [] : [[match[1], (match[2] ?? "").replace(/^"(.*)"$/, "$1")]],
      ),
    );
  }

  async function configOf(
    image: string,
    environment: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<ImageConfig> {
    const known = configs.get(image);
    if (known !== undefined) return known;
    const words = ["skopeo", "inspect", "--config", `--authfile=${authFile}`, "--", `docker://${image}`];
    const result = await commands.run(words, { kind: "inspect", environment, signal });
    if (result.code !== 0) throw imageFailure(image, words, result);
    const read = JSON.parse(result.stdout) as ImageConfig;
    for (const oldest of [...configs.keys()].slice(0, -mostConfigs + 1)) configs.delete(oldest);
    if (image.includes("@")) configs.set(image, read);
    return read;
  }

  /** An operating system says so in its configuration (bootc-dev/bootc ostree-ext/src/container/mod.rs (main)). */
  const isOperatingSystem = ({ config }: ImageConfig) =>
    Object.keys(config?.Labels ?? {}).some((label) => label.startsWith("ostree.") || label === "containers.bootc");

  return {
    imageReference,
    linkAuthFile,
    proxy,
    async labels(image, signal) {
      if (!configs.has(image)) await linkAuthFile(signal);
      return (await configOf(image, await proxy(signal), signal)).config?.Labels ?? {};
    },
    async fetch(image, signal) {
      const reference = await imageReference(image, signal);
      await linkAuthFile(signal);
      const environment = await proxy(signal);
      const config = await configOf(image, environment, signal);
      const own = architecture === "x64" ? "amd64" : architecture;
      if (config.architecture !== undefined && config.architecture !== own)
        throw new McoError("MCO_IMAGE_INVALID", {
          image,
          problem: `it is for ${config.architecture}, and this machine is ${own}`,
          retryable: false,
        });
      const words = isOperatingSystem(config)
        ? ["ostree", "container", "image", "pull", "/ostree/repo", reference]
        : ["podman", "pull", "--quiet", `--authfile=${authFile}`, "--", image];
      const result = await commands.run(words, { kind: "pull", environment, signal });
      if (result.code !== 0) throw imageFailure(image, words, result);
    },
  };
}

function isJsonObject(text: string): boolean {
  try {
    return typeof JSON.parse(text) === "object";
  } catch {
    return false;
  }
}

/**
 * What registries and the library that all these tools share call things (opencontainers/distribution-spec spec.md,
 * error codes; containers/image (main)).
 */
const kinds: readonly (readonly [RegExp, ErrorCode])[] = [
  [/source image rejected|signature|policy/i, "MCO_IMAGE_REFUSED"],
  [/unauthorized|authentication required|denied|forbidden/i, "MCO_IMAGE_UNAUTHORIZED"],
  [/manifest unknown|name unknown|blob unknown|not found/i, "MCO_IMAGE_ABSENT"],
  [/digest .*(mismatch|did not match)|does not match .*digest/i, "MCO_IMAGE_DIGEST_MISMATCH"],
];

export function imageFailure(image: string, words: readonly string[], result: RunResult): McoError {
  const code = kinds.find(([pattern]) => pattern.test(result.stderr))?.[1] ?? "MCO_IMAGE_UNREACHABLE";
  return commandFailure(words, result, code, { image, retryable: code === "MCO_IMAGE_UNREACHABLE" });
}
