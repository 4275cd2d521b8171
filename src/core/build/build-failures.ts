import { clipText } from "../text/clip-text.ts";
import { redactText } from "../text/redact.ts";

/**
 * What the builder does after a failure. `retry…`: another attempt, which counts; `infrastructure`: a few attempts that
 * do not count; `wait`: nothing was attempted, the build continues once the missing input exists.
 */
export type RetryVerdict = "permanent" | "retry" | "retryOnce" | "retryTwice" | "infrastructure" | "wait";

interface ClassRule {
  readonly retry: RetryVerdict;
  /** What happened, as the beginning of a sentence. */
  readonly means: string;
  /** What a person does if no attempt follows by itself. */
  readonly next: string;
  /** While attempts follow by themselves, nobody has to do anything. */
  readonly passes?: true;
}

/** Every class of build failure. The meaning of a class never changes. */
export const failureClasses = {
  ContainerfileInvalid: {
    retry: "permanent",
    means: "the Containerfile cannot be read",
    next: "Correct the instruction that is named in the MachineOSConfig",
  },
  UserStepFailed: {
    retry: "permanent",
    means: "an instruction of the custom Containerfile failed",
    next: "Correct the instruction; its last lines are in the failure's excerpt",
  },
  PackageNotFound: {
    retry: "permanent",
    means: "a package is in none of the repositories",
    next: "Correct the package's name, or give the build a repository that has it",
  },
  DepsolveFailed: {
    retry: "permanent",
    means: "packages cannot be installed together",
    next: "Choose versions that fit the base image; the excerpt names what conflicts",
  },
  EntitlementMissing: {
    retry: "permanent",
    means: "a repository asks for a subscription",
    next: "Provide the Secret etc-pki-entitlement in openshift-config-managed, or in openshift-machine-config-operator where the cluster is not OpenShift's",
  },
  ExtensionUnknown: {
    retry: "permanent",
    means: "an extension is not known",
    next: "Use one of the supported extensions",
  },
  BaseImagePullDenied: {
    retry: "retryOnce",
    means: "the registry does not give the base image",
    next: "Check the entry for the registry in the base image pull secret",
  },
  BaseImageNotFound: {
    retry: "permanent",
    means: "the registry does not have the base image",
    next: "Check the digest in osImageURL and the mirrors in registries.conf",
  },
  BaseImageRefused: {
    retry: "retryTwice",
    means: "the pool's registries.conf or policy.json does not accept the base image",
    next: "Have the image signed with a key of policy.json, or correct osImageURL, policy.json or registries.conf",
  },
  RegistryUnreachable: {
    retry: "retry",
    means: "the registry cannot be reached",
    next: "Check the registry, the network and the proxy",
  },
  RegistryTLS: {
    retry: "permanent",
    means: "the registry's certificate is not trusted",
    next: "Add its authority to the cluster's trusted certificates",
  },
  PushUnavailable: {
    retry: "retry",
    means: "the registry takes no images at the moment",
    next: "Find out why the registry takes no images",
  },
  PushDenied: {
    retry: "retryOnce",
    means: "the registry does not take the image from these credentials",
    next: "Check the push secret and its right to write to the repository",
  },
  PushRejected: {
    retry: "permanent",
    means: "the registry refuses the image",
    next: "Read the registry's text: a quota, a limit of size, or tags that cannot be changed",
  },
  VerifyFailed: {
    retry: "retryTwice",
    means: "the pushed image cannot be used",
    next: "Check that the nodes' pull secret reads the repository",
  },
  DiskFull: {
    retry: "retryOnce",
    means: "the disk is full",
    next: "Free space where builds run, or give them another node",
  },
  OutOfMemory: {
    retry: "retryOnce",
    means: "the build used more memory than it may",
    next: "Give builds more memory, or make the instruction smaller",
  },
  Timeout: {
    retry: "retryOnce",
    means: "the build took longer than it may",
    next: "Look at the slowest steps; raise the limit if they need the time",
  },
  Unschedulable: {
    retry: "wait",
    means: "no node takes the build",
    next: "Read the scheduler's message: free resources, or a node of the architecture",
  },
  BuilderImagePull: {
    retry: "retry",
    means: "the builder's own image cannot be pulled",
    next: "Check the image and the cluster's pull secret",
  },
  NodeLost: {
    retry: "infrastructure",
    means: "the node of the build went away",
    next: "Find out why the nodes that builds run on go away",
    passes: true,
  },
  Evicted: {
    retry: "infrastructure",
    means: "the build's pod was evicted",
    next: "Give builds a node with room for them",
    passes: true,
  },
  BuilderLost: {
    retry: "infrastructure",
    means: "the builder ended in the middle of the build",
    next: "Read the log of the pod machine-os-builder: it says why the builder ends",
    passes: true,
  },
  InputChanged: { retry: "wait", means: "an input of the build vanished", next: "Bring back the object that is named" },
  InputTooLarge: {
    retry: "permanent",
    means: "an input of the build is larger than it may be",
    next: "Make the files that are named smaller, or deliver them another way",
  },
  BuilderBinaryMissing: {
    retry: "wait",
    means: "nothing here can run the steps of a Containerfile",
    next: "Install buildah where builds run; images without packages and custom steps are made without it",
  },
  DigestMissing: {
    retry: "retry",
    means: "the build ended without saying which image it made",
    next: "Read the excerpt, which has the last lines of the build",
    passes: true,
  },
  Internal: {
    retry: "retry",
    means: "it failed in a way that is not known",
    next: "Read the excerpt",
  },
  RetryLimitReached: {
    retry: "permanent",
    means: "it failed as often as it may be tried",
    next: "Remove the cause, then ask for another build: mco build start, with the name of the pool",
  },
} as const satisfies Readonly<Record<string, ClassRule>>;

