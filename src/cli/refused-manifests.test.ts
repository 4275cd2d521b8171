import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { commandLine } from "../../test/support/command-line.ts";

const typed = commandLine("mco-refused-");
const { mco } = typed;

function save(name: string, text: string): string {
  writeFileSync(join(typed.folder, name), text);
  return join(typed.folder, name);
}

/** A MachineConfig as people write it. @param parts lines of the Ignition config. */
const machineConfig = (
  name: string,
  parts: string,
  role = "worker",
) => `apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: ${name}, labels: {machineconfiguration.openshift.io/role: ${role}}}
spec:
  config:
    ignition: {version: 3.4.0}
${parts
  .split("\n")
  .map((line) => `    ${line}`)
  .join("\n")}
`;
const storage = (...files: readonly string[]) =>
  ["storage:", "  files:", ...files.map((one) => `  - ${one}`)].join("\n");
const file = (path: string) => `{path: ${path}, mode: 0644, contents: {source: "data:,x"}}`;

const cluster = `apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: worker}
spec:
  machineConfigSelector: {matchLabels: {machineconfiguration.openshift.io/role: worker}}
  nodeSelector: {matchLabels: {node-role.kubernetes.io/worker: ""}}
---
${machineConfig("00-worker", storage(file("/etc/base")))}---
apiVersion: v1
kind: Node
metadata: {name: worker-0, labels: {node-role.kubernetes.io/worker: ""}}
`;

/** What both offline commands say of manifests beside a small cluster. */
async function judge(...manifests: readonly string[]) {
  const files = manifests.map((text, i) => save(`${i}.yaml`, text));
  const plan = await mco("plan", "--from", save("cluster.yaml", cluster), ...files.flatMap((name) => ["-f", name]));
  return { validate: await mco("validate", ...files), plan };
}

describe("paths that no disk can hold", () => {
  const above = machineConfig("70-worker-notes", storage(file("/etc/notes")));
  const below = machineConfig("71-worker-below", storage(file("/etc/notes/today")));
  const inside = machineConfig("70-worker-notes", storage(file("/etc/notes/today")));
  const reason =
    "70-worker-notes (spec.config.storage.files[0].path) makes /etc/notes a file, and 71-worker-below (spec.config.storage.files[0].path) puts a file below it at /etc/notes/today; no disk can hold both";

  test("mco validate and mco plan refuse a file above another one's file, with both [refused-manifests-1]", async () => {
    const { validate, plan } = await judge(above, below);
    expect(validate.code).toBe(1);
    expect(validate.out).toContain(
      `1.yaml:9:16: error: MachineConfig/71-worker-below: spec.config.storage.files[0].path: ${reason}; give one of the two another path, or take it out`,
    );
    expect(validate.out).toContain("2 documents: 1 error, 0 warnings");
    expect(plan.code).toBe(1);
    expect(plan.out).toContain(`pool worker: would not render\n  ${reason}`);
    expect(plan.out).not.toContain("drain");
  });

  test("what is wrong with one object alone is said once by mco plan [refused-manifests-22]", async () => {
    const appending = `{path: /etc/notes, mode: 0644, append: [{source: "data:,x"}]}`;
    const { plan } = await judge(machineConfig("70-worker-notes", storage(appending)));
    expect(plan.out.match(/\/etc\/notes/g)).toHaveLength(1);
    expect(plan.out).toContain("pool worker: would not render\n  70-worker-notes is refused, as said above\n");
  });

  test("each of the two is taken by itself, and one object may go from the one to the other [refused-manifests-2]", async () => {
    for (const one of [above, below, inside]) {
      const { validate, plan } = await judge(one);
      expect([validate.code, plan.code]).toEqual([0, 2]);
    }
  });

  test("pools of other roles have nothing to do with each other, and those of workers' have [refused-manifests-3]", async () => {
    const other = (role: string) => machineConfig("71-other", storage(file("/etc/notes/today")), role);
    expect((await judge(above, other("master"))).validate.code).toBe(0);
    expect((await judge(above, other("infra"))).validate.code).toBe(1);
  });

  test("two names of one file are one file, also within one object [refused-manifests-4]", async () => {
    const twice = [
      machineConfig("76-local", storage(file("/usr/local/bin/hello.sh"))),
      machineConfig("77-var", storage(file("/var/usrlocal/bin/hello.sh"))),
    ];
    const { validate, plan } = await judge(...twice);
    for (const { code, out } of [validate, plan]) {
      expect(code).toBe(1);
      expect(out).toContain(
        "76-local (spec.config.storage.files[0].path) makes /usr/local/bin/hello.sh (/var/usrlocal/bin/hello.sh on the machine) a file, and 77-var (spec.config.storage.files[0].path) makes /var/usrlocal/bin/hello.sh, which is the same entry of the disk, a file; give it in one place",
      );
    }
    const one = await judge(machineConfig("78-run", storage(file("/var/run/a"), file("/run/a"))));
    for (const { code, out } of [one.validate, one.plan]) {
      expect(code).toBe(1);
      expect(out).toContain("spec.config.storage.files[1].path: spec.config.storage.files[0].path makes /var/run/a");
    }
  });

  test("the keys of core as a user and as a file are refused [refused-manifests-5]", async () => {
    const keys = `passwd: {users: [{name: core, sshAuthorizedKeys: ["ssh-ed25519 AAAA a@example"]}]}\n`;
    const { validate, plan } = await judge(
      machineConfig("77-keys", keys + storage(file("/home/core/.ssh/authorized_keys.d/ignition"))),
    );
    for (const { code, out } of [validate, plan]) {
      expect(code).toBe(1);
      expect(out).toContain("the SSH keys of core");
    }
  });

  test("a unit of one object and its file in another are refused with both [refused-manifests-6]", async () => {
    const unit = `systemd: {units: [{name: twice.service, contents: "[Unit]\\n"}]}`;
    const { validate, plan } = await judge(
      machineConfig("77-unit-a", unit),
      machineConfig("78-unit-b", storage(file("/etc/systemd/system/twice.service"))),
    );
    for (const { code, out } of [validate, plan]) {
      expect(code).toBe(1);
      expect(out).toContain("77-unit-a (spec.config.systemd.units[0].name)");
      expect(out).toContain("78-unit-b (spec.config.storage.files[0].path)");
    }
  });
});

