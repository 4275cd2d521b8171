import { hostPaths } from "../../api/names.ts";
import { foldersAbove } from "../../ignition/clean-path.ts";
import { isCredential } from "../config/image-content.ts";
import type { NodeConfig, WantedEntry } from "../config/node-config.ts";
import { supportedExtensions, unfitImageName, unwritablePath } from "../config/validate-machine-config.ts";
import type { ObservedNode } from "./observed-node.ts";
import { shellWord } from "../text/shell-word.ts";

/** Why this machine cannot take a target, found before anything is changed. */
export interface TargetProblem {
  /** Field of the MachineConfig, or path on the machine. */
  readonly where: string;
  readonly reason: string;
  readonly remedy: string;
}

/** Facts about the machine that decide about a target, beside the inputs of a plan. */
export interface MachineFacts {
  /** Owner of core's `.ssh` folder and the user's own number; `undefined` where there is no such folder or user. */
  readonly sshFolder: { readonly uid: number; readonly coreUid: number } | undefined;
  /** Free bytes where files are written; `undefined` if unknown. */
  readonly freeBytes: number | undefined;
}

/** Bytes to leave free when files are written. */
const reserveBytes = 16 * 1024 * 1024;

/**
 * All reasons why a machine cannot take a target: immutable settings, missing accounts, a kernel in the wrong FIPS
 * mode, no space. Empty if nothing prevents it. The daemon checks this before it drains.
 */
export function judgeTarget(node: ObservedNode, target: NodeConfig, facts: MachineFacts): readonly TargetProblem[] {
  return [
    ...(node.can.images ? problemsOfTarget(node.previous, target) : []),
    ...systemProblems(node, target),
    ...twiceProblems(node),
    ...placeProblems(node, target),
    ...fileProblems(node, target),
    ...accessProblems(target, facts),
    ...spaceProblems(node, target, facts),
  ];
}

/**
 * Why no machine with an operating system of images takes a target, as the target alone shows: `mco plan` and admission
 * say the same before the pool has it.
 *
 * @param previous what the machine has: an image that it was given before is not judged again
 */
export function problemsOfTarget(previous: NodeConfig | undefined, target: NodeConfig): readonly TargetProblem[] {
  const isNew = target.imageContent === undefined && target.osImage !== previous?.osImage;
  // Fetching it shows, before the drain as well, what else is wrong with its name.
  const image = isNew && !target.osImage.includes("@") ? unfitImageName(target.osImage) : undefined;
  return [
    ...(image === undefined ? [] : [{ where: "spec.osImageURL", ...image }]),
    ...writtenFiles(target).flatMap(([where]) => {
      const unwritable = unwritablePath(where);
      return unwritable === undefined ? [] : [{ where, ...unwritable }];
    }),
  ];
}

/** Kernel and system settings that the machine cannot change. */
function systemProblems({ can, fips }: ObservedNode, target: NodeConfig): readonly TargetProblem[] {
  const problems: TargetProblem[] = [];
  const refuse = (where: string, reason: string, remedy: string) => void problems.push({ where, reason, remedy });
  const unknown = target.extensions.filter((name) => !Object.hasOwn(supportedExtensions, name));
  if (unknown.length > 0)
    refuse(
      "spec.extensions",
      `${unknown.join(", ")}: no such extension`,
      `one of ${Object.keys(supportedExtensions).join(", ")}`,
    );
  else if (target.extensions.length > 0 && !can.packages)
    refuse("spec.extensions", "this machine cannot layer packages", "put the packages into the OS image");
  if (!can.kernelTypes.includes(target.kernelType) && target.kernelType !== "default")
    refuse(
      "spec.kernelType",
      `this machine cannot have the kernel type ${target.kernelType}`,
      can.kernelTypes.length === 0
        ? "leave the kernel to the administrator of this machine's system"
        : `one of ${can.kernelTypes.join(", ")}`,
    );
  if (target.kernelArguments.length > 0 && !can.kernelArguments)
    refuse(
      "spec.kernelArguments",
      "this machine cannot change its kernel arguments",
      "set them where its system is kept",
    );
  if (fips !== undefined && fips !== target.fips)
    refuse(
      "spec.fips",
      `the machine runs with FIPS mode ${fips ? "on" : "off"}, which is decided when it is installed`,
      "join a machine that was installed with the cluster's FIPS mode",
    );
  if (target.imageContent !== undefined && !can.images)
    refuse(
      "spec.osImageURL",
      "this machine's operating system is managed elsewhere, and it cannot boot an image of its pool",
      "take the machine out of the pool, or the pool out of image builds",
    );
  return problems;
}

/** Files that the daemon writes on the machine: not those that the image contains. */
const writtenFiles = (target: NodeConfig) =>
  [...target.entries].flatMap(([path, wanted]) =>
    wanted.kind === "file" && (target.imageContent !== "full" || isCredential(path)) ? [[path, wanted] as const] : [],
  );

/** A file with two names has the content that was written last, so it always differs from one of the entries. */
const twiceProblems = ({ twice }: ObservedNode): readonly TargetProblem[] =>
  twice.map(([where = "", ...others]) => ({
    where,
    reason: `is the same file as ${others.join(" and ")} on this machine, through a link above it`,
    remedy: `name it once: mco blame ${shellWord(where)} and mco blame ${others.map(shellWord).join(" ")} show the MachineConfigs`,
  }));

