import { cleanPath, fileExtension, joinPath, prefixFinder } from "./clean-path.ts";
import { parseDataUrl } from "./data-url.ts";
import { parseUnit } from "./parse-unit.ts";
import { parseUrl } from "./parse-url.ts";
import { type Findings, pathTo } from "./problem.ts";
import { type Shape, isRecord } from "./shape.ts";
import { type Minor3, shapesOf3 } from "./spec-3.ts";
import type {
  Clevis,
  Disk,
  Filesystem,
  IgnitionConfig,
  Luks,
  Node,
  Owner,
  Partition,
  Raid,
  Resource,
  Storage,
  Unit,
} from "./types.ts";
import { own } from "../api/schema/own.ts";

/**
 * Validates a config by the rules of one minor version: what the reference refuses is an error, what it notes is a
 * warning. Source of the rules: coreos/ignition config/v3_N/types and config/validate (main).
 */
export function validate3(config: IgnitionConfig, minor: Minor3, findings: Findings): void {
  noDuplicates(config, shapesOf3[minor], "", findings);
  const check = new Check(minor, findings);
  const { ignition, passwd: _passwd, storage, systemd } = config;
  check.ignitionSection(ignition);
  check.storage(storage ?? {}, "storage");
  const units = systemd?.units ?? [];
  for (const [i, unit] of units.entries()) check.unit(unit, pathTo("systemd.units", i));
  check.instances(units);
  check.pathsOfUnits(config);
}

/** Keys are unique in a keyed list and across lists that share a group. */
function noDuplicates(value: unknown, shape: Shape, path: string, findings: Findings): void {
  if (shape.kind === "list") {
    if (Array.isArray(value) && shape.of.kind !== "string")
      for (const [i, item] of value.entries()) noDuplicates(item, shape.of, pathTo(path, i), findings);
    return;
  }
  if (shape.kind !== "struct" || !isRecord(value)) return;
  const seen = new Map<string, Set<string>>();
  for (const [name, field] of shape.fields) {
    const member = value[name];
    if (member === undefined) continue;
    if (field.kind === "list" && field.merge.by === "key" && Array.isArray(member)) {
      const group = field.merge.group ?? name;
      const keys = seen.get(group) ?? new Set();
      seen.set(group, keys);
      for (const [i, item] of member.entries()) {
        const key = field.merge.keyOf(item);
        if (keys.has(key))
          findings.error(
            pathTo(pathTo(path, name), i),
            `is a second entry for ${JSON.stringify(key)}`,
            "keep one of them",
          );
        keys.add(key);
      }
    }
    noDuplicates(member, field, pathTo(path, name), findings);
  }
}

export const isEmptyField = (text: string | undefined): boolean => text === undefined || text === "";
/** Length in UTF-8 bytes. */
export const byteLength = (text: string): number => {
  let length = 0;
  for (const char of text) {
    const point = char.codePointAt(0) ?? 0;
    length += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  }
  return length;
};

export const unitSuffixes = [
  ".service",
  ".socket",
  ".device",
  ".mount",
  ".automount",
  ".swap",
  ".target",
  ".path",
  ".timer",
  ".snapshot",
  ".slice",
  ".scope",
];
export const labelLimits: Readonly<Record<string, number>> = { ext4: 16, btrfs: 256, xfs: 12, swap: 15, vfat: 11 };
export const guidPattern = /^(|[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12})$/;
export const raidLevels = [
  "linear",
  "raid0",
  "0",
  "stripe",
  "raid1",
  "1",
  "mirror",
  "raid4",
  "4",
  "raid5",
  "5",
  "raid6",
  "6",
  "raid10",
  "10",
];
export const raidLevelsWithoutSpares = ["linear", "raid0", "0", "stripe"];

/** Why a verification hash is invalid; `undefined` if it is valid. */
export function problemOfHash(hash: string, functions: Readonly<Record<string, number>>): string | undefined {
  const dash = hash.indexOf("-");
  if (dash < 0) return "must be <function>-<hex digest>";
  const digits = own(functions, hash.slice(0, dash));
  if (digits === undefined) return `must use ${Object.keys(functions).join(" or ")}`;
  return byteLength(hash.slice(dash + 1)) === digits
    ? undefined
    : `must have ${digits} hexadecimal digits after the dash`;
}