describe("files without contents", () => {
  test("a file to append to is refused with field, reason and remedy [refused-manifests-7]", async () => {
    const { validate, plan } = await judge(
      machineConfig("95-append", storage('{path: /etc/hosts, append: [{source: "data:,192.0.2.10%20a%0A"}]}')),
    );
    for (const { code, out } of [validate, plan]) {
      expect(code).toBe(1);
      expect(out).toContain(
        "MachineConfig/95-append: spec.config.storage.files[0].append: appends to /etc/hosts, which a machine that runs refuses: writing it twice would append twice",
      );
      expect(out).toContain("give the whole file in contents, and take append away");
    }
  });

  test("a file with a mode only is refused, unless another object gives its contents [refused-manifests-8]", async () => {
    const bare = machineConfig("95-mode", storage("{path: /etc/hosts, mode: 0600}"));
    const { validate, plan } = await judge(bare);
    for (const { code, out } of [validate, plan]) {
      expect(code).toBe(1);
      expect(out).toContain(
        "spec.config.storage.files[0]: 95-mode: /etc/hosts has no contents in any MachineConfig of the pool; give contents.source",
      );
    }
    const given = await judge(bare, machineConfig("50-hosts", storage(file("/etc/hosts"))));
    expect([given.validate.code, given.plan.code]).toEqual([0, 2]);
  });
});

