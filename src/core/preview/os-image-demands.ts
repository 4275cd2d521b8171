import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { own } from "../../api/schema/own.ts";
import { contentsReader, heldText, mostTextCharacters } from "../../ignition/held-contents.ts";
import type { IgnitionConfig } from "../../ignition/types.ts";
import { isRecord } from "../../ignition/shape.ts";
import { splitKernelArguments } from "../config/node-config.ts";
import { ignitionOf, supportedExtensions } from "../config/validate-machine-config.ts";
import { baseRuntimePath } from "../render/base-configs.ts";
import { containerRuntimes } from "../runtime/container-runtime-config.ts";
import { readOncePerObject } from "../text/read-once.ts";

/** What was read of an OS image. */
export type OSImageFacts =
  | {
      readonly verdict: "read";
      /** Fields of /usr/lib/os-release. */
      readonly osRelease: Readonly<Record<string, string>>;
      /** Those of `runtimePaths` that the image has. */
      readonly files: ReadonlySet<string>;
    }
  | { readonly verdict: "unread"; readonly problem: string };

/** The facts of the image with the extensions of an OS. */
export type ExtensionFacts =
  | {
      readonly verdict: "read";
      /** Names of the packages in it. */
      readonly packages: ReadonlySet<string>;
    }
  | { readonly verdict: "unread"; readonly problem: string };

/** Why machines would not work with an OS image, or what could not be found out. */
export interface OSImageFinding {
  readonly verdict: "breaks" | "unknown";
  readonly about: "runtime" | "kernelArgument" | "extension" | "image" | "bootImage";
  readonly reason: string;
  readonly remedy?: string;
  /** Whom it breaks; absent: the machines of the pool. */
  readonly whom?: string;
}

/** What a rendered configuration needs of the OS image, beyond what every image has. */
export interface OSImageDemands {
  /** The container runtime that the drop-ins of CRI-O choose, and the drop-in that does. */
  readonly runtime?: { readonly path: string; readonly name: string };
  /** Kernel arguments that choose cgroup v1. */
  readonly cgroupV1: readonly string[];
}

export const osReleasePath = "/usr/lib/os-release";
/**
 * Where an image with extensions lists its packages, as a JSON object with their names as fields: openshift/os
 * extensions/Containerfile (master).
 */
export const extensionPackagesPath = "/usr/share/rpm-ostree/extensions.json";
const runtimeFolders = ["/usr/bin", "/usr/sbin", "/usr/libexec/crio"];
/** Where an image has its container runtimes. */
export const runtimePaths: readonly string[] = containerRuntimes.flatMap((name) =>
  runtimeFolders.map((folder) => `${folder}/${name}`),
);

/** RHEL 10 and its relatives have no cgroup v1: Red Hat, Considerations in adopting RHEL 10. */
const cgroupV1 =
  /^(systemd\.unified_cgroup_hierarchy=(0|no|false|off)|systemd\.legacy_systemd_cgroup_controller(=(1|yes|true|on))?)$/;
const withoutCgroupV1 = 10;

/** What a rendered configuration needs of its OS image. */
export function demandsOf(rendered: Pick<MachineConfig, "metadata" | "spec">): OSImageDemands {
  const runtime = chosenRuntime(rendered);
  const kernelArguments = (rendered.spec?.kernelArguments ?? []).flatMap(splitKernelArguments);
  return {
    ...(runtime === undefined ? {} : { runtime }),
    cgroupV1: kernelArguments.filter((argument) => cgroupV1.test(argument)),
  };
}

/** Whether any OS image meets them. */
const demandsNothing = ({ runtime, cgroupV1: old }: OSImageDemands): boolean =>
  runtime === undefined && old.length === 0;

/** Blanks of its own line alone: a text of line feeds costs one pass. */
const defaultRuntime = /^[ \t]*default_runtime[ \t]*=[ \t]*"([^"\n]*)"/m;

/** The runtime that the drop-ins of CRI-O choose; the last one counts. */
function chosenRuntime(rendered: Pick<MachineConfig, "metadata" | "spec">): OSImageDemands["runtime"] {
  const ignition = ignitionOf(rendered);
  if (ignition?.verdict !== "valid") return undefined;
  const chosen = lastChoice(ignition.config);
  return chosen !== undefined && containerRuntimes.includes(chosen.name) ? chosen : undefined;
}

/** The runtime that the last drop-in with a choice names. A drop-in that is too large to be parsed chooses none. */
const lastChoice = readOncePerObject(({ storage }: IgnitionConfig): OSImageDemands["runtime"] => {
  const read = contentsReader();
  const dropins = (storage?.files ?? [])
    .filter(({ path }) => path.startsWith("/etc/crio/crio.conf.d/"))
    .toSorted((a, b) => (a.path < b.path ? 1 : -1));
  for (const { path, contents } of dropins) {
    const text = read(contents).verdict === "decoded" ? heldText(contents, mostTextCharacters) : undefined;
    const name = text?.verdict === "text" ? defaultRuntime.exec(text.text)?.[1] : undefined;
    if (name !== undefined) return { path, name };
  }
  return undefined;
});

/** Whether an OS image has what a configuration needs of it. */
export function judgeDemands(demands: OSImageDemands, facts: OSImageFacts): readonly OSImageFinding[] {
  if (facts.verdict === "read")
    return [...runtimeFindings(demands, facts.files), ...cgroupFindings(demands, facts.osRelease)];
  return [
    {
      verdict: "unknown",
      about: "image",
      reason: `the OS image could not be read: ${facts.problem}; container runtime and kernel arguments were not compared`,
    },
  ];
}

