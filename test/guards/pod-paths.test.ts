import { describe, expect, test } from "vitest";
import { sourceFiles } from "./source-files.ts";

/**
 * A path of the host that something variable ends: `${folder}/${name}`. What a folder is called ends so: folder, root,
 * directory, the parts of a layout.
 */
const joined =
  /`\$\{([\w.#?]*(?:[fF]older|[rR]oot|[dD]irectory|pki|logs|rendered|target|path))\}[^`\s]*\$\{[^`]*`|\bjoin\(\w*(?:[fF]older|[rR]oot|[dD]irectory)\b/g;

/** The one place that makes host paths from what API objects say. */
const places = "src/cluster/host/pod-places.ts";

/** Joined paths of the one-machine cluster that no API object has a part in, each with where its parts come from. */
const own: Readonly<Record<string, readonly string[]>> = {
  "src/cluster/bootstrap.ts": [
    // Names of certificates and machines that the command line gives, within the process that starts the cluster.
    "`${layout.pki}/${name}.crt`",
    "`${layout.pki}/${name}.key`",
  ],
  "src/cluster/credentials.ts": ["`${layout.pki}/host-${host.name}.kubeconfig`"],
  "src/cluster/host/enter-cluster.ts": ["`${pki}/kubelet-${purpose}-pending.json`"],
  // A constant.
  "src/cluster/host/kubelet.ts": ["`${hostRoot}${kubeletConfPath}`"],
  // Names of machines, of the record.
  "src/cluster/layout.ts": ["`${directory}/hosts/${name}`", "`${directory}#${attempt}`"],
  // What lies in a folder.
  "src/cluster/protect-folder.ts": ["`${path}/${name}`", "`${path}/${name}`"],
  // Parts of the suite's own image.
  "src/cluster/stock-os.ts": ['`${folder}/${packedStockOs.manifest.digest.replace(":", "-")}`', "`${target}${path}`"],
  // Names of processes.
  "src/cluster/up.ts": ["`${layout.logs}/${name}.log`"],
};

const joinedIn = (text: string): readonly string[] => [...text.matchAll(joined)].map(([found]) => found);

describe("paths of the host", () => {
  test("in the one-machine cluster, only one place joins what API objects say to a path of the host [guards-pod-paths-1]", () => {
    const found = sourceFiles()
      .filter(({ path }) => path.startsWith("src/cluster/") && path !== places)
      .flatMap(({ path, text }) => {
        const all = joinedIn(text);
        return all.length === 0 ? [] : [[path, all] as const];
      });
    expect(Object.fromEntries(found)).toEqual(own);
  });

  test("the folders of pods and the root of a machine are given to that place alone [guards-pod-paths-2]", () => {
    const users = (word: RegExp) =>
      sourceFiles()
        .filter(({ path, code }) => path.startsWith("src/cluster/") && path !== places && word.test(code))
        .map(({ path }) => path);
    expect(users(/\bpodsFolder\b/)).toEqual(["src/cluster/host/run-host.ts"]);
    // The kubelet reads its own configuration there.
    expect(users(/\bhostRoot\b/)).toEqual(["src/cluster/host/kubelet.ts", "src/cluster/host/run-host.ts"]);
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
