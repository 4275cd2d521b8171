import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { kubernetesTypes } from "./builtin-types.ts";
import { base64OfBytes, decodeProtobuf } from "./protobuf.ts";

function bytes(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

describe("decodeProtobuf reads what kubectl 1.32 sends", () => {
  test.for<[string, string, Record<string, unknown>]>([
    [
      "Namespace",
      "azhzAAoPCgJ2MRIJTmFtZXNwYWNlEhwKFAoEZGVtbxIAGgAiACoAMgA4AEIAEgAaAgoAGgAiAA==",
      { kind: "Namespace", apiVersion: "v1", metadata: { name: "demo" }, spec: {} },
    ],
    [
      "ConfigMap",
      "azhzAAoPCgJ2MRIJQ29uZmlnTWFwEhwKEgoCY20SABoAIgAqADIAOABCABIGCgFhEgFiGgAiAA==",
      { kind: "ConfigMap", apiVersion: "v1", metadata: { name: "cm" }, data: { a: "b" } },
    ],
    [
      "Secret",
      "azhzAAoMCgJ2MRIGU2VjcmV0Eh0KEQoBcxIAGgAiACoAMgA4AEIAEgYKAXASAXEaABoAIgA=",
      { kind: "Secret", apiVersion: "v1", metadata: { name: "s" }, data: { p: "cQ==" } },
    ],
    [
      "ServiceAccount",
      "azhzAAoUCgJ2MRIOU2VydmljZUFjY291bnQSFAoSCgJzYRIAGgAiACoAMgA4AEIAGgAiAA==",
      { kind: "ServiceAccount", apiVersion: "v1", metadata: { name: "sa" } },
    ],
    [
      "TokenRequest",
      "azhzAAooChhhdXRoZW50aWNhdGlvbi5rOHMuaW8vdjESDFRva2VuUmVxdWVzdBIdChAKABIAGgAiACoAMgA4AEIAEgMg2AQaBAoAEgAaACIA",
      { kind: "TokenRequest", apiVersion: "authentication.k8s.io/v1", metadata: {}, spec: { expirationSeconds: 600 } },
    ],
    [
      "ClusterRole",
      "azhzAAorChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgtDbHVzdGVyUm9sZRIlChIKAmNyEgAaACIAKgAyADgAQgASDwoDZ2V0KggvaGVhbHRoehoAIgA=",
      {
        kind: "ClusterRole",
        apiVersion: "rbac.authorization.k8s.io/v1",
        metadata: { name: "cr" },
        rules: [{ verbs: ["get"], nonResourceURLs: ["/healthz"] }],
      },
    ],
    [
      "RoleBinding",
      "azhzAAorChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgtSb2xlQmluZGluZxJ+ChIKAnJiEgAaACIAKgAyADgAQgASJgoEVXNlchIZcmJhYy5hdXRob3JpemF0aW9uLms4cy5pbxoBdSIAEhoKDlNlcnZpY2VBY2NvdW50EgAaAnNhIgJucxokChlyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvEgRSb2xlGgFyGgAiAA==",
      {
        kind: "RoleBinding",
        apiVersion: "rbac.authorization.k8s.io/v1",
        metadata: { name: "rb" },
        subjects: [
          { kind: "User", apiGroup: "rbac.authorization.k8s.io", name: "u" },
          { kind: "ServiceAccount", name: "sa", namespace: "ns" },
        ],
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "r" },
      },
    ],
    [
      "ClusterRoleBinding",
      "azhzAAoyChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEhJDbHVzdGVyUm9sZUJpbmRpbmcSbAoTCgNjcmISABoAIgAqADIAOABCABInCgVHcm91cBIZcmJhYy5hdXRob3JpemF0aW9uLms4cy5pbxoBZyIAGiwKGXJiYWMuYXV0aG9yaXphdGlvbi5rOHMuaW8SC0NsdXN0ZXJSb2xlGgJjchoAIgA=",
      {
        kind: "ClusterRoleBinding",
        apiVersion: "rbac.authorization.k8s.io/v1",
        metadata: { name: "crb" },
        subjects: [{ kind: "Group", apiGroup: "rbac.authorization.k8s.io", name: "g" }],
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cr" },
      },
    ],
    [
      "Deployment",
      "azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50EqkBChsKAWQSABoAIgAqADIAOABCAFoICgNhcHASAWQSfAgAEgoKCAoDYXBwEgFkGmQKGgoAEgAaACIAKgAyADgAQgBaCAoDYXBwEgFkEkYSKAoBaRIDaToxKgAyCgoAEAAYUCIAKgBCAGoAcgCAAQCIAQCQAQCiAQAaADIAQgBKAFIAWABgAGgAggEAigEAmgEAwgEAIgIKACgAOAAaDAgAEAAYACAAKAA4ABoAIgA=",
      {
        kind: "Deployment",
        apiVersion: "apps/v1",
        metadata: { name: "d", labels: { app: "d" } },
        spec: {
          replicas: 0,
          selector: { matchLabels: { app: "d" } },
          template: {
            metadata: { labels: { app: "d" } },
            spec: { containers: [{ name: "i", image: "i:1", ports: [{ containerPort: 80 }], resources: {} }] },
          },
          strategy: {},
        },
      },
    ],
    [
      "Job",
      "azhzAAoPCghiYXRjaC92MRIDSm9iEnwKEQoBahIAGgAiACoAMgA4AEIAEl0yWwoQCgASABoAIgAqADIAOABCABJHEiQKAWoSAWkaBXNsZWVwGgExKgBCAGoAcgCAAQCIAQCQAQCiAQAaBU5ldmVyMgBCAEoAUgBYAGAAaACCAQCKAQCaAQDCAQAaCCAAKAAwADoAGgAiAA==",
      {
        kind: "Job",
        apiVersion: "batch/v1",
        metadata: { name: "j" },
        spec: {
          template: {
            metadata: {},
            spec: {
              containers: [{ name: "j", image: "i", command: ["sleep", "1"], resources: {} }],
              restartPolicy: "Never",
            },
          },
        },
      },
    ],
    [
      "CronJob",
      "azhzAAoTCghiYXRjaC92MRIHQ3JvbkpvYhKPAQoRCgFjEgAaACIAKgAyADgAQgASeAoDKi81GgAqbwoRCgFjEgAaACIAKgAyADgAQgASWjJYChAKABIAGgAiACoAMgA4AEIAEkQSHQoBYxIBaRoBeCoAQgBqAHIAgAEAiAEAkAEAogEAGglPbkZhaWx1cmUyAEIASgBSAFgAYABoAIIBAIoBAJoBAMIBABoAGgAiAA==",
      {
        kind: "CronJob",
        apiVersion: "batch/v1",
        metadata: { name: "c" },
        spec: {
          schedule: "*/5",
          jobTemplate: {
            metadata: { name: "c" },
            spec: {
              template: {
                metadata: {},
                spec: {
                  containers: [{ name: "c", image: "i", command: ["x"], resources: {} }],
                  restartPolicy: "OnFailure",
                },
              },
            },
          },
        },
      },
    ],
    [
      "ResourceQuota",
      "azhzAAoTCgJ2MRINUmVzb3VyY2VRdW90YRIwChEKAXESABoAIgAqADIAOABCABIZCgoKA2NwdRIDCgExCgsKBHBvZHMSAwoBMhoAGgAiAA==",
      { kind: "ResourceQuota", apiVersion: "v1", metadata: { name: "q" }, spec: { hard: { cpu: "1", pods: "2" } } },
    ],
    [
      "PodDisruptionBudget",
      "azhzAAogCglwb2xpY3kvdjESE1BvZERpc3J1cHRpb25CdWRnZXQSNgoRCgFiEgAaACIAKgAyADgAQgASFQoJCAEQABoDNTAlEggKBgoBYRIBYhoKCAAYACAAKAAwABoAIgA=",
      {
        kind: "PodDisruptionBudget",
        apiVersion: "policy/v1",
        metadata: { name: "b" },
        spec: { minAvailable: "50%", selector: { matchLabels: { a: "b" } } },
      },
    ],
    [
      "SelfSubjectAccessReview",
      "azhzAAoyChdhdXRob3JpemF0aW9uLms4cy5pby92MRIXU2VsZlN1YmplY3RBY2Nlc3NSZXZpZXcSPwoQCgASABoAIgAqADIAOABCABIhCh8KB2RlZmF1bHQSA2dldBoAIgAqBHBvZHMyA2xvZzoAGggIABIAGgAgABoAIgA=",
      {
        kind: "SelfSubjectAccessReview",
        apiVersion: "authorization.k8s.io/v1",
        metadata: {},
        spec: { resourceAttributes: { namespace: "default", verb: "get", resource: "pods", subresource: "log" } },
      },
    ],
    [
      "SelfSubjectRulesReview",
      "azhzAAoxChdhdXRob3JpemF0aW9uLms4cy5pby92MRIWU2VsZlN1YmplY3RSdWxlc1JldmlldxIjChAKABIAGgAiACoAMgA4AEIAEgkKB2RlZmF1bHQaBBgAIgAaACIA",
      {
        kind: "SelfSubjectRulesReview",
        apiVersion: "authorization.k8s.io/v1",
        metadata: {},
        spec: { namespace: "default" },
      },
    ],
    [
      "SelfSubjectReview",
      "azhzAAotChhhdXRoZW50aWNhdGlvbi5rOHMuaW8vdjESEVNlbGZTdWJqZWN0UmV2aWV3EhoKEAoAEgAaACIAKgAyADgAQgASBgoECgASABoAIgA=",
      { kind: "SelfSubjectReview", apiVersion: "authentication.k8s.io/v1", metadata: {} },
    ],
  ])("%s", ([, body, object]) => {
    expect(decodeProtobuf(bytes(body))).toEqual({ verdict: "decoded", object });
  });

  test("other kinds are refused by name", () => {
    // The envelope of a v1 Pod without a body.
    expect(decodeProtobuf(bytes("azhzAAoJCgJ2MRIDUG9k"))).toEqual({
      verdict: "refused",
      message: 'no protobuf decoder for kind "Pod" in version "v1"; send JSON',
    });
  });

  test("no bytes make it throw", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), fc.nat(75), (noise, cut) => {
        const known = bytes("azhzAAoPCgJ2MRIJTmFtZXNwYWNlEhwKFAoEZGVtbxIAGgAiACoAMgA4AEIAEgAaAgoAGgAiAA==");
        const body = new Uint8Array([...known.subarray(0, Math.min(cut, known.length)), ...noise]);
        expect(["decoded", "refused"]).toContain(decodeProtobuf(body).verdict);
      }),
    );
  });
});

