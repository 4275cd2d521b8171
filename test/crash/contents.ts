import type { MachineConfig } from "../../src/api/kinds/machine-config.ts";
import { type NodeConfig, emptyNodeConfig, nodeConfigOf } from "../../src/core/config/node-config.ts";
import { ignitionOf } from "../../src/core/config/validate-machine-config.ts";
import { encodeDataUrl } from "../../src/ignition/data-url.ts";

/** Marks everything that must not leave the machine: contents of files, keys, hashes. */
export const canary = "cAnArY";
const hidden = (text: string) => `# ${canary}-${text}\n`;

export interface Content {
  /** Path → text, or text with mode and owner. `undefined` contents: an empty file. */
  readonly files?: Readonly<
    Record<
      string,
      | string
      | {
          readonly text: string;
          readonly mode?: number;
          readonly uid?: number;
          readonly gid?: number;
          readonly user?: string;
        }
    >
  >;
  readonly units?: readonly {
    readonly name: string;
    readonly contents?: string;
    readonly enabled?: boolean;
    readonly mask?: boolean;
    readonly dropins?: Readonly<Record<string, string>>;
  }[];
  readonly keys?: readonly string[];
  readonly passwords?: Readonly<Record<string, string>>;
  readonly kernelArguments?: readonly string[];
  readonly osImage?: string;
  readonly extensions?: readonly string[];
  readonly kernelType?: "realtime";
}

const crio = "/usr/lib/systemd/system/crio.service";
const vendorUnit = (description: string) =>
  `[Unit]\nDescription=${description}\n[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n`;
const accounts = {
  "/etc/passwd": "root:x:0:0:root:/root:/bin/bash\ncore:x:1000:1000:core:/home/core:/bin/bash\n",
  "/etc/group": "root:x:0:\ncore:x:1000:\n",
  "/etc/shadow": "root:*::0:99999:7:::\ncore:!::0:99999:7:::\n",
};

/** Two operating systems; the second ships another default, one more file and one fewer. */
export const firstImage = `os.example.com/one@sha256:${"1".repeat(64)}`;
export const secondImage = `os.example.com/two@sha256:${"2".repeat(64)}`;
export const images: Readonly<
  Record<string, { readonly etc: Readonly<Record<string, string>>; readonly usr: Readonly<Record<string, string>> }>
> = {
  [firstImage]: {
    etc: {
      ...accounts,
      "/etc/chrony.conf": "pool one\n",
      "/etc/vendor.conf": "1\n",
      "/etc/only-one.conf": "1\n",
      "/etc/containers/registries.conf": "",
    },
    usr: { [crio]: vendorUnit("containers"), "/usr/lib/systemd/system/vendor.service": vendorUnit("vendor") },
  },
  [secondImage]: {
    etc: {
      ...accounts,
      "/etc/chrony.conf": "pool two\n",
      "/etc/vendor.conf": "2\n",
      "/etc/only-two.conf": "2\n",
      "/etc/containers/registries.conf": "",
    },
    usr: { [crio]: vendorUnit("containers"), "/usr/lib/systemd/system/vendor.service": vendorUnit("vendor") },
  },
};

/** A unit with an [Install] section; `version` makes texts differ. */
export const unitText = (version: string, wantedBy = "multi-user.target") =>
  `[Service]\nExecStart=/bin/${version}\n[Install]\nWantedBy=${wantedBy}\n`;

/** A rendered configuration with this content. Contents of files carry the {@link canary}. */
export function machineConfigOf(name: string, content: Content): MachineConfig {
  const {
    files = {},
    units = [],
    keys = [],
    passwords = {},
    kernelArguments = [],
    osImage,
    extensions,
    kernelType,
  } = content;
  const hash = passwords["core"];
  const core = {
    name: "core",
    ...(keys.length === 0 ? {} : { sshAuthorizedKeys: keys.map((key) => `ssh-ed25519 AAAA${canary}${key} ${key}`) }),
    ...(hash === undefined ? {} : { passwordHash: `$6$${canary}$${hash}` }),
  };
  return {
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfig",
    metadata: { name },
    spec: {
      kernelArguments: [...kernelArguments],
      ...(osImage === undefined ? {} : { osImageURL: osImage }),
      ...(extensions === undefined && kernelType === undefined ? {} : { baseOSExtensionsContainerImage: firstImage }),
      ...(extensions === undefined ? {} : { extensions: [...extensions] }),
      ...(kernelType === undefined ? {} : { kernelType }),
      config: {
        ignition: { version: "3.5.0" },
        storage: {
          files: Object.entries(files).map(([path, wanted]) => {
            const file = typeof wanted === "string" ? { text: wanted } : wanted;
            const user = file.user ?? file.uid;
            return {
              path,
              mode: file.mode ?? 0o644,
              overwrite: true,
              contents: { source: encodeDataUrl(hidden(file.text)) },
              ...(user === undefined ? {} : { user: typeof user === "string" ? { name: user } : { id: user } }),
              ...(file.gid === undefined ? {} : { group: { id: file.gid } }),
            };
          }),
        },
        systemd: {
          units: units.map(({ dropins, ...unit }) => ({
            ...unit,
            ...(dropins === undefined
              ? {}
              : { dropins: Object.entries(dropins).map(([dropin, contents]) => ({ name: dropin, contents })) }),
          })),
        },
        ...(Object.keys(core).length === 1 ? {} : { passwd: { users: [core] } }),
      },
    },
  };
}

const decoded = new WeakMap<MachineConfig, NodeConfig>();

/** The same as the machine applies it; no configuration is an empty one. */
export function nodeConfig(machineConfig: MachineConfig | undefined): NodeConfig {
  if (machineConfig === undefined) return emptyNodeConfig;
  const known = decoded.get(machineConfig) ?? decode(machineConfig);
  decoded.set(machineConfig, known);
  return known;
}

function decode(machineConfig: MachineConfig): NodeConfig {
  const ignition = ignitionOf(machineConfig);
  if (ignition?.verdict !== "valid") throw new Error(`bug in a scenario: ${JSON.stringify(ignition)}`);
  const read = nodeConfigOf(machineConfig, ignition.config);
  if (read.verdict === "refused") throw new Error(`bug in a scenario: ${read.reason}`);
  return read.config;
}