/** An S3 object version, when named, must not be empty. */
const emptyVersionId = (query: string): boolean => {
  for (const pair of query.split("&")) {
    const [name = "", value = ""] = pair.split(/=(.*)/s, 2);
    if (name === "versionId" && !pair.includes(";")) return value === "";
  }
  return false;
};

/** Why a source cannot be fetched; `undefined` when it can. */
export function problemOfUrl(url: string, schemes: readonly string[]): string | undefined {
  const parsed = parseUrl(url);
  if (parsed === undefined) return "is not a URL";
  const { scheme, opaque, query } = parsed;
  if (!schemes.includes(scheme)) return `has the scheme ${JSON.stringify(scheme)}; possible are ${schemes.join(", ")}`;
  if (scheme === "data") {
    const data = parseDataUrl(url);
    return data.verdict === "invalid" ? data.reason : undefined;
  }
  if (scheme === "arn") {
    const parts = `arn:${opaque}`.split(":");
    const resource = parts.slice(5).join(":");
    if (parts.length < 6 || parts[2] !== "s3" || !opaque.includes("/")) return "is not an ARN of an S3 object";
    if (resource.startsWith("accesspoint/") && opaque.split("/").length < 3) return "is not an ARN of an S3 object";
  }
  return (scheme === "s3" || scheme === "arn") && emptyVersionId(query) ? "has an empty versionId" : undefined;
}

/**
 * Resources whose data URL is valid, which is independent of the version: a config of a mebibyte is decoded once while
 * it is downgraded step by step. Objects must not be modified after they were passed in.
 */
const soundData = new WeakSet<Resource>();

class Check {
  readonly #minor: Minor3;
  readonly #findings: Findings;
  readonly #schemes: readonly string[];