describe("a pool without worker's MachineConfigs", () => {
  const pool = (name: string, selector: string) => `apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: ${name}}
spec:
  machineConfigSelector: ${selector}
  nodeSelector: {matchLabels: {node-role.kubernetes.io/${name}: ""}}
`;
  const key = "machineconfiguration.openshift.io/role";

  test("is refused as an API server refuses it, with the same field, and one with them is not [refused-manifests-9]", async () => {
    const { validate, plan } = await judge(
      pool("infra", `{matchExpressions: [{key: ${key}, operator: In, values: [worker, infra]}]}`),
      pool("gpu", `{matchLabels: {${key}: gpu}}`),
      machineConfig("50-infra-file", storage(file("/etc/infra.conf")), "infra"),
    );
    expect(validate.out).toContain(
      `1.yaml:5:26: error: MachineConfigPool/gpu: spec.machineConfigSelector: a pool of your own builds on the worker pool, and must select the MachineConfigs of ${key} worker, for example by matchExpressions {key: ${key}, operator: In, values: [worker, <pool>]}`,
    );
    expect(validate.out).toContain("3 documents: 1 error, 0 warnings");
    expect(plan.out).toContain("refused: MachineConfigPool/gpu: spec.machineConfigSelector: a pool of your own");
    expect(plan.out).toContain("pool infra:");
    expect([validate.code, plan.code]).toEqual([1, 1]);
  });

  test("is not refused again where it is stored already [refused-manifests-10]", async () => {
    const gpu = pool("gpu", `{matchLabels: {${key}: gpu}}`);
    const from = save("cluster.yaml", `${cluster}---\n${gpu}`);
    const paused = save("gpu.yaml", gpu.replace("spec:\n", "spec:\n  paused: true\n"));
    expect((await mco("plan", "--from", from, "-f", paused)).out).not.toContain("refused");
  });
});

describe("scalars of YAML", () => {
  const given = (mode: string, enabled: string) =>
    machineConfig(
      "91-yaml",
      `${storage(`{path: /etc/y, mode: ${mode}, contents: {source: "data:,a"}}`)}\nsystemd: {units: [{name: y.service, enabled: ${enabled}, contents: "[Install]\\nWantedBy=a.target\\n"}]}`,
    );

  test.for([
    ["0o644", "on"],
    ["0644", "yes"],
    ["420", "true"],
  ] as const)("mode %s and enabled %s are what an API server reads [refused-manifests-11]", async ([mode, enabled]) => {
    const { validate, plan } = await judge(given(mode, enabled));
    expect(validate.out).toBe("1 document: 0 errors, 0 warnings\n");
    expect(plan.code).toBe(2);
    const rendered = await mco("render", "-f", typed.folder, "-o", "json");
    expect(rendered.out.match(/"mode": ?\d+/g)).toEqual(['"mode": 420', '"mode": 420']);
    expect(rendered.out).toMatch(/"enabled": ?true/);
  });

  test("a mode in quotes is a text, and is refused with its field [refused-manifests-12]", async () => {
    const { validate, plan } = await judge(given('"0644"', "yes"));
    for (const { code, out } of [validate, plan]) {
      expect(code).toBe(1);
      expect(out).toMatch(/spec\.config\.storage\.files\[0\]\.mode: must be a whole number, not a string/);
    }
  });

  test("decimal digits of an octal mode are named, with what to write [refused-manifests-13]", async () => {
    const refused = await judge(given("644", "yes"));
    expect(refused.validate.out).toContain(
      "spec.config.storage.files[0].mode: 644 sets special bits, which a MachineConfig may not; write 0644 if octal was meant, which is 420 in decimal",
    );
    const warned = await judge(given("440", "yes"));
    expect(warned.validate.out).toContain(
      "warning: MachineConfig/91-yaml: spec.config.storage.files[0].mode: 440 is a decimal number, 0670 in octal; write 0440 if octal was meant, which is 288 in decimal",
    );
    expect([refused.validate.code, warned.validate.code]).toEqual([1, 0]);
  });
});

