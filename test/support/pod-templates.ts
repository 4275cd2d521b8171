import type { DaemonSet, Deployment, Job, PodTemplateSpec } from "../../src/api/foreign/kubernetes.ts";
import { objects } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/schema/object.ts";
import { buildCacheFolder } from "../../src/core/build/build-pod.ts";
import { installManifests } from "../../src/operator/install-manifests.ts";
import {
  builderDeployment,
  configServerDaemonSet,
  controllerDeployment,
  daemonSet,
  stateDeployment,
} from "../../src/operator/manifests.ts";
import type { BuildRequest } from "../../src/os-builder/backend.ts";
import { type BuildObjects, buildObjects } from "../../src/os-builder/build-objects.ts";

const inputs = {
  image: "suite",
  builderImage: "suite-with-buildah",
  version: "1",
  certificateHash: "",
  logLevel: "info",
} as const;

const build = "worker-0123456789abcdef0123456789abcdef";
const request: BuildRequest = {
  id: `${build}-1`,
  build: {
    metadata: { name: build, uid: "u1" },
    spec: {
      machineConfig: { name: "rendered-worker-1" },
      machineOSConfig: { name: "worker" },
      renderedImagePushSpec: "registry.example:5000/os:worker",
    },
  },
  attempt: 1,
  pool: "worker",
  mode: "full",
  architecture: "amd64",
  base: `registry.example:5000/os/stock@sha256:${"1".repeat(64)}`,
  containerfile: "FROM configs\nRUN true\n",
  context: [],
  mounts: [],
  auth: { pull: "pull", push: "push" },
  trust: [],
  registryCertificates: {},
  target: { repository: "registry.example:5000/os", tag: build },
  epoch: 7,
  noCache: false,
  isolation: "userNamespace",
  limits: { seconds: 3600, pushSeconds: 600, cpu: "500m", memory: "1Gi", storage: "20Gi" },
  labels: {},
};

/** Every object of a build as the os-builder makes it by default, with changes to its request. */
export const objectsOfBuild = (changes: Partial<BuildRequest> = {}, image = "suite-with-buildah"): BuildObjects =>
  buildObjects(
    { ...request, ...changes },
    { pull: "{}", push: "{}", mounts: [] },
    { image, cacheFolder: buildCacheFolder, toleratesControlPlane: false },
  );

/** The Job of a build as the os-builder makes it by default. */
export const buildJob = (image?: string): Job => objectsOfBuild({}, image).job;

/** Every workload that the suite writes, by the name under which docs/pod-security.md lists it. */
export const workloads = (): Readonly<Record<string, KubeObject>> => ({
  [objects.operator]: installed("Deployment"),
  [objects.controller]: controllerDeployment(inputs),
  [objects.state]: stateDeployment(inputs, 1),
  [objects.osBuilder]: builderDeployment(inputs),
  [objects.daemon]: daemonSet(inputs),
  [objects.configServer]: configServerDaemonSet({
    ...inputs,
    access: "required",
    apiServer: "https://api.example.com:6443",
    oneMachine: false,
    tls: [],
    hasClientCa: true,
  }),
  [objects.buildPriority]: buildJob(),
});

function installed(kind: string): KubeObject {
  const found = installManifests({ image: "suite", osImage: "os", version: "1" }).find((one) => one.kind === kind);
  if (found === undefined) throw new Error(`install/ has no ${kind}`);
  return found;
}

export function templateOf(workload: KubeObject): PodTemplateSpec {
  const template = (workload as Deployment | DaemonSet | Job).spec?.template;
  if (template === undefined) throw new Error(`${workload.kind} ${workload.metadata.name} has no pod template`);
  return template;
}

/** The templates that are not restricted, each with the rules that it departs from: the closed list. */
export const exceptions: Readonly<Record<string, readonly string[]>> = {
  [objects.daemon]: [
    "host namespaces",
    "privileged",
    "allowPrivilegeEscalation != false",
    "unrestricted capabilities",
    "runAsNonRoot != true",
    "runAsUser=0",
    "seccompProfile",
    "restricted volume types",
    "probe or lifecycle host",
  ],
  [objects.configServer]: ["host namespaces", "hostPort", "probe or lifecycle host"],
  [objects.buildPriority]: [
    "unrestricted capabilities",
    "runAsNonRoot != true",
    "runAsUser=0",
    "restricted volume types",
  ],
};
