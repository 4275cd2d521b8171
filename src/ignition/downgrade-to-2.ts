import { type Findings, pathTo } from "./problem.ts";
import type {
  Directory2,
  Disk2,
  Dropin2,
  File2,
  Filesystem2,
  Group2,
  Ignition2Config,
  Link2,
  Node2,
  Owner2,
  Reference2,
  Unit2,
  User2,
} from "./spec-2.ts";
import type { Dropin, File, IgnitionConfig, Node, Owner, PasswdGroup, PasswdUser, Resource, Unit } from "./types.ts";
import { undefinedIfEmpty, present } from "./upgrade-2.ts";

/**
 * Converts a spec 3.2 config to spec 2.2, which cannot leave a text, a number or a boolean unset. `refuseBelow31` and
 * `refuseBelow32` find what 2.2 cannot express; validate the result by the rules of 2.2. Source of the rules:
 * coreos/ign-converter translate/v32tov22 (main).
 */
export function downgradeTo22(config: IgnitionConfig): Ignition2Config {
  const { ignition, passwd, storage, systemd } = config;
  const authorities = ignition.security?.tls?.certificateAuthorities;
  const mounts = (storage?.filesystems ?? []).flatMap(({ path }) => (path === undefined ? [] : [path]));
  let unnamed = 0;
  return present<Ignition2Config>({
    ignition: present<NonNullable<Ignition2Config["ignition"]>>({
      version: "2.2.0",
      config: undefinedIfEmpty(
        present<NonNullable<NonNullable<Ignition2Config["ignition"]>["config"]>>({
          append: ignition.config?.merge?.map(referenceOf),
          replace: ignition.config?.replace?.source === undefined ? undefined : referenceOf(ignition.config.replace),
        }),
      ),
      security:
        authorities === undefined ? undefined : { tls: { certificateAuthorities: authorities.map(referenceOf) } },
      timeouts: ignition.timeouts,
    }),
    networkd: undefined,
    passwd: undefinedIfEmpty(
      present<NonNullable<Ignition2Config["passwd"]>>({
        groups: passwd?.groups?.map(groupOf),
        users: passwd?.users?.map(userOf),
      }),
    ),
    storage: undefinedIfEmpty(
      present<NonNullable<Ignition2Config["storage"]>>({
        directories: storage?.directories?.map((directory) =>
          present<Directory2>({ ...nodeOf(directory, mounts), mode: directory.mode }),
        ),
        disks: storage?.disks?.map(({ device, partitions, wipeTable }) =>
          present<Disk2>({
            device: set(device),
            partitions: partitions?.map(({ guid, label, number, typeGuid }) =>
              present({ guid: set(guid), label: set(label), number, typeGuid: set(typeGuid) }),
            ),
            wipeTable: yes(wipeTable),
          }),
        ),
        files: storage?.files?.flatMap((file) => filesOf(file, mounts)),
        filesystems: storage?.filesystems?.map((filesystem): Filesystem2 => {
          if (filesystem.path === undefined) unnamed += 1;
          const { device, format, label, options, uuid, wipeFilesystem } = filesystem;
          return present<Filesystem2>({
            name: set(filesystem.path ?? String(unnamed)),
            path: undefined,
            mount: present<NonNullable<Filesystem2["mount"]>>({
              create: undefined,
              device: set(device),
              format: set(format),
              label,
              options,
              uuid,
              wipeFilesystem: yes(wipeFilesystem),
            }),
          });
        }),
        links: storage?.links?.map((link) =>
          present<Link2>({ ...nodeOf(link, mounts), hard: yes(link.hard), target: set(link.target) }),
        ),
        raid: storage?.raid?.map(({ name, devices, level, options, spares }) =>
          present<{
            name?: string;
            devices?: readonly string[];
            level?: string;
            options?: readonly string[];
            spares?: number;
          }>({
            name: set(name),
            devices,
            level: set(level),
            options,
            spares: spares === 0 ? undefined : spares,
          }),
        ),
      }),
    ),
    systemd: undefinedIfEmpty(present<NonNullable<Ignition2Config["systemd"]>>({ units: systemd?.units?.map(unitOf) })),
  });
}

/** Fields that neither 3.1 nor 2.2 can express. */
export function refuseBelow32(config: IgnitionConfig, version: string, findings: Findings): void {
  if ((config.storage?.luks ?? []).length > 0) findings.error("storage.luks", `does not exist in spec ${version}`);
  for (const kind of ["users", "groups"] as const) {
    for (const [i, { shouldExist }] of (config.passwd?.[kind] ?? []).entries()) {
      if (shouldExist === false)
        findings.error(pathTo(pathTo(`passwd.${kind}`, i), "shouldExist"), `does not exist in spec ${version}`);
    }
  }
  for (const [i, { partitions = [] }] of (config.storage?.disks ?? []).entries()) {
    for (const [k, { resize }] of partitions.entries())
      if (resize === true)
        findings.error(`storage.disks[${i}].partitions[${k}].resize`, `does not exist in spec ${version}`);
  }
}

