import { parse, stringify } from "smol-toml";
import { oversizedReason, oversizedText } from "../../ignition/held-contents.ts";
import { type Decoded, decodeGo } from "../kubelet/decode-go.ts";
import type { GoStruct } from "../kubelet/kubelet-fields.ts";

const strings = { list: "string" } as const;

/**
 * What the reference keeps of a storage.conf. Source: containers/storage pkg/config/config.go (v1.59), and the part that
 * openshift/machine-config-operator decodes (pkg/controller/container-runtime-config/helpers.go, main).
 */
const storageConf: GoStruct = {
  struct: {
    storage: {
      struct: {
        driver: "string",
        runroot: "string",
        graphroot: "string",
        options: {
          struct: {
            additionalimagestores: strings,
            imagestore: "string",
            additionallayerstores: strings,
            size: "string",
            ignore_chown_errors: "string",
            use_composefs: "string",
            force_mask: "uint32",
            "root-auto-userns-user": "string",
            "auto-userns-min-size": "uint32",
            "auto-userns-max-size": "uint32",
            aufs: { struct: { mountopt: "string" } },
            btrfs: { struct: { min_space: "string", size: "string" } },
            overlay: {
              struct: {
                ignore_chown_errors: "string",
                mountopt: "string",
                mount_program: "string",
                size: "string",
                inodes: "string",
                skip_mount_home: "string",
                use_composefs: "string",
                force_mask: "string",
              },
            },
            vfs: { struct: { ignore_chown_errors: "string" } },
            zfs: { struct: { mountopt: "string", fsname: "string", size: "string" } },
            skip_mount_home: "string",
            mount_program: "string",
            mountopt: "string",
            pull_options: { map: "string" },
            "disable-volatile": "bool",
          },
        },
      },
    },
  },
};

/** What a ContainerRuntimeConfig says of the machines' storage. */
export interface StorageChanges {
  /** As Kubernetes writes quantities. */
  readonly size?: string;
  readonly imageStores?: readonly string[];
  readonly layerStores?: readonly string[];
}

export type StorageText =
  | { readonly verdict: "text"; readonly text: string; readonly dropped: readonly string[] }
  | { readonly verdict: "refused"; readonly reason: string };

/**
 * `/etc/containers/storage.conf` with changes. Keys that the reference does not know are dropped, as it does; comments too.
 *
 * @param base the template's text.
 */
export function storageConfText(base: string, changes: StorageChanges): StorageText {
  if (base === oversizedText) return { verdict: "refused", reason: `the base storage.conf ${oversizedReason}` };
  let parsed: unknown;
  try {
    parsed = parse(base);
  } catch (error) {
    return { verdict: "refused", reason: `the base storage.conf is no TOML: ${String(error)}` };
  }
  const { value, problems, unknown } = decodeGo(parsed, storageConf);
  const [first] = problems;
  if (first !== undefined)
    return { verdict: "refused", reason: `the base storage.conf is wrong: ${first.path} ${first.reason}` };
  const storage = (value["storage"] ?? {}) as Decoded;
  const {
    "auto-userns-min-size": least = 0,
    "auto-userns-max-size": most = 0,
    force_mask: mask = 0,
    ...options
  } = (storage["options"] ?? {}) as Decoded;
  const set = {
    ...options,
    "auto-userns-min-size": least,
    "auto-userns-max-size": most,
    force_mask: mask,
    ...(changes.size === undefined ? {} : { size: changes.size }),
    ...(changes.imageStores === undefined ? {} : { additionalimagestores: changes.imageStores }),
    ...(changes.layerStores === undefined
      ? {}
      : { additionallayerstores: changes.layerStores.map((path) => `${path}:ref`) }),
  };
  const { driver = "", runroot = "", graphroot = "" } = storage;
  return {
    verdict: "text",
    text: stringify({ storage: { driver, runroot, graphroot, options: withoutEmpty(set) } }),
    dropped: unknown,
  };
}

/** Go leaves out empty texts, lists and tables, and `false`; it writes numbers always. */
const withoutEmpty = (options: Decoded): Decoded =>
  Object.fromEntries(
    Object.entries(options).filter(
      ([, value]) =>
        value !== "" &&
        value !== false &&
        !(typeof value === "object" && value !== null && Object.keys(value).length === 0),
    ),
  );
