import { describe, expect, test } from "vitest";
import {
  type FailureClass,
  type RetryVerdict,
  classifyFailure,
  classifyImageError,
  classifyPodEnd,
  excerptOf,
  failureClasses,
  failureSentence,
  verdictOf,
} from "./build-failures.ts";

describe("what a build's output says about its failure", () => {
  test.for([
    {
      step: "context",
      text: 'Error: parsing main Dockerfile: Unknown instruction: "ECHO"',
      exitCode: 125,
      is: "ContainerfileInvalid",
      verdict: "permanent",
    },
    {
      step: "user:3",
      text: 'make: *** [all] Error 7\nError: building at STEP "RUN make": exit status 7',
      exitCode: 7,
      is: "UserStepFailed",
      verdict: "permanent",
    },
    {
      step: "user:2",
      text: "curl: (6) Could not resolve host: example.com",
      exitCode: 6,
      is: "UserStepFailed",
      verdict: "retryOnce",
    },
    {
      step: "user:1",
      text: "Error: Unable to find a match: htopp",
      exitCode: 1,
      is: "PackageNotFound",
      verdict: "permanent",
    },
    {
      step: "extensions",
      text: "error: Packages not found: usbguardd",
      exitCode: 1,
      is: "PackageNotFound",
      verdict: "permanent",
    },
    {
      step: "kernel",
      text: "Problem: conflicting requests\n - nothing provides kernel-rt-core",
      exitCode: 1,
      is: "DepsolveFailed",
      verdict: "permanent",
    },
    {
      step: "user:1",
      text: "Errors during downloading metadata for repository 'rhel':\n - Status code: 403 for https://cdn.redhat.com/content/repomd.xml",
      exitCode: 1,
      is: "EntitlementMissing",
      verdict: "permanent",
    },
    {
      step: "pull-base",
      text: "Error: initializing source docker://r/os: unauthorized: authentication required",
      exitCode: 125,
      is: "BaseImagePullDenied",
      verdict: "retryOnce",
    },
    {
      step: "pull-base",
      text: "Error: creating build container: copying system image from manifest list: Source image rejected: A signature was required, but no signature exists",
      exitCode: 125,
      is: "BaseImageRefused",
      verdict: "retryTwice",
    },
    {
      step: "pull-base",
      text: "Error: reading manifest sha256:1 in r/os: manifest unknown",
      exitCode: 125,
      is: "BaseImageNotFound",
      verdict: "permanent",
    },
    {
      step: "pull-base",
      text: "dial tcp 127.0.0.1:5000: connect: connection refused",
      exitCode: 125,
      is: "RegistryUnreachable",
      verdict: "retry",
    },
    {
      step: "pull-base",
      text: "received unexpected HTTP status: 503 Service Unavailable",
      exitCode: 125,
      is: "RegistryUnreachable",
      verdict: "retry",
    },
    {
      step: "pull-base",
      text: "tls: failed to verify certificate: x509: certificate signed by unknown authority",
      exitCode: 125,
      is: "RegistryTLS",
      verdict: "permanent",
    },
    {
      step: "pull-base",
      text: "http: server gave HTTP response to HTTPS client",
      exitCode: 125,
      is: "RegistryTLS",
      verdict: "permanent",
    },
    {
      step: "push",
      text: "writing blob: uploading layer: received unexpected HTTP status: 503 Service Unavailable",
      exitCode: 125,
      is: "PushUnavailable",
      verdict: "retry",
    },
    { step: "push", text: "toomanyrequests: slow down", exitCode: 125, is: "PushUnavailable", verdict: "retry" },
    {
      step: "push",
      text: "denied: requested access to the resource is denied",
      exitCode: 125,
      is: "PushDenied",
      verdict: "retryOnce",
    },
    {
      step: "push",
      text: "writing manifest: tag 4.20 is immutable",
      exitCode: 125,
      is: "PushRejected",
      verdict: "permanent",
    },
    { step: "push", text: "denied: quota exceeded", exitCode: 125, is: "PushRejected", verdict: "permanent" },
    {
      step: "push",
      text: "dial tcp: lookup r: no such host",
      exitCode: 125,
      is: "RegistryUnreachable",
      verdict: "retry",
    },
    { step: "verify", text: "manifest unknown", exitCode: 1, is: "VerifyFailed", verdict: "retryTwice" },
    {
      step: "commit",
      text: "write /var/lib/containers/x: no space left on device",
      exitCode: 125,
      is: "DiskFull",
      verdict: "retryOnce",
    },
    { step: "user:4", text: "Killed", exitCode: 137, is: "OutOfMemory", verdict: "retryOnce" },
    { step: "user:4", text: "", exitCode: 124, is: "Timeout", verdict: "retryOnce" },
    { step: "commit", text: "panic: something odd", exitCode: 2, is: "Internal", verdict: "retry" },
  ] satisfies readonly { step: string; text: string; exitCode: number; is: FailureClass; verdict: RetryVerdict }[])(
    "$step: $text → $is",
    ({ step, text, exitCode, is, verdict }) => {
      const failure = classifyFailure({ step, text, exitCode });
      expect(failure).toMatchObject({ class: is, step, exitCode });
      expect(verdictOf(failure)).toBe(verdict);
    },
  );

  test.for([
    {
      step: "push",
      code: "MCO_IMAGE_UNREACHABLE",
      facts: { host: "r", status: 503, retryable: true },
      is: "PushUnavailable",
    },
    {
      step: "push",
      code: "MCO_IMAGE_UNREACHABLE",
      facts: { host: "r", status: 429, retryable: true },
      is: "PushUnavailable",
    },
    {
      step: "push",
      code: "MCO_IMAGE_UNREACHABLE",
      facts: { host: "r", status: 413, retryable: false },
      is: "PushRejected",
    },
    {
      step: "push",
      code: "MCO_IMAGE_UNREACHABLE",
      facts: { host: "r", problem: "connection refused", retryable: true },
      is: "RegistryUnreachable",
    },
    {
      step: "push",
      code: "MCO_IMAGE_UNREACHABLE",
      facts: { host: "r", problem: "self-signed certificate in certificate chain", retryable: false },
      is: "RegistryTLS",
    },
    { step: "push", code: "MCO_IMAGE_UNAUTHORIZED", facts: { host: "r", status: 403 }, is: "PushDenied" },
    { step: "pull-base", code: "MCO_IMAGE_UNAUTHORIZED", facts: { host: "r", status: 401 }, is: "BaseImagePullDenied" },
    { step: "pull-base", code: "MCO_IMAGE_ABSENT", facts: { host: "r", status: 404 }, is: "BaseImageNotFound" },
    { step: "pull-base", code: "MCO_IMAGE_REFUSED", facts: { problem: "no signature" }, is: "BaseImageRefused" },
    { step: "push", code: "MCO_IMAGE_REFUSED", facts: { problem: "blocked" }, is: "PushRejected" },
    { step: "pull-base", code: "MCO_IMAGE_UNREACHABLE", facts: { host: "r", status: 500 }, is: "RegistryUnreachable" },
    { step: "verify", code: "MCO_IMAGE_UNAUTHORIZED", facts: { host: "r", status: 401 }, is: "VerifyFailed" },
  ] satisfies readonly { step: string; code: string; facts: Record<string, unknown>; is: FailureClass }[])(
    "$step: $code $facts.status → $is",
    ({ step, code, facts, is }) => {
      expect(classifyImageError(step, { code, message: "", facts }).class).toBe(is);
    },
  );

  test.for([
    { reason: "Evicted", message: "The node was low on resource: ephemeral-storage.", is: "DiskFull" },
    { reason: "Evicted", message: "The node was low on resource: memory.", is: "Evicted" },
    { reason: "OOMKilled", message: "", is: "OutOfMemory" },
    { reason: "DeadlineExceeded", message: "Job was active longer than specified deadline", is: "Timeout" },
    { reason: "NodeLost", message: "", is: "NodeLost" },
    { reason: "ImagePullBackOff", message: "Back-off pulling image", is: "BuilderImagePull" },
    { reason: "Error", message: "", is: "Internal" },
  ] satisfies readonly { reason: string; message: string; is: FailureClass }[])(
    "a pod that ended as $reason ($message) → $is",
    ({ reason, message, is }) => {
      expect(classifyPodEnd({ reason, message }).class).toBe(is);
    },
  );

  test("every class has a cause and a next action in words, and none ends in a full stop that the sentence adds", () => {
    for (const [name, { means, next }] of Object.entries(failureClasses)) {
      expect(means, name).not.toMatch(/\.$/);
      expect(next, name).toMatch(/^[A-Z].*[^.]$/);
    }
  });

  test("the sentence names step, attempt, cause and what to do", () => {
    const failure = classifyFailure({
      step: "push",
      exitCode: 125,
      text: "Error: received unexpected HTTP status: 503 Service Unavailable",
    });
    expect(failureSentence(failure, 2, 6, "again")).toBe(
      "push failed on attempt 2/6: Error: received unexpected HTTP status: 503 Service Unavailable. Find out why the registry takes no images; it is tried again.",
    );
  });

  test("a failure names the instruction, and shows no secret of what was printed", () => {
    const failure = classifyFailure({
      step: "user:2",
      exitCode: 1,
      text: 'pulling https://bob:hunter2@example.com/x\nfatal: password=hunter2\nError: building at STEP "RUN fetch": exit status 1',
    });
    expect(failure.cause).toContain("RUN fetch");
    expect(JSON.stringify(failure)).not.toContain("hunter2");
  });

  test("an excerpt is the last twenty lines, 2 KiB at the most, without step markers", () => {
    const lines = Array.from({ length: 50 }, (_, index) => `line ${index}`);
    expect(excerptOf([...lines, "::mco step=push state=end rc=1"].join("\n")).split("\n")).toEqual(lines.slice(-20));
    const long = excerptOf("ü".repeat(10_000));
    expect(new TextEncoder().encode(long).length).toBeLessThanOrEqual(2048);
  });
});

test("a long text of a node is judged in time, by its end [build-failures-1]", () => {
  const began = process.cpuUsage();
  const step = "user:1";
  const judge = (message: string) => classifyPodEnd({ reason: "Error", message, exitCode: 1, step }).class;
  const long = "error401 cdn.redhat.com ".repeat(10_000);
  expect(judge(long)).toBe("EntitlementMissing");
  expect(judge("error401 ".repeat(25_000))).toBe("UserStepFailed");
  expect(judge(`${"error401 ".repeat(25_000)}no space left on device`)).toBe("DiskFull");
  expect(process.cpuUsage(began).user / 1e6).toBeLessThan(2);
});
