import { fileExtension } from "./clean-path.ts";
import { parseUnit } from "./parse-unit.ts";
import { parseUrl } from "./parse-url.ts";
import { type Findings, pathTo } from "./problem.ts";
import type {
  Directory2,
  Disk2,
  File2,
  Filesystem2,
  Ignition2Config,
  Minor2,
  Node2,
  Owner2,
  Reference2,
} from "./spec-2.ts";
import {
  byteLength,
  guidPattern,
  labelLimits,
  mostPartitions,
  overlapping,
  problemOfHash,
  problemOfUrl,
  raidLevels,
  raidLevelsWithoutSpares,
  unitSuffixes,
} from "./validate-3.ts";

/**
 * Validates a spec 2 config by the rules of its own version: what the reference refuses is an error, what it notes is a
 * warning. Source of the rules: coreos/ignition config/v2_N/types (spec2x).
 */
export function validate2(config: Ignition2Config, minor: Minor2, findings: Findings): void {
  const check = new Check(minor, findings);
  check.references(config);
  check.passwd(config);
  check.storage(config);
  check.units(config);
}

class Check {
  readonly #minor: Minor2;
  readonly #findings: Findings;
  readonly #schemes: readonly string[];

  constructor(minor: Minor2, findings: Findings) {
    this.#minor = minor;
    this.#findings = findings;
    this.#schemes = ["data", "http", "https", "oem", ...(minor >= 1 ? ["tftp", "s3"] : [])];
  }