export type FailureClass = keyof typeof failureClasses;

export const isFailureClass = (text: string): text is FailureClass => Object.hasOwn(failureClasses, text);

/** One failure of one attempt. */
export interface BuildFailure {
  readonly class: FailureClass;
  /** Name of the step, as `mco build-image` prints it: `pull-base`, `user:3`, `push`. */
  readonly step: string;
  readonly exitCode?: number;
  /** What happened, as a clause, without secrets. */
  readonly cause: string;
  /** The last lines that were printed, without secrets; bounded. */
  readonly excerpt: string;
}

export interface FailureEvidence {
  readonly step: string;
  readonly exitCode?: number;
  /** The output, or the message of an error. */
  readonly text: string;
  /** HTTP status, if the failure is a response of a registry. */
  readonly status?: number;
}

/** Limits of an excerpt, so that it fits a termination message and an annotation. */
const excerptLines = 20;
const excerptBytes = 2048;
const causeCharacters = 300;
const stepCharacters = 64;

const network =
  /could not resolve host|no such host|temporary failure in name resolution|connection (?:refused|reset|timed out)|network is unreachable|no route to host|i\/o timeout|tls handshake timeout|unexpected eof|\bEOF\b|context deadline exceeded|client\.timeout|curl error \((?:6|7|28|35|52|56)\)|cannot download repomd|failed to download metadata|broken pipe|server misbehaving/i;
const denied =
  /unauthorized|authentication required|requested access to the resource is denied|access denied|\bdenied\b|forbidden|(?:status(?: code)?|http)[ :=]*40[13]\b|invalid username\/password/i;
const certificate =
  /x509:|certificate signed by unknown authority|certificate (?:has expired|verify failed|is not trusted)|self[- ]signed certificate|server gave http response to https client|unable to (?:get|verify) (?:local issuer|the first) certificate/i;
const absent =
  /manifest unknown|name unknown|manifest for .* not found|repository .* not found|(?:status(?: code)?|http)[ :=]*404\b|no such image/i;