function varint(value: bigint): readonly number[] {
  const rest = BigInt.asUintN(64, value);
  return rest < 0x80n ? [Number(rest)] : [Number(rest & 0x7fn) | 0x80, ...varint(rest >> 7n)];
}
const part = (number: number, bytes: readonly number[]): readonly number[] => [
  ...varint(BigInt(number * 8 + 2)),
  ...varint(BigInt(bytes.length)),
  ...bytes,
];
const count = (number: number, value: bigint): readonly number[] => [...varint(BigInt(number * 8)), ...varint(value)];
const letters = (text: string): readonly number[] => [...new TextEncoder().encode(text)];

/** A message with this number in each of its fields that hold one, in all messages within, down to a depth. */
function filled(name: string, value: bigint, depth: number): readonly number[] {
  const type = kubernetesTypes[name];
  const of = (kind: string): readonly number[] | undefined => {
    if (kind === "time" || kind === "microTime") return count(1, value);
    if (kind === "intOrString") return [...count(1, 0n), ...count(2, value)];
    return depth > 0 && kubernetesTypes[kind] !== undefined ? filled(kind, value, depth - 1) : undefined;
  };
  return Object.values(type?.fields ?? {}).flatMap(({ number, type: own, list, map }) => {
    const kind = own ?? list ?? map ?? "";
    if (number === undefined || kind === "") return [];
    const scalar = ["int32", "int64", "boolean"].includes(kind);
    if (map !== undefined) {
      const entry = scalar ? count(2, value) : of(kind);
      return entry === undefined ? [] : part(number, [...part(1, letters("k")), ...(scalar ? entry : part(2, entry))]);
    }
    if (scalar) return count(number, value);
    const within = of(kind);
    return within === undefined ? [] : part(number, within);
  });
}