describe("what renders, and does not do what its author expects", () => {
  const image = (osImageURL: string) => `apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: 99-image, labels: {machineconfiguration.openshift.io/role: worker}}
spec:
  osImageURL: ${osImageURL}
`;
  test.for<[what: string, parts: string, says: string]>([
    [
      "disks",
      "storage: {disks: [{device: /dev/vdb, wipeTable: true}]}",
      "storage.disks: takes effect when a machine first boots",
    ],
    [
      "file systems",
      "storage: {filesystems: [{device: /dev/vdb, format: xfs, path: /var/lib/data}]}",
      "storage.filesystems: takes effect when a machine first boots",
    ],
    [
      "RAID",
      "storage: {raid: [{devices: [/dev/vdb, /dev/vdc], level: raid1, name: data}]}",
      "storage.raid: takes effect when a machine first boots",
    ],
    [
      "links",
      "storage: {links: [{path: /etc/localtime, target: /usr/share/zoneinfo/Europe/Vienna}]}",
      "storage.links: takes effect when a machine first boots",
    ],
    [
      "directories",
      "storage: {directories: [{path: /var/lib/b}]}",
      "storage.directories: takes effect when a machine first boots",
    ],
    ["groups", "passwd: {groups: [{name: engineers}]}", "passwd.groups: takes effect when a machine first boots"],
    [
      "a file below /usr",
      storage(file("/usr/lib/sysctl.d/99-x.conf")),
      "files[0].path: /usr/lib/sysctl.d/99-x.conf is below /usr, which machines cannot write",
    ],
    ["a file below /run", storage(file("/run/x")), "files[0].path: /run/x is below /run, which each boot empties"],
    [
      "a file below /run by another name",
      storage(file("/var/run/x")),
      "files[0].path: /var/run/x is below /run, which each boot empties",
    ],
    [
      "the pull secret as a file",
      storage(file("/var/lib/kubelet/config.json")),
      "files[0].path: /var/lib/kubelet/config.json holds the cluster's pull secret: this entry replaces it",
    ],
    [
      "a file of the daemon",
      storage(file("/etc/kubernetes/kubelet-ca.crt")),
      "files[0].path: /etc/kubernetes/kubelet-ca.crt is written by the machine config daemon itself: this entry has no effect",
    ],
  ])(
    "%s: mco validate and mco plan warn of it with field and reason [refused-manifests-14]",
    async ([, parts, says]) => {
      const { validate, plan } = await judge(machineConfig("98-x", parts));
      expect(validate.code).toBe(0);
      for (const { out } of [validate, plan]) expect(out).toMatch(/warning: MachineConfig\/98-x: spec\.config\./);
      for (const { out } of [validate, plan]) expect(out).toContain(says);
    },
  );

  test("a plan asks nothing of machines for a file of the daemon, as they do nothing [refused-manifests-15]", async () => {
    const { plan } = await judge(machineConfig("98-x", storage(file("/etc/kubernetes/kubelet-ca.crt"))));
    expect(plan.out).toContain("+ /etc/kubernetes/kubelet-ca.crt  (no effect: the daemon writes it itself)");
    expect(plan.out).toContain("worker-0: nothing: the machine config daemon writes these files itself");
    const both = [file("/etc/kubernetes/kubelet-ca.crt"), file("/etc/docker/certs.d/r.example:5000/ca.crt")];
    const beside = await judge(machineConfig("98-x", storage(...both)));
    // A registry's certificate of a MachineConfig takes precedence over the cluster's.
    expect(beside.validate.out).toContain("1 document: 0 errors, 1 warning");
    expect(beside.plan.out).toContain("worker-0: drain, reboot");
  });

  test("a plan shows that machines refuse a file below /usr, and an OS image by tag, before they drain [refused-manifests-20]", async () => {
    const { plan } = await judge(machineConfig("98-x", storage(file("/usr/lib/x.conf"), file("/etc/y"))));
    expect(plan.code).toBe(1);
    expect(plan.out).toContain(
      "refused by running machines: /usr/lib/x.conf: is below /usr, which machines cannot write: only an OS image holds it; use a path below /etc or /usr/local",
    );
    expect(plan.out).toContain("worker-0: stays as it is");
    expect(plan.out).not.toContain("reboot");
    const tagged = await judge(image("registry.example/os:latest"));
    expect(tagged.plan.code).toBe(1);
    expect(tagged.plan.out).toContain(
      'refused by running machines: spec.osImageURL: "registry.example/os:latest" is a tag, which can come to mean another image: machines take an OS image by its digest only; name it by its digest',
    );
    const opted = `apiVersion: machineconfiguration.openshift.io/v1
kind: MachineOSConfig
metadata: {name: worker}
spec:
  machineConfigPool: {name: worker}
  imageBuilder: {imageBuilderType: Job}
  renderedImagePushSecret: {name: push}
  renderedImagePushSpec: registry.example/os/worker:latest
`;
    const built = await judge(opted, machineConfig("98-x", storage(file("/usr/lib/x.conf"))));
    expect(built.plan.out).not.toContain("refused by running machines");
  });

  test.for([
    ["registry.example/os:latest", "is a tag, which can come to mean another image"],
    ["registry.example/os", "is a tag, which can come to mean another image"],
    ["docker://registry.example/os:9", "is no name of an image"],
    ["registry.example/OS:9", "is no name of an image"],
    ["registry.example/os@sha256:12", "is no name of an image"],
  ] as const)("an osImageURL %s is warned of [refused-manifests-16]", async ([name, says]) => {
    const { validate, plan } = await judge(image(name));
    for (const { out } of [validate, plan]) {
      expect(out).toMatch(/warning: MachineConfig\/99-image: spec\.osImageURL: /);
      expect(out).toContain(says);
    }
    const exact = await mco("validate", save("exact.yaml", image(`registry.example/os@sha256:${"1".repeat(64)}`)));
    expect(exact.out).toBe("1 document: 0 errors, 0 warnings\n");
  });

  test("two kernel types in one pool are a conflict, and 64k pages need arm64 [refused-manifests-17]", async () => {
    const kernel = (name: string, type: string) => `apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: ${name}, labels: {machineconfiguration.openshift.io/role: worker}}
spec: {kernelType: ${type}}
`;
    const node = `apiVersion: v1
kind: Node
metadata: {name: worker-1, labels: {node-role.kubernetes.io/worker: "", kubernetes.io/arch: amd64}}
`;
    const from = save("cluster.yaml", `${cluster}---\n${node}`);
    const both = [kernel("50-rt", "realtime"), kernel("60-pages", "64k-pages")].map((text, i) =>
      save(`${i}.yaml`, text),
    );
    const { out } = await mco("plan", "--from", from, ...both.flatMap((name) => ["-f", name]));
    expect(out).toContain("conflict: 60-pages replaces the kernel type realtime of 50-rt with 64k-pages");
    expect(out).toContain("the kernel type 64k-pages exists on arm64 only; of another architecture: worker-1");
  });
});