const unavailable =
  /too many requests|toomanyrequests|service unavailable|bad gateway|gateway time-?out|internal server error|(?:status(?: code)?|http(?: response)?(?: status)?)[ :=]*(?:429|5\d\d)\b|received unexpected http status: 5\d\d/i;
const rejected =
  /quota|request entity too large|(?:status(?: code)?|http)[ :=]*413\b|exceeds? (?:the )?(?:maximum|limit)|immutable|cannot be overwritten|manifest invalid|tag invalid|unsupported media type/i;
const diskFull = /no space left on device|ENOSPC|disk quota exceeded|ephemeral[- ](?:local )?storage/i;
const outOfMemory = /out of memory|oom-?kill|cannot allocate memory|signal: killed/i;
/** Source: containers/image copy/single.go (main). */
const refused = /source image rejected/i;
const syntax =
  /unknown instruction|dockerfile parse error|containerfile parse error|syntax error in (?:docker|container)file|parsing (?:docker|container)file|parse error on line \d+|no FROM statement/i;
const noPackage =
  /unable to find a match|no match for argument|packages? not found|no package \S+ available|error: no package matches/i;
const depsolve =
  /depsolve|nothing provides|conflicting requests|cannot install both|cannot install the best candidate|could not depsolve|problem(?: \d+)?: /i;
const entitlement =
  /(?:status code|http error|error)[ :=]*40[13]\b[^\n]*(?:cdn\.redhat\.com|subscription)|cdn\.redhat\.com[^\n]*\b40[13]\b|this system is not registered with an entitlement server/i;
const stepOf = /building at STEP "([^"\n]{1,200})/;

const isPush = (step: string) => step === "push";
const isUser = (step: string) => step.startsWith("user");
const installsPackages = (step: string) => step === "extensions" || step === "kernel" || isUser(step);

/**
 * Classifies a failure by the failed step and its output, using stable phrases of buildah, dnf, rpm-ostree and
 * registries.
 */
export function classifyFailure(evidence: FailureEvidence): BuildFailure {
  const { step, exitCode, text } = evidence;
  return {
    // Some phrases are searched from each of their beginnings to the end: a node may report a text of any length.
    class: classOf({ ...evidence, text: bounded(text) }),
    step,
    ...(exitCode === undefined ? {} : { exitCode }),
    cause: causeOf(text, exitCode),
    excerpt: excerptOf(text),
  };
}

function classOf({ step, exitCode, text, status }: FailureEvidence): FailureClass {
  if (diskFull.test(text)) return "DiskFull";
  if (exitCode === 137 || outOfMemory.test(text)) return "OutOfMemory";
  if (exitCode === 124) return "Timeout";
  if (syntax.test(text)) return "ContainerfileInvalid";
  if (step === "verify") return network.test(text) || (status ?? 0) >= 500 ? "RegistryUnreachable" : "VerifyFailed";
  if (installsPackages(step)) {
    if (entitlement.test(text)) return "EntitlementMissing";
    if (noPackage.test(text)) return "PackageNotFound";
    if (depsolve.test(text)) return "DepsolveFailed";
    if (isUser(step)) return "UserStepFailed";
  }
  if (certificate.test(text)) return "RegistryTLS";
  const is = (pattern: RegExp, ...statuses: readonly number[]) =>
    status === undefined ? pattern.test(text) : statuses.includes(status) || (statuses.includes(500) && status >= 500);
  if (isPush(step)) {
    if (is(unavailable, 429, 500)) return "PushUnavailable";
    if (is(rejected, 400, 409, 413, 415)) return "PushRejected";
    if (is(denied, 401, 403)) return "PushDenied";
    if (network.test(text)) return "RegistryUnreachable";
    return status === 404 || absent.test(text) ? "PushRejected" : "Internal";
  }
  if (refused.test(text)) return "BaseImageRefused";
  if (is(denied, 401, 403)) return "BaseImagePullDenied";
  if (is(absent, 404)) return "BaseImageNotFound";
  if (is(unavailable, 429, 500) || network.test(text)) return "RegistryUnreachable";
  return "Internal";
}