  #error(path: string, reason: string | undefined, remedy?: string): void {
    if (reason !== undefined) this.#findings.error(path, reason, remedy);
  }

  #absolute(path: string, value: string | undefined): void {
    if (!(value ?? "").startsWith("/")) this.#error(path, "must be an absolute path");
  }

  #reference(reference: Reference2 | undefined, path: string): void {
    const { source, verification } = reference ?? {};
    if (source !== undefined) {
      // 2.0 validates the source as serialized again by a URL library.
      const text = this.#minor === 0 ? parseUrl(source)?.text : source;
      if (text !== "")
        this.#error(pathTo(path, "source"), text === undefined ? "is not a URL" : problemOfUrl(text, this.#schemes));
    }
    if (verification?.hash !== undefined)
      this.#error(pathTo(path, "verification.hash"), problemOfHash(verification.hash, { sha512: 128 }));
  }

  references({ ignition }: Ignition2Config): void {
    for (const [i, reference] of (ignition?.config?.append ?? []).entries())
      this.#reference(reference, pathTo("ignition.config.append", i));
    this.#reference(ignition?.config?.replace, "ignition.config.replace");
    for (const [i, reference] of (ignition?.security?.tls?.certificateAuthorities ?? []).entries())
      this.#reference(reference, pathTo("ignition.security.tls.certificateAuthorities", i));
  }

  passwd({ passwd }: Ignition2Config): void {
    for (const [i, user] of (passwd?.users ?? []).entries()) {
      if (user.create === undefined) continue;
      const path = pathTo("passwd.users", i);
      this.#findings.warning(pathTo(path, "create"), "is deprecated", "set its fields on the user");
      const { name: _name, create: _create, passwordHash: _hash, sshAuthorizedKeys: _keys, ...rest } = user;
      for (const [field, value] of Object.entries(rest))
        if (!Array.isArray(value) || value.length > 0) this.#error(pathTo(path, field), "stands beside create");
    }
  }

  storage({ storage }: Ignition2Config): void {
    const { directories = [], disks = [], files = [], filesystems = [], links = [], raid = [] } = storage ?? {};
    for (const [i, disk] of disks.entries()) this.#disk(disk, pathTo("storage.disks", i));
    for (const [i, { level = "", spares = 0, devices = [] }] of raid.entries()) {
      const path = pathTo("storage.raid", i);
      if (!raidLevels.includes(level))
        this.#error(pathTo(path, "level"), `${JSON.stringify(level)} is not a RAID level`);
      else if (raidLevelsWithoutSpares.includes(level) && spares !== 0)
        this.#error(pathTo(path, "level"), "has no spares");
      for (const [k, device] of devices.entries()) this.#absolute(pathTo(pathTo(path, "devices"), k), device);
    }
    for (const [i, filesystem] of filesystems.entries()) this.#filesystem(filesystem, pathTo("storage.filesystems", i));
    for (const [i, file] of files.entries()) this.#file(file, pathTo("storage.files", i));
    for (const [i, directory] of directories.entries()) this.#directory(directory, pathTo("storage.directories", i));
    for (const [i, link] of links.entries()) this.#node(link, pathTo("storage.links", i));
    const known = new Set(["root", ...filesystems.map(({ name }) => name ?? "")]);
    for (const [kind, nodes] of [
      ["files", files],
      ["directories", directories],
      ["links", links],
    ] as const) {
      for (const [i, { filesystem = "" }] of nodes.entries()) {
        if (filesystem !== "" && !known.has(filesystem))
          this.#findings.warning(
            pathTo(pathTo(`storage.${kind}`, i), "filesystem"),
            `${filesystem} is not a file system of this config`,
          );
      }
    }
  }

  #disk(disk: Disk2, path: string): void {
    const partitions = disk.partitions ?? [];
    if (disk.device === undefined) this.#error(pathTo(path, "device"), "must not be empty");
    else this.#absolute(pathTo(path, "device"), disk.device);
    const numbers = partitions.flatMap(({ number }) => (number === undefined ? [] : [number]));
    if (new Set(numbers).size < numbers.length) this.#error(pathTo(path, "partitions"), "have a number twice");
    const spans = partitions.map(({ start = 0, size = 0 }) => ({ start, size }));
    if (partitions.length > mostPartitions)
      this.#error(pathTo(path, "partitions"), `are ${partitions.length}; a disk has at most ${mostPartitions}`);
    else if (overlapping(spans, partitions) !== undefined) this.#error(pathTo(path, "partitions"), "overlap");
    if (spans.some(({ start }) => start % 2048 !== 0))
      this.#error(pathTo(path, "partitions"), "do not start at multiples of 2048 sectors");
    for (const [i, { guid = "", label = "", typeGuid = "" }] of partitions.entries()) {
      const where = pathTo(pathTo(path, "partitions"), i);
      if (byteLength(label) > 36) this.#error(pathTo(where, "label"), "is longer than 36 bytes");
      else if (label.includes(":")) this.#findings.warning(pathTo(where, "label"), "contains a colon");
      for (const [name, value] of [
        ["guid", guid],
        ["typeGuid", typeGuid],
      ] as const)
        if (!guidPattern.test(value)) this.#error(pathTo(where, name), "is not a GUID");
    }
  }

  #filesystem({ path: mountPoint, mount }: Filesystem2, path: string): void {
    if (mount === undefined && mountPoint === undefined) this.#error(path, "needs a mount or a path");
    if (mountPoint !== undefined) this.#absolute(pathTo(path, "path"), mountPoint);
    if (mount === undefined) return;
    const where = pathTo(path, "mount");
    if (mountPoint !== undefined) this.#error(path, "has both a mount and a path");
    if (mount.create !== undefined) {
      this.#findings.warning(pathTo(where, "create"), "is deprecated");
      if (mount.wipeFilesystem === true || (mount.options ?? []).length > 0)
        this.#error(pathTo(where, "create"), "cannot be combined with wipeFilesystem or options");
    }
    this.#absolute(pathTo(where, "device"), mount.device);
    const formats = this.#minor === 0 ? ["ext4", "btrfs", "xfs"] : ["ext4", "btrfs", "xfs", "swap", "vfat"];
    if (!formats.includes(mount.format ?? ""))
      this.#error(
        pathTo(where, "format"),
        `${JSON.stringify(mount.format ?? "")} is not a file system of spec 2.${this.#minor}`,
      );
    const limit = labelLimits[mount.format ?? ""];
    if (limit !== undefined && mount.label !== undefined && byteLength(mount.label) > limit)
      this.#error(pathTo(where, "label"), `is longer than ${limit} bytes`);
  }

  #node(node: Node2, path: string): void {
    if (node.filesystem === undefined) this.#error(pathTo(path, "filesystem"), "must not be empty", "write root");
    this.#absolute(pathTo(path, "path"), node.path);
    const owner = (value: Owner2 | undefined, name: string) => {
      if (value?.id !== undefined && value.name !== undefined)
        this.#error(pathTo(path, name), "has both an id and a name", "keep one of them");
    };
    owner(node.user, "user");
    owner(node.group, "group");
  }

  #mode(mode: number | undefined, path: string): void {
    if (mode !== undefined && (mode < 0 || mode > 0o7777))
      this.#error(pathTo(path, "mode"), `${mode} is not a file mode`, "write the octal mode in decimal: 0644 is 420");
  }

  #file(file: File2, path: string): void {
    this.#node(file, path);
    this.#mode(file.mode, path);
    if (file.overwrite === true && file.append === true) this.#error(path, "cannot both append and overwrite");
    const compression = file.contents?.compression;
    if (compression !== undefined && compression !== "gzip")
      this.#error(
        pathTo(path, "contents.compression"),
        `${JSON.stringify(compression)} is not known`,
        "use gzip, or leave it out",
      );
    this.#reference(file.contents, pathTo(path, "contents"));
  }

  #directory(directory: Directory2, path: string): void {
    this.#node(directory, path);
    this.#mode(directory.mode, path);
  }

  units({ networkd, systemd }: Ignition2Config): void {
    const contentsOf = (contents: string | undefined, path: string) => {
      const parsed = parseUnit(contents ?? "");
      if (parsed.verdict === "invalid") this.#error(pathTo(path, "contents"), parsed.reason);
      return parsed;
    };
    for (const [i, unit] of (systemd?.units ?? []).entries()) {
      const path = pathTo("systemd.units", i);
      if (!unitSuffixes.includes(fileExtension(unit.name ?? "")))
        this.#error(pathTo(path, "name"), "must end in the type of a unit");
      const parsed = contentsOf(unit.contents, path);
      if (
        (unit.enable === true || unit.enabled === true) &&
        unit.contents !== undefined &&
        parsed.verdict === "parsed" &&
        !parsed.sections.has("Install")
      ) {
        this.#findings.warning(
          pathTo(path, "contents"),
          `${unit.name ?? ""} is enabled and has no [Install] section, so enabling it has no effect`,
        );
      }
      for (const [k, dropin] of (unit.dropins ?? []).entries()) {
        const where = pathTo(pathTo(path, "dropins"), k);
        contentsOf(dropin.contents, where);
        if (fileExtension(dropin.name ?? "") !== ".conf") this.#error(pathTo(where, "name"), "must end in .conf");
      }
    }
    for (const [i, unit] of (networkd?.units ?? []).entries()) {
      const path = pathTo("networkd.units", i);
      contentsOf(unit.contents, path);
      if (![".link", ".netdev", ".network"].includes(fileExtension(unit.name ?? "")))
        this.#error(pathTo(path, "name"), "must end in .link, .netdev or .network");
      for (const [k, dropin] of (unit.dropins ?? []).entries()) {
        const where = pathTo(pathTo(path, "dropins"), k);
        contentsOf(dropin.contents, where);
        if (fileExtension(dropin.name ?? "") !== ".conf") this.#error(pathTo(where, "name"), "must end in .conf");
      }
    }
  }
}