function runtimeFindings({ runtime }: OSImageDemands, present: ReadonlySet<string>): readonly OSImageFinding[] {
  if (runtime === undefined) return [];
  const { path, name } = runtime;
  if (runtimeFolders.some((folder) => present.has(`${folder}/${name}`))) return [];
  const choice = `${path} chooses the container runtime ${name}`;
  if (present.size === 0)
    return [
      {
        verdict: "unknown",
        about: "runtime",
        reason: `${choice}, and the OS image has none of ${runtimePaths.join(", ")}: where its runtimes are is not known`,
      },
    ];
  return [
    {
      verdict: "breaks",
      about: "runtime",
      reason: `${choice}, which the OS image does not have: no container would start`,
      remedy: "take defaultRuntime off the ContainerRuntimeConfig, or choose a runtime that the image has",
    },
  ];
}

function cgroupFindings(
  { cgroupV1: old }: OSImageDemands,
  osRelease: Readonly<Record<string, string>>,
): readonly OSImageFinding[] {
  const ids = [osRelease["ID"] ?? "", ...(osRelease["ID_LIKE"] ?? "").split(" ")];
  const isRelative = ids.some((id) => ["rhel", "centos", "rhcos", "scos"].includes(id));
  const version = osRelease["RHEL_VERSION"] ?? osRelease["VERSION_ID"] ?? "";
  if (!isRelative || Number.parseInt(version, 10) < withoutCgroupV1) return [];
  return old.map((argument) => ({
    verdict: "breaks",
    about: "kernelArgument",
    reason: `the kernel argument ${argument} asks for cgroup v1, which ${osRelease["PRETTY_NAME"] ?? version} does not have`,
    remedy: "take the kernel argument off its MachineConfig",
  }));
}

/** Whether the image with extensions has the packages of those that a rendered configuration names. */
export function judgeExtensions(extensions: readonly string[], facts: ExtensionFacts): readonly OSImageFinding[] {
  if (facts.verdict === "unread")
    return [
      {
        verdict: "unknown",
        about: "extension",
        reason: `whether the stream's image with extensions has ${extensions.join(", ")}: ${facts.problem}`,
      },
    ];
  return extensions.flatMap((name): readonly OSImageFinding[] => {
    const missing = (own(supportedExtensions, name) ?? []).filter((one) => !facts.packages.has(one));
    if (missing.length === 0) return [];
    return [
      {
        verdict: "breaks",
        about: "extension",
        reason: `the extension ${name} needs the package${missing.length === 1 ? "" : "s"} ${missing.join(", ")}, which the stream's image with extensions does not have: it cannot be installed`,
        remedy: "take the extension off its MachineConfig",
      },
    ];
  });
}

/** The packages that an image with extensions lists. @param text of its list; `undefined`: it has none. */
export function parseExtensionPackages(text: string | undefined): ExtensionFacts {
  const unread = (problem: string): ExtensionFacts => ({ verdict: "unread", problem });
  if (text === undefined) return unread(`it has no ${extensionPackagesPath}`);
  try {
    const list: unknown = JSON.parse(text);
    const names = isRecord(list) ? Object.keys(list) : [];
    return names.length === 0
      ? unread(`its ${extensionPackagesPath} names no package`)
      : { verdict: "read", packages: new Set(names) };
  } catch {
    return unread(`its ${extensionPackagesPath} is no JSON`);
  }
}

/** The fields of an os-release file. */
export function parseOsRelease(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    text.split("\n").flatMap((line) => {
      const match = /^([A-Z0-9_]+)=(.*)$/.exec(line.trim());
      return match?.[1] === undefined ? [] : [[match[1], (match[2] ?? "").replace(/^(["'])(.*)\1$/, "$2")] as const];
    }),
  );
}

/** What a change needs of the OS image of one pool. */
export interface OSImageQuestion {
  readonly demands: OSImageDemands;
  /** Where the answer is. */
  readonly image:
    | { readonly verdict: "named"; readonly name: string }
    | { readonly verdict: "unread"; readonly problem: string };
}

/** The choice of the base configurations, which are made for the cluster's OS image, overrides nothing. */
const withoutBase = ({ runtime, cgroupV1: old }: OSImageDemands): OSImageDemands => ({
  ...(runtime === undefined || runtime.path === baseRuntimePath ? {} : { runtime }),
  cgroupV1: old,
});

/**
 * What a change of a pool's configuration needs of its OS image; `undefined`: nothing that it did not need before, of the
 * same image.
 *
 * @param from the configuration that machines have; `undefined`: none. @param isBuilt the machines boot an image that is
 * built on the cluster, which may have more than the image that the configuration names.
 */
export function questionOf(
  from: Pick<MachineConfig, "metadata" | "spec"> | undefined,
  to: Pick<MachineConfig, "metadata" | "spec">,
  isBuilt: boolean,
): OSImageQuestion | undefined {
  const demands = withoutBase(demandsOf(to));
  if (demandsNothing(demands)) return undefined;
  const isSame =
    from !== undefined &&
    from.spec?.osImageURL === to.spec?.osImageURL &&
    JSON.stringify(withoutBase(demandsOf(from))) === JSON.stringify(demands);
  if (isSame) return undefined;
  const name = to.spec?.osImageURL ?? "";
  const unread = isBuilt
    ? "the machines boot an image that is built on the cluster"
    : name === ""
      ? "the configuration names none"
      : undefined;
  return {
    demands,
    image: unread === undefined ? { verdict: "named", name } : { verdict: "unread", problem: unread },
  };
}
