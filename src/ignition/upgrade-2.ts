import { cleanPath, joinPath, prefixFinder } from "./clean-path.ts";
import { parseUrl } from "./parse-url.ts";
import { type Findings, pathTo } from "./problem.ts";
import type { Dropin2, Group2, Ignition2Config, Minor2, Node2, Owner2, Reference2, Unit2, User2 } from "./spec-2.ts";
import type {
  Directory,
  Disk,
  Dropin,
  File,
  Filesystem,
  IgnitionConfig,
  Link,
  Node,
  Owner,
  PasswdGroup,
  PasswdUser,
  Raid,
  Resource,
  Unit,
} from "./types.ts";

/** Copies only what is set: the values of `types.ts` never hold `undefined`. */
export function present<T extends object>(fields: { readonly [K in keyof T]: T[K] | undefined }): T {
  const result: Partial<T> = {};
  for (const name in fields) {
    const value = fields[name];
    if (value !== undefined) result[name] = value as T[typeof name];
  }
  return result as T;
}

/** A list, or nothing when it is empty. */
const filled = <T>(list: readonly T[] | undefined): readonly T[] | undefined =>
  list === undefined || list.length === 0 ? undefined : list;
/** A struct, or nothing when no field is set. */
export const undefinedIfEmpty = <T extends object>(value: T): T | undefined =>
  Object.keys(value).length === 0 ? undefined : value;

/**
 * Converts a valid spec 2 config to spec 3.
 *
 * Duplicate files, units and users are folded first, the last one winning. This leaves those lists in reverse order,
 * which the rendered name depends on. Refusals are added to `findings`. Source of the rules:
 * openshift/machine-config-operator pkg/controller/common/helpers.go and coreos/ign-converter translate/v23tov30
 * (main).
 */
export function upgrade2(config: Ignition2Config, minor: Minor2, findings: Findings): IgnitionConfig | undefined {
  const folded = fold(explicit(config, minor), findings);
  if (folded === undefined || !canUpgrade(folded, findings)) return undefined;
  return translated(folded);
}

/** Sets the implied values of 2.0 and 2.1 explicitly. */
function explicit(config: Ignition2Config, minor: Minor2): Ignition2Config {
  if (minor === 2) return config;
  const { ignition, storage } = config;
  const rewritten = (reference: Reference2): Reference2 => ({
    ...reference,
    ...(reference.source === undefined ? {} : { source: parseUrl(reference.source)?.text ?? reference.source }),
  });
  const { files, directories, ...otherStorage } = storage ?? {};
  const owned = (owner: Owner2 | undefined): Owner2 => ({ id: owner?.id ?? 0 });
  const next: Ignition2Config = {
    ...config,
    storage: {
      ...otherStorage,
      ...(directories === undefined
        ? {}
        : { directories: directories.map((directory) => ({ ...directory, mode: directory.mode ?? 0 })) }),
      ...(files === undefined
        ? {}
        : {
            files: files.map((file) => ({
              ...file,
              mode: file.mode ?? 0,
              ...(minor === 0
                ? {
                    user: owned(file.user),
                    group: owned(file.group),
                    ...(file.contents === undefined
                      ? {}
                      : { contents: { ...file.contents, ...rewritten(file.contents) } }),
                  }
                : {}),
            })),
          }),
    },
  };
  if (minor === 1 || ignition?.config === undefined) return next;
  const { append, replace } = ignition.config;
  return {
    ...next,
    ignition: {
      ...ignition,
      config: {
        ...(append === undefined ? {} : { append: append.map(rewritten) }),
        ...(replace === undefined ? {} : { replace: rewritten(replace) }),
      },
    },
  };
}