const bodyOf = (apiVersion: string, kind: string, message: readonly number[]): Uint8Array =>
  Uint8Array.from([
    ...letters("k8s\0"),
    ...part(1, [...part(1, letters(apiVersion)), ...part(2, letters(kind))]),
    ...part(2, message),
  ]);

/** Kinds that the decoder reads: one of each group. */
const decoded: readonly (readonly [string, string])[] = [
  ["v1", "Namespace"],
  ["v1", "ConfigMap"],
  ["v1", "ResourceQuota"],
  ["apps/v1", "Deployment"],
  ["batch/v1", "CronJob"],
  ["certificates.k8s.io/v1", "CertificateSigningRequest"],
  ["policy/v1", "PodDisruptionBudget"],
  ["scheduling.k8s.io/v1", "PriorityClass"],
  ["rbac.authorization.k8s.io/v1", "Role"],
  ["authentication.k8s.io/v1", "TokenRequest"],
  ["authorization.k8s.io/v1", "SubjectAccessReview"],
  ["meta.k8s.io/v1", "DeleteOptions"],
];

describe("a number in protobuf", () => {
  const lastSecond = 253_402_300_799n;

  test("a time beyond the calendar is refused with its field [protobuf-numbers-1]", () => {
    const at = (seconds: bigint) => decodeProtobuf(bodyOf("v1", "ConfigMap", part(1, part(8, count(1, seconds)))));
    expect(at(lastSecond)).toMatchObject({
      verdict: "decoded",
      object: { metadata: { creationTimestamp: "9999-12-31T23:59:59Z" } },
    });
    for (const seconds of [lastSecond + 1n, 9_000_000_000_000_000n, 2n ** 63n - 1n])
      expect(at(seconds)).toEqual({
        verdict: "refused",
        message: "metadata.creationTimestamp: a time after the year 9999, which no calendar here has",
      });
  });

  test("of any size, in any field, makes an object or a refusal [protobuf-numbers-2]", () => {
    const edges = [0n, 1n, 2n ** 31n - 1n, 2n ** 31n, 2n ** 32n, lastSecond, 2n ** 53n, 2n ** 63n - 1n, 2n ** 63n];
    fc.assert(
      fc.property(
        fc.constantFrom(...decoded),
        fc.oneof(fc.constantFrom(...edges), fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })),
        ([apiVersion, kind], value) => {
          const result = decodeProtobuf(bodyOf(apiVersion, kind, filled(kind, value, 6)));
          if (result.verdict === "refused") expect(result.message).toMatch(/: a time after the year 9999/);
          else expect(JSON.parse(JSON.stringify(result.object))).toEqual(result.object);
        },
      ),
    );
  });

  test("of 32 bits is cut to them, as Go does [protobuf-numbers-3]", () => {
    const replicas = (value: bigint) =>
      decodeProtobuf(bodyOf("apps/v1", "Deployment", part(2, count(1, value)))) as unknown as {
        readonly object: { readonly spec: { readonly replicas: number } };
      };
    expect(replicas(3n).object.spec.replicas).toBe(3);
    expect(replicas(2n ** 32n + 3n).object.spec.replicas).toBe(3);
    expect(replicas(-3n).object.spec.replicas).toBe(-3);
  });
});

test("base64OfBytes pads", () => {
  expect(["", "a", "ab", "abc"].map((text) => base64OfBytes(new TextEncoder().encode(text)))).toEqual([
    "",
    "YQ==",
    "YWI=",
    "YWJj",
  ]);
});