/** A failure of the registry's client (`MCO_IMAGE_*`): its code, facts and message. */
export function classifyImageError(
  step: string,
  error: { readonly code: string; readonly message: string; readonly facts: Readonly<Record<string, unknown>> },
): BuildFailure {
  const status = typeof error.facts["status"] === "number" ? error.facts["status"] : undefined;
  const problem = typeof error.facts["problem"] === "string" ? `: ${error.facts["problem"]}` : "";
  const host = typeof error.facts["host"] === "string" ? `${error.facts["host"]}` : "the registry";
  const answer = typeof error.facts["says"] === "string" ? ` (${error.facts["says"]})` : "";
  const text = `${host}${status === undefined ? "" : ` answered ${status}${answer}`}${problem}` || error.message;
  return {
    class: imageClassOf(step, error.code, status, `${text} ${error.message}`),
    step,
    cause: causeOf(text, undefined),
    excerpt: excerptOf(text),
  };
}

function imageClassOf(step: string, code: string, status: number | undefined, text: string): FailureClass {
  if (code === "MCO_IMAGE_UNREACHABLE" && certificate.test(text)) return "RegistryTLS";
  if (step === "verify") return code === "MCO_IMAGE_UNREACHABLE" ? "RegistryUnreachable" : "VerifyFailed";
  const push = isPush(step);
  switch (code) {
    case "MCO_IMAGE_UNAUTHORIZED":
      return push ? "PushDenied" : "BaseImagePullDenied";
    case "MCO_IMAGE_ABSENT":
      return push ? "PushRejected" : "BaseImageNotFound";
    case "MCO_IMAGE_UNREACHABLE":
      if (!push || status === undefined) return "RegistryUnreachable";
      return status === 429 || status >= 500 ? "PushUnavailable" : "PushRejected";
    case "MCO_IMAGE_REFUSED":
      return push ? "PushRejected" : "BaseImageRefused";
    case "MCO_IMAGE_DIGEST_MISMATCH":
      return push ? "PushRejected" : "RegistryUnreachable";
    default:
      return push ? "PushRejected" : "Internal";
  }
}

/**
 * Why a pod or a Job ended without a result of its own: reasons of Kubernetes (core/v1 PodStatus, batch/v1
 * JobCondition).
 */
export function classifyPodEnd(end: {
  readonly reason: string;
  readonly message: string;
  readonly exitCode?: number;
  readonly step?: string;
}): BuildFailure {
  const step = end.step ?? "run";
  const made = (class_: FailureClass): BuildFailure => ({
    class: class_,
    step,
    ...(end.exitCode === undefined ? {} : { exitCode: end.exitCode }),
    cause: causeOf(end.message || end.reason, end.exitCode),
    excerpt: excerptOf(end.message),
  });
  switch (end.reason) {
    case "OOMKilled":
      return made("OutOfMemory");
    case "DeadlineExceeded":
      return made("Timeout");
    case "Evicted":
      return made(diskFull.test(end.message) ? "DiskFull" : "Evicted");
    case "Preempting":
    case "TerminationByKubelet":
    case "EvictionByEvictionAPI":
    case "PreemptionByScheduler":
      return made("Evicted");
    case "NodeLost":
    case "NodeShutdown":
    case "Shutdown":
    case "Terminated":
    case "DeletionByTaintManager":
    case "DeletionByPodGC":
      return made("NodeLost");
    case "ErrImagePull":
    case "ImagePullBackOff":
    case "ErrImageNeverPull":
    case "InvalidImageName":
      return made("BuilderImagePull");
    case "Unschedulable":
      return made("Unschedulable");
    default:
      return {
        ...classifyFailure({
          step,
          text: `${end.reason} ${end.message}`.trim(),
          ...(end.exitCode === undefined ? {} : { exitCode: end.exitCode }),
        }),
        excerpt: excerptOf(end.message),
      };
  }
}