function fold(config: Ignition2Config, findings: Findings): Ignition2Config | undefined {
  const { passwd, storage, systemd } = config;
  const paths = new Set<string>();
  const files = (storage?.files ?? []).toReversed().filter(({ path = "" }) => !paths.has(path) && paths.add(path));

  const units = new Map<string, Unit2>();
  for (const unit of (systemd?.units ?? []).toReversed()) {
    const name = unit.name ?? "";
    const later = units.get(name);
    if (later === undefined) units.set(name, unit);
    else {
      const dropins: Dropin2[] = [...(later.dropins ?? [])];
      for (const dropin of unit.dropins ?? [])
        if (!dropins.some((one) => one.name === dropin.name)) dropins.push(dropin);
      units.set(name, { ...later, ...(dropins.length === 0 ? {} : { dropins }) });
    }
  }

  const users = passwd?.users ?? [];
  const stranger = users.findIndex(({ name }) => name !== "core");
  if (stranger >= 0) {
    findings.error(
      pathTo(pathTo("passwd.users", stranger), "name"),
      `${users[stranger]?.name ?? ""} is not a user that a spec 2 config may set`,
      "only core is possible",
    );
    return undefined;
  }
  const last = users.at(-1);
  const keys = new Set(users.toReversed().flatMap(({ sshAuthorizedKeys }) => sshAuthorizedKeys ?? []));
  return {
    ...config,
    passwd: { ...passwd, ...(last === undefined ? {} : { users: [{ ...last, sshAuthorizedKeys: [...keys] }] }) },
    storage: { ...storage, files },
    systemd: { units: [...units.values()] },
  };
}

function canUpgrade(config: Ignition2Config, findings: Findings): boolean {
  const { networkd, storage, systemd } = config;
  for (const [i, { partitions = [] }] of (storage?.disks ?? []).entries()) {
    if (partitions.length > 0)
      findings.error(
        pathTo(pathTo("storage.disks", i), "partitions"),
        "cannot be brought from spec 2 to spec 3",
        "write them in spec 3, in MiB",
      );
  }
  if ((networkd?.units ?? []).length > 0)
    findings.error("networkd.units", "do not exist in spec 3", "write them as files");
  for (const [i, { name = "" }] of (storage?.filesystems ?? []).entries()) {
    if (name !== "root")
      findings.error(
        pathTo(pathTo("storage.filesystems", i), "name"),
        `${JSON.stringify(name)} has no known mount point`,
        "write the file system in spec 3",
      );
  }
  const linkBefore = prefixFinder((storage?.links ?? []).map(pathOf));
  const taken = new Set<string>();
  for (const kind of ["files", "directories", "links"] as const) {
    for (const [i, node] of (storage?.[kind] ?? []).entries()) {
      const path = pathOf(node);
      if (taken.has(path)) findings.error(pathTo(pathTo(`storage.${kind}`, i), "path"), `${path} is given twice`);
      taken.add(path);
      // The reference compares text, not path parts: a link /etc/a also bars /etc/ab.
      if ((linkBefore(path) ?? path) !== path)
        findings.error(
          pathTo(pathTo(`storage.${kind}`, i), "path"),
          `${path} starts with the path of a link of this config`,
        );
    }
  }
  for (const [i, { dropins = [] }] of (systemd?.units ?? []).entries()) {
    const names = dropins.map(({ name }) => name);
    if (new Set(names).size < names.length)
      findings.error(pathTo(pathTo("systemd.units", i), "dropins"), "have a name twice");
  }
  return !findings.hasErrors;
}

const pathOf = (node: Node2): string => cleanPath(`/${node.path ?? ""}`);

const resourceOf = (reference: Reference2): Resource =>
  present<Resource>({ source: reference.source ?? "", verification: reference.verification });

