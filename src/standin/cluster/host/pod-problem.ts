import type { Container, Pod } from "../../../api/foreign/kubernetes.ts";
import { buildNamespace, namespace } from "../../../api/names.ts";
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
 * The most that one machine takes of one pod. A pod may hold 3 MiB of containers, mounts and items, and each of these takes
 * its host a process, files, or time. A build, the largest pod of the suite, has some 200 mounts.
 */
export const podLimits = { containers: 32, sources: 512, mounts: 512, items: 4096, pathCharacters: 1024 } as const;

/** All containers of a pod, with those that run before the others. */
export const containersOf = ({ spec }: Pod): readonly Container[] => [
  ...(spec?.initContainers ?? []),
  ...(spec?.containers ?? []),
];

const mountsOf = (pod: Pod) => containersOf(pod).flatMap(({ volumeMounts }) => volumeMounts ?? []);

/** The items of a pod's volumes, with the paths that they are written to. */
const itemsOf = ({ spec }: Pod): readonly { readonly path: string }[] =>
  (spec?.volumes ?? []).flatMap(({ configMap, secret, downwardAPI, projected }) => [
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

/** Why a pod is larger than its machine takes; then it gets neither a folder nor a process. */
export function sizeProblem(pod: Pod): string | undefined {
  const volumes = pod.spec?.volumes ?? [];
  const sources = volumes.reduce((sum, { projected }) => sum + (projected?.sources ?? []).length, volumes.length);
  const counts = [
    ["containers", containersOf(pod).length, podLimits.containers],
    ["volumes and sources of volumes", sources, podLimits.sources],
    ["volumeMounts", mountsOf(pod).length, podLimits.mounts],
    ["items of volumes", itemsOf(pod).length, podLimits.items],
  ] as const;
  const beyond = counts.find(([, count, most]) => count > most);
  return beyond === undefined
    ? undefined
    : `the pod has ${beyond[1]} ${beyond[0]}, and a machine of this cluster takes at most ${beyond[2]} of one pod: make several pods of it`;
}

/** A path as text that begins with the text of each folder above it. */
const folderText = (path: string): string => `/${(namesIn(path) ?? []).map((name) => `${name}/`).join("")}`;

/** Folders, of which each path is in at most one: those in others are left out. */
class OuterFolders {
  readonly #sorted: string[] = [];

  /** @param folders as {@link folderText} has them. */
  constructor(folders: readonly string[]) {
    // What lies in a folder comes right after it.
    for (const folder of folders.toSorted()) {
      const last = this.#sorted.at(-1);
      if (last === undefined || !folder.startsWith(last)) this.#sorted.push(folder);
    }
  }

  /** The folder that a path is or lies in. */
  above(path: string): string | undefined {
    // No other folder is between it and the path.
    let [low, high] = [0, this.#sorted.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#sorted[middle] ?? "") <= path) low = middle + 1;
      else high = middle;
    }
    const before = this.#sorted[low - 1];
    return before !== undefined && path.startsWith(before) ? before : undefined;
  }
}

/**
 * Why a pod's folder is not written: a path would lead out of it. Without mount namespaces, files are written and removed
 * where paths lead, with the rights of the user who started the cluster.
 */
export function pathProblem(pod: Pod): string | undefined {
  const volumes = pod.spec?.volumes ?? [];
  const mounts = mountsOf(pod);
  const messages = containersOf(pod).flatMap(({ terminationMessagePath: path }) => (path === undefined ? [] : [path]));
  const hostPaths = volumes.flatMap(({ hostPath }) => (hostPath === undefined ? [] : [hostPath.path]));
  const all = [
    ...mounts.map(({ mountPath }) => mountPath),
    ...messages,
    ...itemsOf(pod).map(({ path }) => path),
    ...hostPaths,
  ];
  const long = all.find((path) => path.length > podLimits.pathCharacters);
  if (long !== undefined)
    return `the path ${long.slice(0, 64)}… has ${long.length} characters, and may have ${podLimits.pathCharacters}`;
  const leaving = all.find((path) => namesIn(path) === undefined);
  if (leaving !== undefined) return `${leaving} leads out of the pod's folder`;

  // The mount of a folder of the machine is a link, which what is written behind it would follow.
  const ofHost = new Set(volumes.filter(({ hostPath }) => hostPath !== undefined).map(({ name }) => name));
  const links = new OuterFolders(
    mounts.filter(({ name }) => ofHost.has(name)).map(({ mountPath }) => folderText(mountPath)),
  );
  const isBehind = (path: string, isLink: boolean) => {
    const text = folderText(path);
    const link = links.above(text);
    return link !== undefined && !(isLink && link === text);
  };
  const behind =
    mounts.find(({ name, mountPath }) => isBehind(mountPath, ofHost.has(name)))?.mountPath ??
    messages.find((path) => isBehind(path, false));
  return behind === undefined ? undefined : `${behind} lies in a folder of the machine`;
}
