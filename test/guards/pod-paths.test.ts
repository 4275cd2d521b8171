import { describe, expect, test } from "vitest";
import { sourceFiles } from "./source-files.ts";

/**
 * A path of the host that something variable ends: `${folder}/${name}`. What a folder is called ends so: folder, root,
 * directory, the parts of a layout.
 */
const joined =
  /`\$\{([\w.#?]*(?:[fF]older|[rR]oot|[dD]irectory|pki|logs|rendered|target|path))\}[^`\s]*\$\{[^`]*`|\bjoin\(\w*(?:[fF]older|[rR]oot|[dD]irectory)\b/g;

/** The one place that makes host paths from what API objects say. */
const places = "src/standin/cluster/host/pod-places.ts";

/**
 * Joined paths of the one-machine cluster, and of what runs machines, that no API object has a part in, or that are the
 * machine's own and resolved before they are used; each with where its parts come from.
 */
const own: Readonly<Record<string, readonly string[]>> = {
  "src/standin/cluster/bootstrap.ts": [
    // Names of certificates and machines that the command line gives, within the process that starts the cluster.
    "`${layout.pki}/${name}.crt`",
    "`${layout.pki}/${name}.key`",
  ],
  "src/standin/cluster/credentials.ts": ["`${layout.pki}/host-${host.name}.kubeconfig`"],
  "src/standin/cluster/host/enter-cluster.ts": ["`${pki}/kubelet-${purpose}-pending.json`"],
  // Names of machines, of the record.
  "src/standin/cluster/layout.ts": ["`${directory}/hosts/${name}`", "`${directory}#${attempt}`"],
  // What lies in a folder.
  "src/standin/cluster/protect-folder.ts": ["`${path}/${name}`", "`${directory}/${name}`", "`${folder}/${name}`"],
  // Parts of the suite's own image.
  "src/standin/cluster/stock-os.ts": [
    '`${folder}/${packedStockOs.manifest.digest.replace(":", "-")}`',
    "`${target}${path}`",
  ],
  // Names of processes.
  "src/standin/cluster/up.ts": ["`${layout.logs}/${name}.log`"],
  "src/cli/bundle.ts": ["join(folder"],
  // Keys of a Secret, as a pod's volume has them.
  "src/cli/flags.ts": ["`${machineTokens.folder}/${machineTokens.file}`"],
  "src/cli/commands/os-builder.ts": ["`${folder}/${name}`"],
  "src/cli/commands/up.ts": [
    '`${layout.logs}/${chosen.apiServer === "kubernetes" ? "kube-apiserver" : "apiserver"}.log`',
  ],
  "src/cli/connect.ts": ["join(root", "join(directory"],
  // Unpacked images, by their digest.
  "src/cli/fetch-tree.ts": ["join(folder"],
  // Entries of the register, by the digest of their path.
  "src/cli/folder-register.ts": ["join(folder"],
  "src/cli/folder-store.ts": ["join(folder"],
  "src/cli/hand-over.ts": ["join(folder"],
  // Folders of other machines, and of the cluster; the images of pods lie beside the machine's own files.
  "src/cli/host-at.ts": ["join(folder", "join(directory"],
  "src/cli/image-folder.ts": ["join(folder"],
  "src/cli/image-mode.ts": ["join(folder"],
  "src/cli/kubernetes-binaries.ts": ["join(folder"],
  "src/cli/read-stored-books.ts": ["join(folder"],
  // Names of machines, of the record, and of logs; the machine's own files are those of machineFiles.
  "src/cli/run-machine.ts": [
    "`${layout.pki}/host-${name}.kubeconfig`",
    "`${directory}/${log}`",
    "`${layout.pki}/host-${name}.crt`",
    "`${layout.pki}/host-${name}.key`",
  ],
  "src/cli/tree-record.ts": ['`${folder}/${digest.replace(":", "-")}`'],
  // Opens each folder on the way by descriptor, without links.
  "src/host/directory/held-disk.ts": ["join(folder"],
  "src/cli/work-trees.ts": ["`${folder}${sep}`", "join(folder"],
  "src/host/directory/clear-set-id.ts": ["join(folder"],
  // Deployments; what is made or read in one is held below the machine's folder.
  "src/host/directory/directory-host.ts": ["join(directory", "join(deployFolder", "join(folder", "`${folder}/${path}`"],
  // Resolve each path in the machine.
  "src/host/directory/machine-files.ts": ["join(directory"],
  "src/host/directory/pod-images.ts": ["join(directory"],
  "src/host/directory/root-folder.ts": ["join(directory", "join(root", "join(folder"],
  // Paths of the machine, which these give to what resolves them.
  "src/host/directory/ownership.ts": ["join(folder"],
  "src/host/directory/pull-settings.ts": ["`${folder}/${name}`"],
  "src/host/directory/root-books.ts": ["join(folder"],
  "src/host/directory/root-files.ts": ["join(folder"],
  "src/host/directory/root-ledger.ts": ["`${ledgerFolder}/${name}`"],
  "src/host/rpm-ostree/rpm-ostree-host.ts": ["`${folder}/${path}`"],
  "src/host/rpm-ostree/rpm-ostree-os.ts": ["`${extensionsFolder}/${container}`"],
  "src/host/rpm-ostree/systemd-units.ts": ["`${unitFolder}/${name}`"],
  "src/host/unit-model.ts": ["`${folder}/${name}`", "`${unitFolder}/${name}`", "`${unitFolder}/${name}.d`"],
  // Programs of Ignition's environment, in a folder of its own.
  "src/host/ignition/run-ignition.ts": ["`${folder}/bin/${name}`", "`${folder}/bin:${systemPath}`"],
};

/** Folders whose code makes paths of the host. */
const folders = ["src/cli/", "src/standin/cluster/", "src/host/"] as const;

const joinedIn = (text: string): readonly string[] => [...new Set([...text.matchAll(joined)].map(([found]) => found))];

describe("paths of the host", () => {
  test("in the one-machine cluster and its machines, only one place joins what API objects say to a path of the host [guards-pod-paths-1]", () => {
    const found = sourceFiles()
      .filter(({ path }) => folders.some((folder) => path.startsWith(folder)) && path !== places)
      .flatMap(({ path, text }) => {
        const all = joinedIn(text);
        return all.length === 0 ? [] : [[path, all] as const];
      });
    expect(Object.fromEntries(found)).toEqual(own);
  });

  test("the folders of pods are given to that place alone [guards-pod-paths-2]", () => {
    const users = (word: RegExp) =>
      sourceFiles()
        .filter(({ path, code }) => path.startsWith("src/standin/cluster/") && path !== places && word.test(code))
        .map(({ path }) => path);
    expect(users(/\bpodsFolder\b/)).toEqual(["src/standin/cluster/host/run-host.ts"]);
  });

  test("only drivers of machines know where a machine's own files lie [guards-pod-paths-3]", () => {
    const made = /`\$\{[^}]*\}\/(?:rootfs|sysroot)\b[^`]*`/g;
    const found = sourceFiles()
      .filter(({ path }) => !path.startsWith("src/host/directory/"))
      .flatMap(({ path, text }) => [...text.matchAll(made)].map(([one]) => `${path} ${one}`));
    expect(found).toEqual([
      // The root of a machine, for what resolves paths in it.
      "src/cli/run-machine.ts `${directory}/rootfs`",
      "src/cli/run-machine.ts `${directory}/rootfs`",
      // Deployments of which set-user-id bits are taken.
      "src/standin/cluster/up.ts `${layout.host(name)}/sysroot/deploy`",
    ]);
  });

  test("the rule finds what it looks for, and nothing else", () => {
    const finds = [
      "const link = `${podRoot}${mount.mountPath}`;",
      "`${this.folder}/root${terminationMessagePath}`",
      "`${this.#places.root}/${item.path}`",
      "`${options.hostRoot}${volume.hostPath.path}`",
      "join(podRoot, path)",
    ];
    const leaves = [
      "const name = `${set.metadata.name}-${hash}`;",
      "`${namespace}/${name}`",
      "`${directory}/rootfs`",
      'words.join(", ")',
    ];
    expect(finds.filter((line) => joinedIn(line).length === 0)).toEqual([]);
    expect(leaves.filter((line) => joinedIn(line).length > 0)).toEqual([]);
  });
});