describe("a plan's warnings", () => {
  test("stand there once each, with what to do, and name a pool's values that do not count [refused-manifests-21]", async () => {
    const lost = machineConfig("97-lost", storage(file("/run/x"))).replace(/, labels: .*}}/, "}");
    const budget = cluster.split("---\n")[0]?.replace("spec:\n", "spec:\n  maxUnavailable: 0\n") ?? "";
    const { plan } = await judge(lost, budget);
    expect(plan.out.match(/97-lost: .*no pool selects it/g)).toHaveLength(1);
    expect(plan.out).toContain("each boot empties: the file is missing afterwards; write a tmpfiles.d file");
    expect(plan.out).toContain(
      "warning: MachineConfigPool/worker: spec.maxUnavailable: is zero, and counts as 1: a pool that never updates a machine is a paused one; set spec.paused, or write 1",
    );
    const ten = await judge(budget.replace("maxUnavailable: 0", "maxUnavailable: ten"));
    expect(ten.plan.code).toBe(1);
    expect(ten.plan.out).toContain('refused: MachineConfigPool/worker: spec.maxUnavailable: is "ten"');
  });
});

describe("other kinds of files", () => {
  test("a kustomization.yaml in a folder is left aside with a warning, and the rest is used [refused-manifests-18]", async () => {
    save("kustomization.yaml", "resources:\n- 97-w.yaml\n");
    save("97-w.yaml", machineConfig("97-w", storage(file("/etc/w"))));
    const validate = await mco("validate", typed.folder);
    expect(validate.code).toBe(0);
    expect(validate.out).toContain(
      "kustomization.yaml:1:1: warning: document 1: it is a Kustomization and was not looked at: what it changes in other files does not count here; give the output of kustomize build by standard input",
    );
    expect(validate.out).toContain("2 documents: 0 errors, 1 warning");
    const plan = await mco("plan", "--offline", "-f", typed.folder);
    expect(plan.code).toBe(2);
    expect(plan.out).toContain("/etc/w");
    expect(plan.err).toContain("it is a Kustomization and was not looked at");
    expect((await mco("render", "-f", typed.folder, "-o", "name")).code).toBe(0);
  });

  test("a kind of kustomize is known by its group, whatever its file is called [refused-manifests-19]", async () => {
    const kustomization = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n";
    expect((await mco("validate", save("k.yaml", kustomization))).code).toBe(0);
    expect((await mco("validate", save("other.yaml", "resources: [a.yaml]\n"))).code).toBe(1);
  });
});
