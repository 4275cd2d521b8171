import type { Container, Pod } from "../../api/foreign/kubernetes.ts";
import { buildNamespace, namespace } from "../../api/names.ts";
import { namesIn } from "./pod-places.ts";

/** Variables of the suite's own pods. No other one reaches its program, which some lead to other code (`NODE_OPTIONS`). */
const variables = ["POD_NAME", "NODE_NAME", "POD_IP", "HOST_IP", "MCO_LOG_LEVEL"] as const;
/** Folders of builds, whose containers alone have them. */
const buildVariables = ["HOME", "TMPDIR"] as const;

/** What pods of the suite run, by their namespaces: it runs as the user who started the cluster. */
const suitePods: Readonly<Record<string, { readonly commands: readonly string[]; readonly env: readonly string[] }>> = {
  [namespace]: {
    commands: ["operator", "controller", "server", "daemon", "state", "os-builder"].map((part) => `${part} start`),
    env: variables,
  },
  [buildNamespace]: { commands: ["build-image --context"], env: [...variables, ...buildVariables] },
};

/** What a container passes to the suite's program. */
export const argumentsOf = ({ command = [], args = [] }: Container): readonly string[] => [
  ...command.map((word) => word.split("/").at(-1) ?? word),
  ...args,
];

/**
 * Why a container with the suite's program is not started.
 *
 * @param sleeper the image that pods of others may run.
 */
export function containerProblem(
  container: Container,
  { metadata: { namespace: of = "" } }: Pick<Pod, "metadata">,
  sleeper: string,
): string | undefined {
  const known = Object.hasOwn(suitePods, of) ? suitePods[of] : undefined;
  if (known === undefined)
    return `the suite's program runs only in the namespaces ${Object.keys(suitePods).join(" and ")}, not in ${of}; use the image ${sleeper} here, and mco itself for other commands`;
  const verb = argumentsOf(container).slice(0, 2).join(" ");
  if (!known.commands.includes(verb))
    return `pods of ${of} run only ${known.commands.join(", ")}, not ${JSON.stringify(verb)}; use mco itself for other commands`;
  const foreign = (container.env ?? []).find(({ name }) => !known.env.includes(name));
  return foreign === undefined
    ? undefined
    : `the suite's program gets no variable ${foreign.name} here; remove it from env, which may have ${known.env.join(", ")}`;
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
  const leaving = [...written, ...items.map(({ path }) => path), ...hostPaths].find(
    (path) => namesIn(path) === undefined,
  );
  if (leaving !== undefined) return `${leaving} leads out of the pod's folder`;

  const partsOf = (path: string) => namesIn(path) ?? [];
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
