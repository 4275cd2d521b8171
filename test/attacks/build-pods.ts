import { expect } from "vitest";
import type { Job, Pod } from "../../src/api/foreign/kubernetes.ts";
import { buildNamespace } from "../../src/api/names.ts";
import { buildJob } from "../support/pod-templates.ts";

type PodSpec = NonNullable<Pod["spec"]>;
type Container = PodSpec["containers"][number];

/** A build's pod with a change of its spec, or of its first container. */
interface Attack {
  readonly title: string;
  readonly pod?: Partial<PodSpec>;
  readonly container?: Partial<Container>;
  readonly context?: Partial<NonNullable<Container["securityContext"]>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** What the answer names. */
  readonly says: string;
}

/** Ways from a Job to its machine, to an account or to another image. */
export const podAttacks: readonly Attack[] = [
  { title: "is privileged", context: { privileged: true, allowPrivilegeEscalation: true }, says: "privileged" },
  {
    title: "mounts the machine",
    pod: { volumes: [{ name: "v0", hostPath: { path: "/", type: "Directory" } }] },
    says: "volumes",
  },
  ...[
    "/var/lib/machine-os-builder/cache",
    "/var/lib/machine-os-builder/cache-of-another/worker",
    "/var/lib/machine-os-builder/cache/worker/etc",
    "/var/lib/kubelet",
  ].map((path) => ({
    title: `mounts ${path}`,
    pod: { volumes: [{ name: "v0", hostPath: { path, type: "DirectoryOrCreate" } }] },
    says: "volumes",
  })),
  {
    title: "mounts the cache as a socket",
    pod: { volumes: [{ name: "v0", hostPath: { path: "/var/lib/machine-os-builder/cache/worker", type: "Socket" } }] },
    says: "volumes",
  },
  {
    title: "has a token in a volume",
    pod: {
      volumes: [
        { name: "v0", projected: { sources: [{ serviceAccountToken: { path: "token", audience: "vault" } }] } },
      ],
    },
    says: "volumes",
  },
  { title: "mounts its token", pod: { automountServiceAccountToken: true }, says: "account" },
  { title: "runs as another account", pod: { serviceAccountName: "default" }, says: "account" },
  { title: "names its node", pod: { nodeName: "master-0" }, says: "nodeName" },
  { title: "goes before every workload", pod: { priorityClassName: "system-node-critical" }, says: "priority" },
  { title: "has the machine's network", pod: { hostNetwork: true, hostUsers: true }, says: "network" },
  { title: "has the machine's processes", pod: { hostPID: true, hostUsers: true }, says: "processes" },
  { title: "has the machine's IPC", pod: { hostIPC: true, hostUsers: true }, says: "processes" },
  {
    title: "has a port of the machine",
    container: { ports: [{ containerPort: 22623, hostPort: 22623 }] },
    says: "ports",
  },
  { title: "has the users of the machine", pod: { hostUsers: true }, says: "hostUsers" },
  { title: "runs another image", container: { image: "attacker.example.com/root" }, says: "image" },
  { title: "gains privileges", context: { allowPrivilegeEscalation: true }, says: "capabilities" },
  {
    title: "loads modules",
    context: { capabilities: { drop: ["ALL"], add: ["SYS_MODULE"] } },
    says: "capabilities",
  },
  { title: "keeps the default capabilities", context: { capabilities: { add: ["CHOWN"] } }, says: "confined" },
  { title: "has no seccomp filter", context: { seccompProfile: { type: "Unconfined" } }, says: "capabilities" },
  { title: "sees all of /proc", context: { procMount: "Unmasked" }, says: "confined" },
  { title: "is not confined by SELinux", context: { seLinuxOptions: { type: "spc_t" } }, says: "confined" },
  {
    title: "is not confined by SELinux as a whole",
    pod: { securityContext: { seLinuxOptions: { type: "spc_t" } } },
    says: "confined",
  },
  {
    title: "sets the machine's kernel",
    pod: { securityContext: { sysctls: [{ name: "kernel.shm_rmid_forced", value: "1" }] } },
    says: "confined",
  },
  {
    title: "has a device of a plug-in",
    container: { resources: { limits: { "example.com/device": "1" }, requests: { "example.com/device": "1" } } },
    says: "devices",
  },
  ...(["livenessProbe", "readinessProbe", "startupProbe"] as const).map((probe) => ({
    title: `has its node ask others (${probe})`,
    container: { restartPolicy: "Always", [probe]: { httpGet: { host: "192.0.2.1", port: 80 } } },
    says: "probes",
  })),
  {
    title: "has its node tell others",
    container: {
      restartPolicy: "Always",
      lifecycle: { preStop: { httpGet: { host: "192.0.2.1", port: 80, path: "/" } } },
    },
    says: "lifecycle",
  },
  { title: "has another scheduler", pod: { schedulerName: "mine" }, says: "schedulerName" },
  ...[
    "io.kubernetes.cri-o.Devices",
    "seccomp-profile.kubernetes.cri-o.io",
    "cpu-quota.crio.io",
    "run.oci.hooks",
    "k8s.v1.cni.cncf.io/networks",
    "v1.multus-cni.io/default-network",
    "cni.projectcalico.org/ipAddrs",
    "ovn.kubernetes.io/logical_switch",
    "ipam.spidernet.io/ippool",
    "vpc.amazonaws.com/pod-eni",
    "danm.io/interfaces",
    "target.workload.openshift.io/management",
    "io.katacontainers.config.hypervisor.kernel",
    "seccomp.security.alpha.kubernetes.io/pod",
    "example.com/kubernetes.io",
  ].map((name) => ({
    title: `asks others for more (${name})`,
    annotations: { [name]: "x" },
    says: `by an annotation, .*[(]${name}[)]`,
  })),
  { title: "is not confined by AppArmor", context: { appArmorProfile: { type: "Unconfined" } }, says: "confined" },
];