/** The consequence of a failure. A user's instruction that failed because of the network is retried once. */
export function verdictOf(failure: Pick<BuildFailure, "class" | "excerpt" | "cause">): RetryVerdict {
  if (failure.class === "UserStepFailed" && (network.test(failure.excerpt) || network.test(failure.cause)))
    return "retryOnce";
  return failureClasses[failure.class].retry;
}

/** Whether another attempt follows a failure by itself, or an administrator has to ask for one. */
export type AfterFailure = "again" | "end";

/** Whether another attempt follows a failure by itself, and nobody has to do anything for it. */
export const passesByItself = (failure: Pick<BuildFailure, "class">, after: AfterFailure): boolean => {
  const { passes }: ClassRule = failureClasses[failure.class];
  return after === "again" && passes === true;
};

/** What to do after a failure, as one sentence without a full stop. */
export function nextActionOf(failure: Pick<BuildFailure, "class">, after: AfterFailure): string {
  const { next }: ClassRule = failureClasses[failure.class];
  if (after === "end") return next;
  return passesByItself(failure, after) ? "Nothing: it is tried again" : `${next}; it is tried again`;
}

const attempts = (max: number) => (max === 0 ? "" : `/${max}`);

/** `push failed on attempt 2/6: registry.example answered 503. Find out …; it is tried again.` */
export const failureSentence = (
  failure: BuildFailure,
  attempt: number,
  maxAttempts: number,
  after: AfterFailure,
): string =>
  `${failure.step} failed on attempt ${attempt}${attempts(maxAttempts)}: ${failure.cause}. ${nextActionOf(failure, after)}.`;

/** The most informative line: the last error, else the last line; with the instruction if buildah names it. */
function causeOf(text: string, exitCode: number | undefined): string {
  const lines = redactText(bounded(text))
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("::mco "));
  const errors = lines.filter((line) => /\berror\b|^E:|failed|denied|unable to/i.test(line));
  const line = (
    errors.at(-1) ??
    lines.at(-1) ??
    (exitCode === undefined ? "nothing was printed" : `it ended with code ${exitCode}`)
  )
    .replace(/\s+/g, " ")
    .replace(/[.!]+$/, "");
  const instruction = stepOf.exec(text)?.[1];
  const whole =
    instruction === undefined || line.includes(instruction) ? line : `${line} (at ${redactText(instruction)})`;
  return clipText(whole, causeCharacters);
}

/** A failure as a pod reports it, within the limits of one: its node may write what it likes. */
export const boundedFailure = ({ step, cause, excerpt, ...rest }: BuildFailure): BuildFailure => ({
  ...rest,
  step: clipText(step, stepCharacters),
  cause: clipText(cause, causeCharacters),
  excerpt: excerptOf(excerpt),
});

/** Only the end of the output is searched. */
const bounded = (text: string): string => text.slice(-16_384);

/** The last lines of a text, without secrets, within the limits of an excerpt. */
export function excerptOf(text: string): string {
  const lines = redactText(bounded(text))
    .trimEnd()
    .split("\n")
    .filter((line) => !line.startsWith("::mco "));
  let excerpt = lines.slice(-excerptLines).join("\n");
  const encoded = (of: string) => utf8Length(of);
  while (encoded(excerpt) > excerptBytes)
    excerpt = excerpt.slice(Math.max(1, Math.ceil((encoded(excerpt) - excerptBytes) / 4)));
  return excerpt;
}

function utf8Length(text: string): number {
  let length = 0;
  for (const character of text) {
    const point = character.codePointAt(0) ?? 0;
    length += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  }
  return length;
}
