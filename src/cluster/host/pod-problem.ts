import type { Container, Pod } from "../../api/foreign/kubernetes.ts";

/**
 * Variables by which a program loads code, finds programs, or takes this host's word: with them a manifest would execute
 * other programs than the suite's.
 */
const hostVariable = /^((NODE|MCO|LD|DYLD|OPENSSL|XDG|BASH)_.*|PATH|ENV)$/;
const freeVariables: ReadonlySet<string> = new Set(["NODE_NAME", "MCO_LOG_LEVEL"]);

const partsOf = (path: string) => path.split("/").filter((part) => part !== "" && part !== ".");
const leaves = (path: string) => path.split("/").includes("..");

/** Why a container is not started with its own settings. */
export function containerProblem({ env = [] }: Container): string | undefined {
  const variable = env.find(({ name }) => hostVariable.test(name) && !freeVariables.has(name));
  return variable === undefined ? undefined : `this host sets ${variable.name} itself`;
}

/**
 * Why a pod's folder is not written: a path would lead out of it. Without mount namespaces, files are written and removed
 * where paths lead, with the rights of the user who started the cluster.
 */
export function pathProblem({ spec }: Pod): string | undefined {
  const containers = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])];
  const volumes = spec?.volumes ?? [];
  const mounts = containers.flatMap(({ volumeMounts }) => volumeMounts ?? []);
  const messages = containers.flatMap(({ terminationMessagePath: path }) => (path === undefined ? [] : [path]));
  const items = volumes.flatMap(({ configMap, secret, downwardAPI, projected }) => [
    ...(configMap?.items ?? []),
    ...(secret?.items ?? []),
    ...(downwardAPI?.items ?? []),
    ...(projected?.sources ?? []).flatMap((source) => [
      ...(source.serviceAccountToken === undefined ? [] : [source.serviceAccountToken]),
      ...(source.configMap?.items ?? []),
      ...(source.secret?.items ?? []),
      ...(source.downwardAPI?.items ?? []),
    ]),
  ]);
  const written = [...mounts.map(({ mountPath }) => mountPath), ...messages];
  const hostPaths = volumes.flatMap(({ hostPath }) => (hostPath === undefined ? [] : [hostPath.path]));
  const leaving = [...written, ...items.map(({ path }) => path), ...hostPaths].find(leaves);
  if (leaving !== undefined) return `${leaving} leads out of the pod's folder`;

  // The mount of a folder of the machine is a link, which what is written behind it would follow.
  const ofHost = new Set(volumes.filter(({ hostPath }) => hostPath !== undefined).map(({ name }) => name));
  const links = mounts.filter(({ name }) => ofHost.has(name)).map(({ mountPath }) => partsOf(mountPath));
  const isBehind = (path: string, least: number) =>
    links.some(
      (link) => partsOf(path).length >= link.length + least && link.every((part, i) => partsOf(path)[i] === part),
    );
  const behind =
    mounts.find(({ name, mountPath }) => isBehind(mountPath, ofHost.has(name) ? 1 : 0))?.mountPath ??
    messages.find((path) => isBehind(path, 0));
  return behind === undefined ? undefined : `${behind} lies in a folder of the machine`;
}
