import {
  type Key,
  type ListShape,
  type Shape,
  type StructShape,
  appended,
  bool,
  int,
  isRecord,
  keyed,
  plainInt,
  plainString,
  requiredString,
  string,
  struct,
  textField,
} from "./shape.ts";

/** Minor versions of spec 3 that are read. */
export type Minor3 = 0 | 1 | 2 | 3 | 4 | 5;

const partitionKey: Key = {
  name: "number, else label",
  of: (item) => {
    if (!isRecord(item)) return "";
    if (typeof item["number"] === "number") return `number:${item["number"]}`;
    return typeof item["label"] === "string" ? `label:${item["label"]}` : "";
  },
};

/**
 * The fields of spec 3.0 to 3.5, with the keys by which lists merge.
 * Source: coreos/ignition config/v3_N/types (main): schema.go, `Key`, `IgnoreDuplicates`, `MergedKeys`.
 */
function shapeOf(minor: Minor3): StructShape {
  const since = <S extends Shape>(version: Minor3, shape: S): S | undefined => (minor >= version ? shape : undefined);
  const verification = struct({ hash: string });
  const resource = struct({
    compression: string,
    httpHeaders: since(1, keyed(struct({ name: requiredString, value: string }), textField("name"))),
    source: string,
    verification,
  });
  const reference = minor === 0 ? struct({ source: string, verification }) : resource;
  const bySource = textField("source");
  const owner = struct({ id: int, name: string });
  const node = { path: requiredString, group: owner, overwrite: bool, user: owner };
  const byPath = textField("path");
  const nodes = (of: StructShape): ListShape => keyed(of, byPath, "node");
  // In 3.2 the custom pin is a pointer whose strings are always there.
  const custom =
    minor === 2
      ? struct({ config: requiredString, needsNetwork: bool, pin: requiredString }, { pointer: true })
      : struct({ config: string, needsNetwork: bool, pin: string });
  return struct({
    ignition: struct({
      version: requiredString,
      config: struct({ merge: keyed(reference, bySource), replace: reference }),
      proxy: since(1, struct({ httpProxy: string, httpsProxy: string, noProxy: keyed(requiredString) })),
      security: struct({ tls: struct({ certificateAuthorities: keyed(reference, bySource) }) }),
      timeouts: struct({ httpResponseHeaders: int, httpTotal: int }),
    }),
    kernelArguments: since(
      3,
      struct({
        shouldExist: keyed(requiredString, undefined, "argument"),
        shouldNotExist: keyed(requiredString, undefined, "argument"),
      }),
    ),
    passwd: struct({
      groups: keyed(
        struct({ name: requiredString, gid: int, passwordHash: string, shouldExist: since(2, bool), system: bool }),
        textField("name"),
      ),
      users: keyed(
        struct({
          name: requiredString,
          gecos: string,
          groups: keyed(requiredString),
          homeDir: string,
          noCreateHome: bool,
          noLogInit: bool,
          noUserGroup: bool,
          passwordHash: string,
          primaryGroup: string,
          sshAuthorizedKeys: keyed(requiredString),
          shell: string,
          shouldExist: since(2, bool),
          system: bool,
          uid: int,
        }),
        textField("name"),
      ),
    }),
    storage: struct({
      directories: nodes(struct({ ...node, mode: int })),
      disks: keyed(
        struct({
          device: requiredString,
          partitions: keyed(
            struct({
              guid: string,
              label: string,
              number: plainInt,
              resize: since(2, bool),
              shouldExist: bool,
              sizeMiB: int,
              startMiB: int,
              typeGuid: string,
              wipePartitionEntry: bool,
            }),
            partitionKey,
          ),
          wipeTable: bool,
        }),
        textField("device"),
      ),
      files: nodes(struct({ ...node, append: appended(resource), contents: resource, mode: int })),
      filesystems: keyed(
        struct({
          device: requiredString,
          format: string,
          label: string,
          mountOptions: since(1, appended(requiredString)),
          options: appended(requiredString),
          path: string,
          uuid: string,
          wipeFilesystem: bool,
        }),
        textField("device"),
      ),
      links: nodes(struct({ ...node, hard: bool, target: minor <= 2 ? requiredString : string })),
      luks: since(
        2,
        keyed(
          struct({
            name: requiredString,
            cex: since(5, struct({ enabled: bool })),
            clevis: struct({
              custom,
              tang: keyed(
                struct({ advertisement: since(4, string), thumbprint: string, url: plainString }),
                textField("url"),
              ),
              threshold: int,
              tpm2: bool,
            }),
            device: string,
            discard: since(4, bool),
            keyFile: resource,
            label: string,
            openOptions: since(4, keyed(requiredString)),
            options: appended(requiredString),
            uuid: string,
            wipeVolume: bool,
          }),
          textField("name"),
        ),
      ),
      raid: keyed(
        struct({
          name: requiredString,
          devices: keyed(requiredString),
          level: minor <= 2 ? requiredString : string,
          options: appended(requiredString),
          spares: int,
        }),
        textField("name"),
      ),
    }),
    systemd: struct({
      units: keyed(
        struct({
          name: requiredString,
          contents: string,
          dropins: keyed(struct({ name: requiredString, contents: string }), textField("name")),
          enabled: bool,
          mask: bool,
        }),
        textField("name"),
      ),
    }),
  });
}

/** By minor version. */
export const shapesOf3: Readonly<Record<Minor3, StructShape>> = {
  0: shapeOf(0),
  1: shapeOf(1),
  2: shapeOf(2),
  3: shapeOf(3),
  4: shapeOf(4),
  5: shapeOf(5),
};
