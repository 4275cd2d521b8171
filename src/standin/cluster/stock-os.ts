import type { Files } from "../../ports/files.ts";
import { type FileTree, type PackedImage, packTree } from "../../registry/pack-tree.ts";

/** The operating system that directory hosts are born with: small, generated, the same bytes everywhere. */
const service = (description: string, exec: string) =>
  `[Unit]\nDescription=${description}\n\n[Service]\nExecStart=${exec}\n\n[Install]\nWantedBy=multi-user.target\n`;

const tree = {
  "/usr/lib/os-release": {
    contents: 'NAME="MCO stock OS"\nID=mco\nVERSION_ID=1\nPRETTY_NAME="MCO stock OS 1"\nVARIANT_ID=coreos\n',
  },
  "/usr/etc/os-release": {
    contents: 'NAME="MCO stock OS"\nID=mco\nVERSION_ID=1\nPRETTY_NAME="MCO stock OS 1"\nVARIANT_ID=coreos\n',
  },
  "/usr/etc/passwd": {
    contents: "root:x:0:0:root:/root:/bin/bash\ncore:x:1000:1000:CoreOS Admin:/home/core:/bin/bash\n",
  },
  "/usr/etc/group": { contents: "root:x:0:\nwheel:x:10:core\ncore:x:1000:\n" },
  "/usr/etc/shadow": { contents: "root:!::0:99999:7:::\ncore:!::0:99999:7:::\n", mode: 0o600 },
  "/usr/etc/hosts": { contents: "127.0.0.1 localhost\n" },
  "/usr/etc/chrony.conf": { contents: "pool 2.pool.ntp.org iburst\ndriftfile /var/lib/chrony/drift\nmakestep 1.0 3\n" },
  "/usr/etc/containers/registries.conf": { contents: 'unqualified-search-registries = ["registry.example.com"]\n' },
  "/usr/etc/containers/policy.json": { contents: '{"default":[{"type":"insecureAcceptAnything"}]}\n' },
  "/usr/etc/ssh/sshd_config": {
    contents: "PasswordAuthentication no\nAuthorizedKeysFile .ssh/authorized_keys .ssh/authorized_keys.d/ignition\n",
  },
  "/usr/lib/systemd/system/chronyd.service": { contents: service("NTP client/server", "/usr/sbin/chronyd") },
  "/usr/lib/systemd/system/crio.service": { contents: service("Container Runtime Interface", "/usr/bin/crio") },
  "/usr/lib/systemd/system/kubelet.service": {
    contents: service("Kubernetes kubelet", "/usr/bin/kubelet --config=/etc/kubernetes/kubelet.conf"),
  },
  "/usr/lib/systemd/system/NetworkManager.service": {
    contents: service("Network manager", "/usr/sbin/NetworkManager"),
  },
  "/usr/lib/systemd/system/sshd.service": { contents: service("OpenSSH server", "/usr/sbin/sshd -D") },
  "/usr/lib/systemd/system/systemd-sysctl.service": {
    contents:
      "[Unit]\nDescription=Apply kernel variables\n\n[Service]\nType=oneshot\nExecStart=/usr/lib/systemd/systemd-sysctl\n",
  },
  "/usr/lib/systemd/system-preset/90-default.preset": {
    contents:
      "enable chronyd.service\nenable crio.service\nenable kubelet.service\nenable NetworkManager.service\nenable sshd.service\n",
  },
} satisfies FileTree;

/** Labels that mark an image as bootable (bootc-dev/bootc docs/src/bootc-images.md, main). */
const bootable = { "containers.bootc": "1", "ostree.bootable": "true" };

/**
 * The stock OS as an image, to build others on. There is nothing in it that depends on an architecture; a name must be
 * given all the same.
 */
export const packedStockOs = packTree(tree, "amd64", bootable);

/**
 * The stock OS with a shell, so that steps of a Containerfile can be run on it.
 *
 * @param busybox bytes of a busybox that needs no libraries.
 */
export function packStockOsWithShell(busybox: Uint8Array): PackedImage {
  const tools = Object.fromEntries(
    ["sh", "cat", "cp", "echo", "grep", "ln", "ls", "mkdir", "mv", "rm", "sed", "sleep", "touch", "true"].map(
      (name) => [`/usr/bin/${name}`, { target: "busybox" }],
    ),
  );
  return packTree(
    { ...tree, ...tools, "/usr/bin/busybox": { contents: busybox, mode: 0o755 }, "/bin": { target: "usr/bin" } },
    "amd64",
    bootable,
  );
}

/** Repository of the stock OS in a registry. */
export const stockOsRepository = "os/stock";

/** Pullspec of the stock OS, by digest, where no registry has it. */
export const stockOsImage = `mco.local/${stockOsRepository}@${packedStockOs.manifest.digest}`;

/** The same where a registry has it. */
export const stockOsImageAt = (host: string): string => `${host}/${stockOsRepository}@${packedStockOs.manifest.digest}`;

/** Arguments that a machine with the stock OS boots with before anyone adds some. */
export const stockKernelArguments = ["root=LABEL=root", "rw"] as const;

/** Lays the tree of the stock OS down below `folder` (once) and returns where. */
export async function writeStockOs(files: Files, folder: string): Promise<string> {
  const target = `${folder}/${packedStockOs.manifest.digest.replace(":", "-")}`;
  if ((await files.stat(`${target}.complete`)) !== undefined) return target;
  for (const [path, { contents, mode }] of Object.entries<{ contents: string; mode?: number }>(tree))
    await files.write(`${target}${path}`, contents, { mode: mode ?? 0o644 });
  await files.write(`${target}.complete`, "");
  return target;
}