/** Entries whose place is taken by something that the daemon did not bring and could not restore. */
function placeProblems(node: ObservedNode, target: NodeConfig): readonly TargetProblem[] {
  return [...target.entries].flatMap(([where, wanted]): readonly TargetProblem[] => {
    if (wanted.kind === "absent" || (target.imageContent === "full" && !isCredential(where))) return [];
    const is = node.entries.get(where);
    const isBlocked = is?.kind === "folder" && is.goesAway !== true;
    const above = foldersAbove(where).find((path) => isInTheWay(path, node, target));
    return [
      ...(isBlocked
        ? [
            {
              where,
              reason: `is a folder on this machine, which a ${wanted.kind} does not replace`,
              remedy: "remove the folder, or choose another path",
            },
          ]
        : []),
      ...(above === undefined
        ? []
        : [
            {
              where,
              reason: `${above} is a file on this machine, which a folder does not replace`,
              remedy: `remove ${above}, or choose another path`,
            },
          ]),
    ];
  });
}

/** A file that stays: the target names it, or no configuration brought it, or it hides one of the system. */
function isInTheWay(path: string, { entries, originals }: ObservedNode, target: NodeConfig): boolean {
  if (entries.get(path)?.kind !== "file") return false;
  return target.entries.has(path) || !Object.hasOwn(originals.paths, path) || originals.paths[path] !== null;
}

function fileProblems(node: ObservedNode, target: NodeConfig): readonly TargetProblem[] {
  return writtenFiles(target).flatMap(([where, wanted]): readonly TargetProblem[] => [
    ...unknownOwners(wanted, node).map((owner) => ({
      where,
      reason: `is to belong to ${owner}, which this machine does not have`,
      remedy: "give the owner by number, or create the account first",
    })),
    ...(isForeignKubeconfig(node, where, wanted.digest)
      ? [
          {
            where,
            reason:
              "is a kubeconfig on this machine that no MachineConfig brought, and its kubelet would lose the cluster",
            remedy: "take the file out of the MachineConfig, or write it to another path",
          },
        ]
      : []),
  ]);
}

/** Whether a file of another content would replace a kubeconfig that somebody else, such as kubeadm, wrote. */
function isForeignKubeconfig({ entries, previous }: ObservedNode, path: string, digest: string): boolean {
  const is = entries.get(path);
  return (
    is?.kind === "file" && is.isKubeconfig === true && is.digest !== digest && previous?.entries.has(path) !== true
  );
}

function accessProblems(target: NodeConfig, { sshFolder }: MachineFacts): readonly TargetProblem[] {
  if (sshFolder === undefined || sshFolder.uid === sshFolder.coreUid || !target.entries.has(hostPaths.sshKeys))
    return [];
  return [
    {
      where: hostPaths.sshKeys,
      reason: `the folder .ssh of core belongs to user ${sshFolder.uid}`,
      remedy: "give the folder to core, or remove it",
    },
  ];
}

function spaceProblems(node: ObservedNode, target: NodeConfig, { freeBytes }: MachineFacts): readonly TargetProblem[] {
  if (freeBytes === undefined) return [];
  let needs = 0;
  for (const [path, wanted] of writtenFiles(target)) {
    const is = node.entries.get(path);
    if (!(is?.kind === "file" && is.digest === wanted.digest)) needs += wanted.sizeBytes;
  }
  if (needs === 0 || needs + reserveBytes <= freeBytes) return [];
  return [
    {
      where: "disk",
      reason: `${needs} bytes are to be written and ${freeBytes} are free`,
      remedy: "make room on the machine",
    },
  ];
}

export const describeProblems = (problems: readonly TargetProblem[]): string =>
  problems.map(({ where, reason, remedy }) => `${where}: ${reason}; ${remedy}`).join("; ");

/** Owner names that are unknown on the machine, in words. */
export function unknownOwners(
  wanted: WantedEntry & { readonly kind: "file" },
  { users, groups }: Pick<ObservedNode, "users" | "groups">,
): readonly string[] {
  return [
    ...(wanted.user.id === undefined && wanted.user.name !== undefined && !users.has(wanted.user.name)
      ? [`user ${wanted.user.name}`]
      : []),
    ...(wanted.group.id === undefined && wanted.group.name !== undefined && !groups.has(wanted.group.name)
      ? [`group ${wanted.group.name}`]
      : []),
  ];
}

/**
 * The part of a config that this machine can apply: without SSH keys and passwords of accounts that it does not have.
 * Source: openshift/machine-config-operator pkg/daemon/update.go (main), which skips them too.
 */
export function fitToAccounts(config: NodeConfig, users: ReadonlyMap<string, number>): NodeConfig {
  const strangers = [...config.passwords.keys()].filter((user) => !users.has(user));
  const keysOfNobody = config.entries.get(hostPaths.sshKeys)?.origin.kind === "sshKeys" && !users.has("core");
  if (strangers.length === 0 && !keysOfNobody) return config;
  const entries = new Map(config.entries);
  if (keysOfNobody) entries.delete(hostPaths.sshKeys);
  return {
    ...config,
    entries,
    passwords: new Map([...config.passwords].filter(([user]) => !strangers.includes(user))),
  };
}
