import {
  type ListShape,
  type Shape,
  type StructShape,
  appended,
  bool,
  int,
  plainBool,
  plainInt,
  plainString,
  plainUnsignedInt,
  string,
  struct,
  unsignedInt,
} from "./shape.ts";

/** Minor versions of spec 2 that are read. */
export type Minor2 = 0 | 1 | 2;

/**
 * Ignition spec 2.2 as it is read; 2.0 and 2.1 have fewer fields. This version cannot distinguish an empty text, 0 or
 * false from an absent field, so those are missing, except in marked fields. Source: coreos/ignition
 * config/v2_N/types/schema.go (spec2x).
 */
export interface Ignition2Config {
  readonly ignition?: {
    readonly version?: string;
    readonly config?: { readonly append?: readonly Reference2[]; readonly replace?: Reference2 };
    readonly security?: { readonly tls?: { readonly certificateAuthorities?: readonly Reference2[] } };
    readonly timeouts?: { readonly httpResponseHeaders?: number; readonly httpTotal?: number };
  };
  readonly networkd?: {
    readonly units?: readonly {
      readonly name?: string;
      readonly contents?: string;
      readonly dropins?: readonly Dropin2[];
    }[];
  };
  readonly passwd?: { readonly groups?: readonly Group2[]; readonly users?: readonly User2[] };
  readonly storage?: {
    readonly directories?: readonly Directory2[];
    readonly disks?: readonly Disk2[];
    readonly files?: readonly File2[];
    readonly filesystems?: readonly Filesystem2[];
    readonly links?: readonly Link2[];
    readonly raid?: readonly {
      readonly name?: string;
      readonly level?: string;
      readonly devices?: readonly string[];
      readonly options?: readonly string[];
      readonly spares?: number;
    }[];
  };
  readonly systemd?: { readonly units?: readonly Unit2[] };
}

export interface Reference2 {
  readonly source?: string;
  readonly verification?: { readonly hash?: string };
}
export interface Dropin2 {
  readonly name?: string;
  readonly contents?: string;
}
export interface Unit2 {
  readonly name?: string;
  readonly contents?: string;
  readonly dropins?: readonly Dropin2[];
  readonly enable?: boolean;
  /** Distinguishes absent, false and true. */
  readonly enabled?: boolean;
  readonly mask?: boolean;
}
export interface Group2 {
  readonly name?: string;
  /** Distinguishes absent from 0. */
  readonly gid?: number;
  readonly passwordHash?: string;
  readonly system?: boolean;
}
interface Account2 {
  readonly gecos?: string;
  readonly groups?: readonly string[];
  readonly homeDir?: string;
  readonly noCreateHome?: boolean;
  readonly noLogInit?: boolean;
  readonly noUserGroup?: boolean;
  readonly primaryGroup?: string;
  readonly shell?: string;
  readonly system?: boolean;
  /** Distinguishes absent from 0. */
  readonly uid?: number;
}
export interface User2 extends Account2 {
  readonly name?: string;
  readonly create?: Account2;
  /** Distinguishes absent from "". */
  readonly passwordHash?: string;
  readonly sshAuthorizedKeys?: readonly string[];
}
export interface Owner2 {
  /** Distinguishes absent from 0. */
  readonly id?: number;
  readonly name?: string;
}
export interface Node2 {
  readonly filesystem?: string;
  readonly path?: string;
  readonly group?: Owner2;
  readonly overwrite?: boolean;
  readonly user?: Owner2;
}
export interface File2 extends Node2 {
  readonly append?: boolean;
  readonly contents?: Reference2 & { readonly compression?: string };
  /** Distinguishes absent from 0. */
  readonly mode?: number;
}
export interface Directory2 extends Node2 {
  readonly mode?: number;
}
export interface Link2 extends Node2 {
  readonly hard?: boolean;
  readonly target?: string;
}
export interface Disk2 {
  readonly device?: string;
  readonly partitions?: readonly {
    readonly guid?: string;
    readonly label?: string;
    readonly number?: number;
    readonly size?: number;
    readonly start?: number;
    readonly typeGuid?: string;
  }[];
  readonly wipeTable?: boolean;
}
export interface Filesystem2 {
  readonly name?: string;
  readonly path?: string;
  readonly mount?: {
    readonly create?: { readonly force?: boolean; readonly options?: readonly string[] };
    readonly device?: string;
    readonly format?: string;
    readonly label?: string;
    readonly options?: readonly string[];
    readonly uuid?: string;
    readonly wipeFilesystem?: boolean;
  };
}

