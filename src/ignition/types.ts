/**
 * Ignition spec 3.5, the version that all configs are converted to. Field names and meaning: coreos/ignition
 * config/v3_5/types/schema.go (main).
 *
 * Values of these types are normalised: an absent field is missing, never `undefined` or `null`. A struct without any
 * field set is missing, too, but an empty list stays (the reference distinguishes it from an absent one).
 */
export interface IgnitionConfig {
  readonly ignition: IgnitionSection;
  readonly kernelArguments?: IgnitionKernelArguments;
  readonly passwd?: Passwd;
  readonly storage?: Storage;
  readonly systemd?: Systemd;
}

export interface IgnitionSection {
  readonly version: string;
  readonly config?: { readonly merge?: readonly Resource[]; readonly replace?: Resource };
  readonly proxy?: { readonly httpProxy?: string; readonly httpsProxy?: string; readonly noProxy?: readonly string[] };
  readonly security?: { readonly tls?: { readonly certificateAuthorities?: readonly Resource[] } };
  readonly timeouts?: { readonly httpResponseHeaders?: number; readonly httpTotal?: number };
}

/** A fetched resource: running machines support `data:` sources only. */
export interface Resource {
  readonly source?: string;
  /** "gzip", or "" for none. */
  readonly compression?: string;
  readonly httpHeaders?: readonly { readonly name: string; readonly value?: string }[];
  readonly verification?: { readonly hash?: string };
}

export interface IgnitionKernelArguments {
  readonly shouldExist?: readonly string[];
  readonly shouldNotExist?: readonly string[];
}

export interface Passwd {
  readonly groups?: readonly PasswdGroup[];
  readonly users?: readonly PasswdUser[];
}

export interface PasswdGroup {
  readonly name: string;
  readonly gid?: number;
  readonly passwordHash?: string;
  readonly shouldExist?: boolean;
  readonly system?: boolean;
}

export interface PasswdUser {
  readonly name: string;
  readonly gecos?: string;
  readonly groups?: readonly string[];
  readonly homeDir?: string;
  readonly noCreateHome?: boolean;
  readonly noLogInit?: boolean;
  readonly noUserGroup?: boolean;
  readonly passwordHash?: string;
  readonly primaryGroup?: string;
  readonly sshAuthorizedKeys?: readonly string[];
  readonly shell?: string;
  readonly shouldExist?: boolean;
  readonly system?: boolean;
  readonly uid?: number;
}

/** A user or a group, by number or by name. */
export interface Owner {
  readonly id?: number;
  readonly name?: string;
}

export interface Node {
  readonly path: string;
  readonly group?: Owner;
  readonly overwrite?: boolean;
  readonly user?: Owner;
}

export interface File extends Node {
  readonly append?: readonly Resource[];
  readonly contents?: Resource;
  /** Permission bits as a number: 0o644 is 420. */
  readonly mode?: number;
}

export interface Directory extends Node {
  readonly mode?: number;
}

export interface Link extends Node {
  readonly hard?: boolean;
  readonly target?: string;
}

export interface Disk {
  readonly device: string;
  readonly partitions?: readonly Partition[];
  readonly wipeTable?: boolean;
}

export interface Partition {
  readonly guid?: string;
  readonly label?: string;
  /** Missing means 0: the next free number. */
  readonly number?: number;
  readonly resize?: boolean;
  readonly shouldExist?: boolean;
  readonly sizeMiB?: number;
  readonly startMiB?: number;
  readonly typeGuid?: string;
  readonly wipePartitionEntry?: boolean;
}

export interface Filesystem {
  readonly device: string;
  readonly format?: string;
  readonly label?: string;
  readonly mountOptions?: readonly string[];
  readonly options?: readonly string[];
  readonly path?: string;
  readonly uuid?: string;
  readonly wipeFilesystem?: boolean;
}

export interface Raid {
  readonly name: string;
  readonly devices?: readonly string[];
  readonly level?: string;
  readonly options?: readonly string[];
  readonly spares?: number;
}

export interface Luks {
  readonly name: string;
  readonly cex?: { readonly enabled?: boolean };
  readonly clevis?: Clevis;
  readonly device?: string;
  readonly discard?: boolean;
  readonly keyFile?: Resource;
  readonly label?: string;
  readonly openOptions?: readonly string[];
  readonly options?: readonly string[];
  readonly uuid?: string;
  readonly wipeVolume?: boolean;
}

export interface Clevis {
  readonly custom?: { readonly config?: string; readonly needsNetwork?: boolean; readonly pin?: string };
  readonly tang?: readonly Tang[];
  readonly threshold?: number;
  readonly tpm2?: boolean;
}

export interface Tang {
  readonly advertisement?: string;
  readonly thumbprint?: string;
  readonly url?: string;
}

export interface Storage {
  readonly directories?: readonly Directory[];
  readonly disks?: readonly Disk[];
  readonly files?: readonly File[];
  readonly filesystems?: readonly Filesystem[];
  readonly links?: readonly Link[];
  readonly luks?: readonly Luks[];
  readonly raid?: readonly Raid[];
}

export interface Systemd {
  readonly units?: readonly Unit[];
}

export interface Unit {
  readonly name: string;
  readonly contents?: string;
  readonly dropins?: readonly Dropin[];
  readonly enabled?: boolean;
  readonly mask?: boolean;
}

export interface Dropin {
  readonly name: string;
  readonly contents?: string;
}

/** The version of the results of `parseIgnition` and `mergeIgnition`. */
export const ignitionVersion = "3.5.0";

export const emptyIgnition: IgnitionConfig = { ignition: { version: ignitionVersion } };