  constructor(minor: Minor3, findings: Findings) {
    this.#minor = minor;
    this.#findings = findings;
    this.#schemes = [
      "data",
      "http",
      "https",
      "tftp",
      "s3",
      ...(minor >= 2 ? ["gs"] : []),
      ...(minor >= 4 ? ["arn"] : []),
    ];
  }

  #error(path: string, reason: string | undefined, remedy?: string): void {
    if (reason !== undefined) this.#findings.error(path, reason, remedy);
  }

  #absolute(path: string, value: string): void {
    if (value === "") this.#error(path, "must not be empty");
    else if (!value.startsWith("/")) this.#error(path, "must be an absolute path");
    else if (cleanPath(value) !== value) this.#error(path, "must be a clean path", `write ${cleanPath(value)}`);
  }

  ignitionSection(section: IgnitionConfig["ignition"]): void {
    const { config, proxy, security } = section;
    for (const [i, resource] of (config?.merge ?? []).entries()) {
      const path = pathTo("ignition.config.merge", i);
      if (this.#minor >= 1 && isEmptyField(resource.source)) this.#error(pathTo(path, "source"), "must not be empty");
      this.#resource(resource, path);
    }
    this.#resource(config?.replace, "ignition.config.replace");
    for (const [i, resource] of (security?.tls?.certificateAuthorities ?? []).entries()) {
      const path = pathTo("ignition.security.tls.certificateAuthorities", i);
      if (isEmptyField(resource.source)) this.#error(pathTo(path, "source"), "must not be empty");
      this.#resource(resource, path);
    }
    for (const name of ["httpProxy", "httpsProxy"] as const) {
      const url = proxy?.[name];
      if (url === undefined) continue;
      const path = pathTo("ignition.proxy", name);
      const parsed = parseUrl(url);
      if (parsed === undefined) this.#error(path, "is not a URL");
      else if (parsed.scheme !== "http" && parsed.scheme !== "https")
        this.#error(path, "must have the scheme http or https");
      else if (parsed.scheme === "http" && name === "httpsProxy") this.#findings.warning(path, "is not encrypted");
    }
  }

  #resource(resource: Resource | undefined, path: string): void {
    if (resource === undefined) return;
    const { compression, httpHeaders, source, verification } = resource;
    if (compression !== undefined && compression !== "" && compression !== "gzip")
      this.#error(
        pathTo(path, "compression"),
        `${JSON.stringify(compression)} is not known`,
        "use gzip, or leave it out",
      );
    const hash = verification?.hash;
    if (hash !== undefined) {
      // Before 3.1 this was not checked for references to configs.
      if (source === undefined && (this.#minor >= 1 || path.startsWith("storage.")))
        this.#error(pathTo(path, "verification.hash"), "stands without a source");
      this.#error(
        pathTo(path, "verification.hash"),
        problemOfHash(hash, this.#minor === 0 ? { sha512: 128 } : { sha512: 128, sha256: 64 }),
      );
    }
    if (!soundData.has(resource)) {
      const problem = isEmptyField(source) ? undefined : problemOfUrl(source ?? "", this.#schemes);
      this.#error(pathTo(path, "source"), problem);
      if (problem === undefined && source?.startsWith("data:") === true) soundData.add(resource);
    }
    for (const [i, { name, value }] of (httpHeaders ?? []).entries()) {
      if (name === "") this.#error(pathTo(pathTo(pathTo(path, "httpHeaders"), i), "name"), "must not be empty");
      if (value === "") this.#error(pathTo(pathTo(pathTo(path, "httpHeaders"), i), "value"), "must not be empty");
    }
    if ((httpHeaders ?? []).length > 0) {
      const scheme = isEmptyField(source) ? undefined : parseUrl(source ?? "")?.scheme;
      if (scheme !== "http" && scheme !== "https")
        this.#error(pathTo(path, "httpHeaders"), "go with http and https sources only");
    }
  }

  storage(storage: Storage, path: string): void {
    const { directories = [], disks = [], files = [], filesystems = [], links = [], luks = [], raid = [] } = storage;
    for (const [i, disk] of disks.entries()) this.#disk(disk, pathTo(`${path}.disks`, i));
    for (const [i, array] of raid.entries()) this.#raid(array, pathTo(`${path}.raid`, i));
    for (const [i, volume] of luks.entries()) this.#luks(volume, pathTo(`${path}.luks`, i));
    const diskOf = new Map(disks.map((disk) => [disk.device, disk]));
    for (const [i, filesystem] of filesystems.entries()) {
      const where = pathTo(`${path}.filesystems`, i);
      this.#filesystem(filesystem, where);
      const disk = diskOf.get(filesystem.device);
      if (disk === undefined) continue;
      if ((disk.partitions ?? []).length > 0)
        this.#findings.warning(pathTo(where, "device"), "the disk's partitions are overwritten by this file system");
      else if (filesystem.wipeFilesystem !== true && disk.wipeTable === true)
        this.#findings.warning(pathTo(where, "device"), "wiping the disk's table wipes this file system too");
    }
    for (const [i, directory] of directories.entries()) {
      const where = pathTo(`${path}.directories`, i);
      this.#node(directory, where);
      this.#mode(directory.mode, where);
    }
    for (const [i, file] of files.entries()) {
      const where = pathTo(`${path}.files`, i);
      this.#node(file, where);
      this.#mode(file.mode, where);
      if (file.overwrite === true && file.contents?.source === undefined)
        this.#error(
          pathTo(where, "overwrite"),
          "is true, and there is no contents.source to write",
          "give contents.source (data:, for an empty file)",
        );
      this.#resource(file.contents, pathTo(where, "contents"));
      for (const [k, resource] of (file.append ?? []).entries()) this.#resource(resource, pathTo(`${where}.append`, k));
    }
    const folders = new Set(directories.map((directory) => directory.path));
    for (const [i, link] of links.entries()) {
      const where = pathTo(`${path}.links`, i);
      this.#node(link, where);
      if (this.#minor >= 3 && isEmptyField(link.target)) {
        this.#error(pathTo(where, "target"), "must not be empty");
        continue;
      }
      if (link.hard !== true) continue;
      const target = (link.target ?? "").startsWith("/")
        ? cleanPath(link.target ?? "")
        : joinPath(link.path, link.target ?? "");
      if (folders.has(target)) this.#error(where, "is a hard link to a directory");
      if (link.user !== undefined || link.group !== undefined)
        this.#findings.warning(where, "is a hard link and has its target's owner");
    }
    // Nothing may be below a link of the same config.
    if (links.length === 0) return;
    const linkAbove = prefixFinder(links.map(({ path: target }) => `${target}/`));
    for (const [kind, nodes] of [
      ["directories", directories],
      ["files", files],
      ["links", links],
    ] as const) {
      for (const [i, node] of nodes.entries())
        if (linkAbove(node.path) !== undefined)
          this.#error(pathTo(`${path}.${kind}`, i), "lies below a link of this config");
    }
  }

  #node(node: Node, path: string): void {
    this.#absolute(pathTo(path, "path"), node.path);
    const owner = (value: Owner | undefined, name: string) => {
      if (value?.id !== undefined && !isEmptyField(value.name))
        this.#error(pathTo(path, name), "has both an id and a name", "keep one of them");
    };
    owner(node.user, "user");
    owner(node.group, "group");
  }

  #mode(mode: number | undefined, path: string): void {
    if (mode === undefined) return;
    if (mode < 0 || mode > 0o7777)
      this.#error(pathTo(path, "mode"), `${mode} is not a file mode`, "write the octal mode in decimal: 0644 is 420");
    else if ((mode & 0o7000) !== 0)
      this.#findings.warning(pathTo(path, "mode"), "sets special bits (setuid, setgid or sticky)");
  }

  #disk(disk: Disk, path: string): void {
    const partitions = disk.partitions ?? [];
    for (const [i, partition] of partitions.entries()) this.#partition(partition, pathTo(`${path}.partitions`, i));
    if (disk.device === "") return this.#error(pathTo(path, "device"), "must not be empty");
    this.#absolute(pathTo(path, "device"), disk.device);
    const numbers = new Set<number>();
    const labels = new Set<string>();
    for (const [i, { number, label }] of partitions.entries()) {
      const where = pathTo(`${path}.partitions`, i);
      if (number !== undefined && numbers.has(number)) this.#error(where, `is a second partition number ${number}`);
      if (number !== undefined) numbers.add(number);
      if (label !== undefined && labels.has(label)) this.#error(where, `is a second partition labelled ${label}`);
      if (label !== undefined) labels.add(label);
    }
    if (
      partitions.some(({ number }) => number === undefined) &&
      partitions.some(({ shouldExist }) => shouldExist === false)
    ) {
      this.#error(`${path}.partitions`, "mix partitions without a number with ones that should not exist");
    }
    if (partitions.length > mostPartitions)
      return this.#error(pathTo(path, "partitions"), `are ${partitions.length}; a disk has at most ${mostPartitions}`);
    const overlap = overlapping(
      partitions.map(({ startMiB, sizeMiB }) => ({ start: startMiB, size: sizeMiB })),
      partitions,
    );
    if (overlap !== undefined) this.#error(pathTo(`${path}.partitions`, overlap), "overlaps another partition");
  }

  #partition(partition: Partition, path: string): void {
    const { guid, label, number, shouldExist, sizeMiB, startMiB, typeGuid } = partition;
    if (
      shouldExist === false &&
      (label !== undefined ||
        !isEmptyField(typeGuid) ||
        !isEmptyField(guid) ||
        startMiB !== undefined ||
        sizeMiB !== undefined)
    ) {
      this.#error(path, "should not exist and yet has properties");
    }
    if (number === undefined && label === undefined) this.#error(path, "needs a number or a label");
    if (label !== undefined && byteLength(label) > 36) this.#error(pathTo(path, "label"), "is longer than 36 bytes");
    else if (label?.includes(":")) this.#error(pathTo(path, "label"), "must not contain a colon");
    for (const [name, value] of [
      ["guid", guid],
      ["typeGuid", typeGuid],
    ] as const)
      if (value !== undefined && !guidPattern.test(value)) this.#error(pathTo(path, name), "is not a GUID");
  }

  #filesystem(filesystem: Filesystem, path: string): void {
    const { device, format, label, mountOptions, options, path: mount, uuid, wipeFilesystem } = filesystem;
    if (!isEmptyField(mount)) this.#absolute(pathTo(path, "path"), mount ?? "");
    this.#absolute(pathTo(path, "device"), device);
    if (isEmptyField(format)) {
      const others =
        !isEmptyField(mount) ||
        !isEmptyField(label) ||
        !isEmptyField(uuid) ||
        wipeFilesystem === true ||
        (mountOptions ?? []).length > 0 ||
        (options ?? []).length > 0;
      if (others) this.#error(pathTo(path, "format"), "must be given with the other fields");
    } else if (
      !["ext4", "btrfs", "xfs", "swap", "vfat", ...(this.#minor >= 3 ? ["none"] : [])].includes(format ?? "")
    ) {
      this.#error(pathTo(path, "format"), `${JSON.stringify(format)} is not a file system of spec 3.${this.#minor}`);
    }
    const limit = labelLimits[format ?? ""];
    if (limit !== undefined && label !== undefined && byteLength(label) > limit)
      this.#error(pathTo(path, "label"), `is longer than ${limit} bytes`);
  }

  #raid(raid: Raid, path: string): void {
    const { devices = [], level, spares } = raid;
    if (isEmptyField(level)) this.#error(pathTo(path, "level"), "must not be empty");
    else if (!raidLevels.includes(level ?? ""))
      this.#error(pathTo(path, "level"), `${JSON.stringify(level)} is not a RAID level`);
    else if (raidLevelsWithoutSpares.includes(level ?? "") && (spares ?? 0) !== 0)
      this.#error(pathTo(path, "level"), "has no spares");
    if (devices.length === 0) this.#error(pathTo(path, "devices"), "must not be empty");
    for (const [i, device] of devices.entries()) this.#absolute(pathTo(`${path}.devices`, i), device);
  }

  #luks(luks: Luks, path: string): void {
    const { cex, clevis, device, keyFile, label, name } = luks;
    if (name.includes("/")) this.#error(pathTo(path, "name"), "must not contain a slash");
    if (label !== undefined && byteLength(label) > 47) this.#error(pathTo(path, "label"), "is longer than 47 bytes");
    this.#absolute(pathTo(path, "device"), device ?? "");
    this.#clevis(clevis ?? {}, pathTo(path, "clevis"));
    this.#resource(keyFile, pathTo(path, "keyFile"));
    if (cex?.enabled !== true) return;
    const byClevis =
      !isEmptyField(clevis?.custom?.pin) ||
      (clevis?.tang ?? []).length > 0 ||
      clevis?.tpm2 === true ||
      (clevis?.threshold ?? 0) !== 0;
    if (byClevis) this.#error(pathTo(path, "cex"), "cannot be combined with clevis");
    if (!isEmptyField(keyFile?.source)) this.#error(pathTo(path, "cex"), "cannot be combined with a key file");
  }

  #clevis(clevis: Clevis, path: string): void {
    const { custom, tang = [], threshold, tpm2 } = clevis;
    const hasCustom = this.#minor === 2 ? custom !== undefined : !isEmptyField(custom?.pin);
    if (hasCustom && (tang.length > 0 || tpm2 === true || (threshold ?? 0) !== 0))
      this.#error(path, "cannot combine a custom pin with other pins");
    const idle =
      isEmptyField(custom?.pin) && isEmptyField(custom?.config) && (this.#minor === 2 || custom?.needsNetwork !== true);
    if (custom !== undefined && !idle) {
      if (!["tpm2", "tang", "sss"].includes(custom.pin ?? ""))
        this.#error(`${path}.custom.pin`, "must be tpm2, tang or sss");
      if (isEmptyField(custom.config)) this.#error(`${path}.custom.config`, "must not be empty");
    }
    for (const [i, { advertisement, thumbprint, url }] of tang.entries()) {
      const where = pathTo(`${path}.tang`, i);
      const scheme = parseUrl(url ?? "")?.scheme;
      if (scheme !== "http" && scheme !== "https") this.#error(pathTo(where, "url"), "must be an http or https URL");
      if (isEmptyField(thumbprint)) this.#error(pathTo(where, "thumbprint"), "must not be empty");
      if (!isEmptyField(advertisement) && !isJson(advertisement ?? ""))
        this.#error(pathTo(where, "advertisement"), "is not JSON");
    }
  }

  unit(unit: Unit, path: string): void {
    if (!unitSuffixes.includes(fileExtension(unit.name)))
      this.#error(
        pathTo(path, "name"),
        `must end in the type of a unit`,
        `end it in ${unitSuffixes.slice(0, 3).join(", ")}, …`,
      );
    const parsed = parseUnit(unit.contents ?? "");
    if (parsed.verdict === "invalid") this.#error(pathTo(path, "contents"), parsed.reason);
    else if (unit.enabled === true && !isEmptyField(unit.contents) && !parsed.sections.has("Install"))
      this.#findings.warning(
        pathTo(path, "contents"),
        `${unit.name} is enabled and has no [Install] section, so enabling it has no effect`,
      );
    for (const [i, dropin] of (unit.dropins ?? []).entries()) {
      const where = pathTo(`${path}.dropins`, i);
      const contents = parseUnit(dropin.contents ?? "");
      if (contents.verdict === "invalid") this.#error(pathTo(where, "contents"), contents.reason);
      if (fileExtension(dropin.name) !== ".conf") this.#error(pathTo(where, "name"), "must end in .conf");
    }
  }

  instances(units: readonly Unit[]): void {
    const byName = new Map(units.map((unit) => [unit.name, unit]));
    for (const [i, unit] of units.entries()) {
      const template = unit.enabled === true ? templateOf(unit.name) : undefined;
      const contents = template === undefined ? undefined : byName.get(`${template}@.service`)?.contents;
      if (contents === undefined || contents === "") continue;
      const parsed = parseUnit(contents);
      if (parsed.verdict === "parsed" && !parsed.sections.has("Install")) {
        this.#findings.warning(
          pathTo(pathTo("systemd.units", i), "contents"),
          `${template}@.service has no [Install] section, so enabling ${unit.name} has no effect`,
        );
      }
    }
  }

  /** Files, folders and links must not have the path of a unit of the same config. */
  pathsOfUnits(config: IgnitionConfig): void {
    const taken = new Set<string>();
    for (const unit of config.systemd?.units ?? []) {
      if (!isEmptyField(unit.contents)) taken.add(`/etc/systemd/system/${unit.name}`);
      for (const dropin of unit.dropins ?? [])
        if (!isEmptyField(dropin.contents)) taken.add(`/etc/systemd/system/${unit.name}.d/${dropin.name}`);
    }
    if (taken.size === 0) return;
    for (const kind of ["files", "directories", "links"] as const) {
      for (const [i, { path }] of (config.storage?.[kind] ?? []).entries()) {
        if (taken.has(path))
          this.#error(
            pathTo(pathTo(`storage.${kind}`, i), "path"),
            "is written by a unit of this config too",
            "give it in one place",
          );
      }
    }
  }
}