function shapeOf(minor: Minor2): StructShape {
  const since = <S extends Shape>(version: Minor2, shape: S): S | undefined => (minor >= version ? shape : undefined);
  const list = (of: Shape): ListShape => appended(of);
  const verification = struct({ hash: string });
  const reference = struct({ source: plainString, verification });
  const dropin = struct({ name: plainString, contents: plainString });
  const owner = struct(minor === 0 ? { id: plainInt } : { id: int, name: plainString }, { pointer: minor === 2 });
  const node = { filesystem: plainString, path: plainString, group: owner, user: owner, overwrite: since(2, bool) };
  const mode = minor === 0 ? plainUnsignedInt : minor === 1 ? plainInt : int;
  const account = {
    gecos: plainString,
    groups: list(plainString),
    homeDir: plainString,
    noCreateHome: plainBool,
    noLogInit: plainBool,
    noUserGroup: plainBool,
    primaryGroup: plainString,
    shell: plainString,
    system: plainBool,
    uid: minor === 0 ? unsignedInt : int,
  };
  const span = minor === 0 ? plainUnsignedInt : plainInt;
  return struct({
    ignition: struct({
      version: plainString,
      config: struct({
        append: list(reference),
        replace: struct({ source: plainString, verification }, { pointer: true }),
      }),
      security: since(2, struct({ tls: struct({ certificateAuthorities: list(reference) }) })),
      timeouts: since(1, struct({ httpResponseHeaders: int, httpTotal: int })),
    }),
    networkd: struct({
      units: list(struct({ name: plainString, contents: plainString, dropins: since(2, list(dropin)) })),
    }),
    passwd: struct({
      groups: list(
        struct({
          name: plainString,
          gid: minor === 0 ? unsignedInt : int,
          passwordHash: plainString,
          system: plainBool,
        }),
      ),
      users: list(
        struct({
          name: plainString,
          create: struct(account, { pointer: true }),
          passwordHash: minor === 0 ? plainString : string,
          sshAuthorizedKeys: list(plainString),
          ...(minor === 0 ? {} : account),
        }),
      ),
    }),
    storage: struct({
      directories: since(1, list(struct({ ...node, mode }))),
      disks: list(
        struct({
          device: plainString,
          partitions: list(
            struct({
              guid: since(1, plainString),
              label: plainString,
              number: plainInt,
              size: span,
              start: span,
              typeGuid: plainString,
            }),
          ),
          wipeTable: plainBool,
        }),
      ),
      files: list(
        struct({
          ...node,
          append: since(2, plainBool),
          contents: struct({ compression: plainString, source: plainString, verification }),
          mode,
        }),
      ),
      filesystems: list(
        struct({
          name: plainString,
          path: string,
          mount: struct(
            {
              create: struct({ force: plainBool, options: list(plainString) }, { pointer: true }),
              device: plainString,
              format: plainString,
              label: since(1, string),
              options: since(1, list(plainString)),
              uuid: since(1, string),
              wipeFilesystem: since(1, plainBool),
            },
            { pointer: true },
          ),
        }),
      ),
      links: since(1, list(struct({ ...node, hard: plainBool, target: plainString }))),
      raid: list(
        struct({
          name: plainString,
          level: plainString,
          devices: list(plainString),
          options: since(2, list(plainString)),
          spares: plainInt,
        }),
      ),
    }),
    systemd: struct({
      units: list(
        struct({
          name: plainString,
          contents: plainString,
          dropins: list(dropin),
          enable: plainBool,
          enabled: since(1, bool),
          mask: plainBool,
        }),
      ),
    }),
  });
}

/** By minor version. */
export const shapesOf2: Readonly<Record<Minor2, StructShape>> = { 0: shapeOf(0), 1: shapeOf(1), 2: shapeOf(2) };