function translated(config: Ignition2Config): IgnitionConfig {
  const { ignition, passwd, storage, systemd } = config;
  const references = (list: readonly Reference2[] | undefined) => filled((list ?? []).map(resourceOf));
  const replace = ignition?.config?.replace;
  const authorities = references(ignition?.security?.tls?.certificateAuthorities);
  return present<IgnitionConfig>({
    ignition: present<IgnitionConfig["ignition"]>({
      version: "3.0.0",
      config: undefinedIfEmpty(
        present<NonNullable<IgnitionConfig["ignition"]["config"]>>({
          merge: references(ignition?.config?.append),
          replace: replace === undefined ? undefined : resourceOf(replace),
        }),
      ),
      proxy: undefined,
      security: authorities === undefined ? undefined : { tls: { certificateAuthorities: authorities } },
      timeouts: ignition?.timeouts,
    }),
    kernelArguments: undefined,
    passwd: undefinedIfEmpty(
      present<NonNullable<IgnitionConfig["passwd"]>>({
        groups: filled(passwd?.groups?.map(groupOf)),
        users: filled(passwd?.users?.map(userOf)),
      }),
    ),
    storage: undefinedIfEmpty(
      present<NonNullable<IgnitionConfig["storage"]>>({
        directories: filled(
          storage?.directories?.map((directory) => present<Directory>({ ...nodeOf(directory), mode: directory.mode })),
        ),
        disks: filled(
          storage?.disks?.map(({ device = "", wipeTable }) =>
            present<Disk>({ device, wipeTable, partitions: undefined }),
          ),
        ),
        files: filled(storage?.files?.map(fileOf)),
        filesystems: filled(
          (storage?.filesystems ?? []).flatMap<Filesystem>(({ name }) => (name === "root" ? [] : [{ device: "" }])),
        ),
        links: filled(
          storage?.links?.map((link) => present<Link>({ ...nodeOf(link), hard: link.hard, target: link.target ?? "" })),
        ),
        luks: undefined,
        raid: filled(
          storage?.raid?.map(({ name = "", level = "", devices, options, spares }) =>
            present<Raid>({ name, level, devices: filled(devices), options: filled(options), spares }),
          ),
        ),
      }),
    ),
    systemd: undefinedIfEmpty(
      present<NonNullable<IgnitionConfig["systemd"]>>({ units: filled(systemd?.units?.map(unitOf)) }),
    ),
  });
}

const ownerOf = (owner: Owner2 | undefined): Owner | undefined =>
  undefinedIfEmpty(present<Owner>({ id: owner?.id, name: owner?.name }));

type AllOptional<T> = { readonly [K in keyof T]-?: T[K] | undefined };

const nodeOf = (node: Node2): AllOptional<Node> & { readonly path: string } => ({
  path: joinPath(node.filesystem === "root" ? "/" : "", node.path ?? ""),
  group: ownerOf(node.group),
  overwrite: node.overwrite,
  user: ownerOf(node.user),
});

function fileOf(file: NonNullable<NonNullable<Ignition2Config["storage"]>["files"]>[number]): File {
  const contents = present<Resource>({
    compression: file.contents?.compression,
    source: file.contents?.source ?? "",
    httpHeaders: undefined,
    verification: file.contents?.verification,
  });
  const appends = file.append === true;
  return present<File>({
    ...nodeOf(file),
    overwrite: appends ? false : (file.overwrite ?? true),
    append: appends ? [contents] : undefined,
    contents: appends ? undefined : contents,
    mode: file.mode,
  });
}

const unitOf = (unit: Unit2): Unit =>
  present<Unit>({
    name: unit.name ?? "",
    contents: unit.contents,
    dropins: filled(unit.dropins?.map(({ name = "", contents }) => present<Dropin>({ name, contents }))),
    enabled: unit.enabled ?? (unit.enable === true ? true : undefined),
    mask: unit.mask,
  });

const groupOf = (group: Group2): PasswdGroup =>
  present<PasswdGroup>({
    name: group.name ?? "",
    gid: group.gid,
    passwordHash: group.passwordHash,
    shouldExist: undefined,
    system: group.system,
  });

const userOf = ({ create: _create, name = "", groups, sshAuthorizedKeys, ...rest }: User2): PasswdUser => ({
  ...rest,
  name,
  ...(filled(groups) === undefined ? {} : { groups: groups ?? [] }),
  ...(filled(sshAuthorizedKeys) === undefined ? {} : { sshAuthorizedKeys: sshAuthorizedKeys ?? [] }),
});