/** What stands before the first `@` of a service that has a name behind it, in one pass. */
function templateOf(name: string): string | undefined {
  const at = name.indexOf("@", 1);
  const isInstance = at > 0 && name.endsWith(".service") && name.length - at > "@.service".length;
  return isInstance && !/[\n\r\u2028\u2029]/.test(name) ? name.slice(0, at) : undefined;
}

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

/** Each is compared with each. Source: torvalds/linux include/linux/blkdev.h, DISK_MAX_PARTS (master). */
export const mostPartitions = 256;

/**
 * The index of the first partition that overlaps another. Partitions with a start of 0 or without start or size are
 * placed later and ignored; a size of 0 counts as one unit.
 */
export function overlapping(
  spans: readonly { readonly start: number | undefined; readonly size: number | undefined }[],
  identity: readonly unknown[] = spans,
): number | undefined {
  const endOf = (start: number, size: number) => (size === 0 ? start : start + size - 1);
  const texts = identity.map((one) => JSON.stringify(one));
  for (const [k, p] of spans.entries()) {
    if (p.start === undefined || p.size === undefined || p.start === 0) continue;
    const pEnd = endOf(p.start, p.size);
    for (const [i, o] of spans.entries()) {
      if (o.start === undefined || o.size === undefined || o.start === 0 || i === k || texts[i] === texts[k]) continue;
      const oEnd = endOf(o.start, o.size);
      const startsWithin = p.start >= o.start && p.start <= oEnd;
      const endsWithin = pEnd >= o.start && pEnd <= oEnd;
      if (startsWithin || endsWithin || (p.start < o.start && pEnd > oEnd)) return i;
    }
  }
  return undefined;
}
