import type { Container, PodSpec } from "../../src/api/foreign/kubernetes.ts";

/**
 * The *restricted* profile as the API server checks it: k8s.io/pod-security-admission policy/check_*.go (v0.34.4), each
 * in its newest version. The rules for user namespaces, which relax others, are left out: no template may rely on them.
 */
const rules: readonly ((spec: PodSpec) => readonly string[])[] = [
  (spec) =>
    (["hostNetwork", "hostPID", "hostIPC"] as const).flatMap((field) =>
      spec[field] === true ? [`host namespaces: ${field}`] : [],
    ),
  (spec) => each(spec, ({ securityContext }) => (securityContext?.privileged === true ? "privileged" : undefined)),
  (spec) =>
    each(spec, ({ securityContext }) =>
      securityContext?.allowPrivilegeEscalation === false ? undefined : "allowPrivilegeEscalation != false",
    ),
  (spec) =>
    each(spec, ({ securityContext }) => {
      const { drop = [], add = [] } = securityContext?.capabilities ?? {};
      return drop.includes("ALL") && add.every((one) => one === "NET_BIND_SERVICE")
        ? undefined
        : "unrestricted capabilities";
    }),
  (spec) => {
    const ofPod = spec.securityContext?.runAsNonRoot;
    return [
      ...(ofPod === false ? ["runAsNonRoot != true: pod"] : []),
      ...each(spec, ({ securityContext }) =>
        (securityContext?.runAsNonRoot ?? ofPod) === true ? undefined : "runAsNonRoot != true",
      ),
    ];
  },
  (spec) => [
    ...(spec.securityContext?.runAsUser === 0 ? ["runAsUser=0: pod"] : []),
    ...each(spec, ({ securityContext }) => (securityContext?.runAsUser === 0 ? "runAsUser=0" : undefined)),
  ],
  (spec) =>
    each(spec, ({ securityContext }) => {
      const type = (securityContext?.seccompProfile ?? spec.securityContext?.seccompProfile)?.type;
      return type === "RuntimeDefault" || type === "Localhost" ? undefined : "seccompProfile";
    }),
  (spec) =>
    each(spec, ({ securityContext }) =>
      ["Default", undefined].includes(securityContext?.procMount) ? undefined : "procMount",
    ),
  (spec) =>
    (spec.volumes ?? []).flatMap(({ name, ...source }) =>
      Object.keys(source).every((kind) => restrictedVolumes.has(kind)) ? [] : [`restricted volume types: ${name}`],
    ),
  (spec) => each(spec, ({ ports = [] }) => (ports.some(({ hostPort = 0 }) => hostPort !== 0) ? "hostPort" : undefined)),
  (spec) =>
    each(spec, ({ livenessProbe, readinessProbe, startupProbe, lifecycle }) =>
      [livenessProbe, readinessProbe, startupProbe, lifecycle?.postStart, lifecycle?.preStop].some((handler) =>
        [handler?.httpGet?.host, handler?.tcpSocket?.host].some((host) => host !== undefined && host !== ""),
      )
        ? "probe or lifecycle host"
        : undefined,
    ),
  (spec) => (spec.securityContext?.sysctls ?? []).map(({ name }) => `forbidden sysctls: ${name}`),
];

const restrictedVolumes: ReadonlySet<string> = new Set([
  "configMap",
  "csi",
  "downwardAPI",
  "emptyDir",
  "ephemeral",
  "image",
  "persistentVolumeClaim",
  "projected",
  "secret",
]);

const containersOf = ({ initContainers = [], containers }: PodSpec): readonly Container[] => [
  ...initContainers,
  ...containers,
];

const each = (spec: PodSpec, problem: (container: Container) => string | undefined): readonly string[] =>
  containersOf(spec).flatMap((container) => problem(container) ?? []);

/** Where a pod departs from the restricted profile, in the words of the API server's refusal. */
export const departuresFrom = (spec: PodSpec): readonly string[] => [
  ...new Set(rules.flatMap((rule) => rule(spec)).map((text) => text.split(":", 1)[0] ?? "")),
];

/** What the suite asks of its pods beyond the profile. */
export function shortcomingsOf(spec: PodSpec): readonly string[] {
  const missing = containersOf(spec).flatMap(({ securityContext, resources }) => [
    ...(typeof securityContext?.runAsUser === "number" ? [] : ["no numeric user"]),
    ...(securityContext?.readOnlyRootFilesystem === true ? [] : ["its root file system is writable"]),
    ...(resources?.requests?.["memory"] === undefined ? ["no memory request"] : []),
    ...(resources?.limits?.["memory"] === undefined ? ["no memory limit"] : []),
  ]);
  return [...missing, ...(spec.priorityClassName === undefined ? ["no priority class"] : [])];
}