/** What the admission of clusters adds to a pod. */
export const platformAnnotations: Readonly<Record<string, string>> = {
  "openshift.io/scc": "machine-os-build",
  "security.openshift.io/validated-scc-subject-type": "serviceaccount",
  "kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu request for container push",
  "batch.kubernetes.io/job-completion-index": "0",
  "seccomp.security.alpha.kubernetes.io/pod": "runtime/default",
};

/** The answer that refuses an attack. */
export const refusedFor = (says: string): string =>
  expect.stringMatching(new RegExp(`image-build-(jobs|pods)' .*denied request: .*${says}`)) as string;

/** The Job of a build as an attacker changes it: its first container, which is one of those before the push. */
export function attackingJob(
  { pod, container, context, annotations }: Omit<Attack, "title" | "says">,
  image: string,
): Job {
  const job = buildJob(image);
  const spec = job.spec?.template.spec;
  if (job.spec === undefined || spec === undefined) throw new Error("a build has no pod");
  const [first, ...rest] = spec.initContainers ?? [];
  if (first === undefined) throw new Error("a build has no container before the push");
  const changed = {
    ...first,
    ...container,
    ...(context === undefined ? {} : { securityContext: { ...first.securityContext, ...context } }),
    // Nothing mounts what an attack replaces.
    ...(pod?.volumes === undefined ? {} : { volumeMounts: [] }),
  };
  const without = (one: Container) => (pod?.volumes === undefined ? one : { ...one, volumeMounts: [] });
  return {
    ...job,
    spec: {
      ...job.spec,
      template: {
        ...job.spec.template,
        metadata: {
          ...job.spec.template.metadata,
          annotations: { ...job.spec.template.metadata?.annotations, ...annotations },
        },
        spec: {
          ...spec,
          ...pod,
          initContainers: [changed, ...rest.map(without)],
          containers: spec.containers.map(without),
        },
      },
    },
  };
}

/** The pod of such a Job, as anybody who may create pods there makes it. */
export function attackingPod(attack: Omit<Attack, "title" | "says">, image: string): Pod {
  const { spec } = attackingJob(attack, image);
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "attack-builds", namespace: buildNamespace, annotations: { ...attack.annotations } },
    ...(spec?.template.spec === undefined ? {} : { spec: spec.template.spec }),
  };
}