/** Fields that 3.1 can express and 2.2 cannot. */
export function refuseBelow31(config: IgnitionConfig, findings: Findings): void {
  const { ignition, storage } = config;
  const hash = (resource: Resource | undefined, path: string) => {
    if (resource?.verification?.hash?.startsWith("sha256-") === true)
      findings.error(pathTo(path, "verification.hash"), "is a sha256, which spec 2.2 does not know", "give the sha512");
  };
  const bare = (resource: Resource | undefined, path: string) => {
    if (resource?.compression !== undefined) findings.error(pathTo(path, "compression"), "does not exist in spec 2.2");
    if (resource?.httpHeaders !== undefined) findings.error(pathTo(path, "httpHeaders"), "do not exist in spec 2.2");
    hash(resource, path);
  };
  for (const [i, resource] of (ignition.config?.merge ?? []).entries())
    bare(resource, pathTo("ignition.config.merge", i));
  bare(ignition.config?.replace, "ignition.config.replace");
  for (const [i, resource] of (ignition.security?.tls?.certificateAuthorities ?? []).entries())
    bare(resource, pathTo("ignition.security.tls.certificateAuthorities", i));
  if (ignition.proxy !== undefined) findings.error("ignition.proxy", "does not exist in spec 2.2");
  for (const [i, { partitions = [] }] of (storage?.disks ?? []).entries()) {
    for (const [k, { shouldExist, sizeMiB, startMiB, wipePartitionEntry }] of partitions.entries()) {
      const path = `storage.disks[${i}].partitions[${k}]`;
      if (sizeMiB !== undefined || startMiB !== undefined)
        findings.error(path, "is placed in MiB, which spec 2.2 does not know");
      if (shouldExist === false) findings.error(pathTo(path, "shouldExist"), "does not exist in spec 2.2");
      if (wipePartitionEntry === true) findings.error(pathTo(path, "wipePartitionEntry"), "does not exist in spec 2.2");
    }
  }
  for (const [i, { mountOptions }] of (storage?.filesystems ?? []).entries())
    if (mountOptions !== undefined)
      findings.error(pathTo(pathTo("storage.filesystems", i), "mountOptions"), "do not exist in spec 2.2");
  for (const [i, { append = [], contents }] of (storage?.files ?? []).entries()) {
    const path = pathTo("storage.files", i);
    if ([contents, ...append].some((resource) => resource?.httpHeaders !== undefined))
      findings.error(path, "has HTTP headers, which spec 2.2 does not know");
    if (contents?.source === undefined && append.length === 0)
      findings.error(path, "has no contents of its own, which spec 2.2 cannot say");
    hash(contents, pathTo(path, "contents"));
    for (const [k, resource] of append.entries()) hash(resource, pathTo(pathTo(path, "append"), k));
  }
}

/** Spec 2.2 does not distinguish an empty text from none, or false from unset. */
const set = (text: string | undefined): string | undefined => (text === "" ? undefined : text);
const yes = (value: boolean | undefined): boolean | undefined => (value === true ? true : undefined);

const referenceOf = ({ source, verification }: Resource): Reference2 =>
  present<Reference2>({ source: set(source), verification });

const ownerOf = (owner: Owner | undefined): Owner2 | undefined =>
  owner === undefined ? undefined : present<Owner2>({ id: owner.id, name: set(owner.name) });

type AllOptional<T> = { readonly [K in keyof T]-?: T[K] | undefined };

/** A path belongs to the longest file system whose mount point is its prefix. */
function nodeOf(node: Node, mounts: readonly string[]): AllOptional<Node2> {
  let mount = "";
  for (const one of mounts) if (node.path.startsWith(one) && one.length > mount.length) mount = one;
  return {
    filesystem: mount === "" ? "root" : mount,
    path: set(node.path.slice(mount.length)),
    group: ownerOf(node.group),
    overwrite: node.overwrite,
    user: ownerOf(node.user),
  };
}

/** One entry for the contents and one for each text that is appended. */
function filesOf(file: File, mounts: readonly string[]): readonly File2[] {
  const node = { ...nodeOf(file, mounts), overwrite: file.overwrite ?? false };
  const entry = (resource: Resource, appends: boolean): File2 =>
    present<File2>({
      ...node,
      ...(appends ? { overwrite: false } : {}),
      append: appends ? true : undefined,
      contents: undefinedIfEmpty(
        present<NonNullable<File2["contents"]>>({
          compression: set(resource.compression),
          source: set(resource.source),
          verification: resource.verification,
        }),
      ),
      mode: file.mode,
    });
  return [
    ...(file.contents?.source === undefined ? [] : [entry(file.contents, false)]),
    ...(file.append ?? []).map((resource) => entry(resource, true)),
  ];
}

const unitOf = ({ contents, dropins, enabled, mask, name }: Unit): Unit2 =>
  present<Unit2>({
    name: set(name),
    contents: set(contents),
    dropins: dropins?.map((dropin: Dropin) =>
      present<Dropin2>({ name: set(dropin.name), contents: set(dropin.contents) }),
    ),
    enable: undefined,
    enabled,
    mask: yes(mask),
  });

const groupOf = ({ gid, name, passwordHash, system }: PasswdGroup): Group2 =>
  present<Group2>({ name: set(name), gid, passwordHash: set(passwordHash), system: yes(system) });

const userOf = (user: PasswdUser): User2 =>
  present<User2>({
    name: set(user.name),
    create: undefined,
    gecos: set(user.gecos),
    groups: user.groups,
    homeDir: set(user.homeDir),
    noCreateHome: yes(user.noCreateHome),
    noLogInit: yes(user.noLogInit),
    noUserGroup: yes(user.noUserGroup),
    passwordHash: user.passwordHash,
    primaryGroup: set(user.primaryGroup),
    shell: set(user.shell),
    sshAuthorizedKeys: user.sshAuthorizedKeys,
    system: yes(user.system),
    uid: user.uid,
  });
