import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MachineConfig, MachineConfigNode, MachineConfigPool, kubernetes, names } from "../../src/api/index.ts";
import { conditionOf } from "../../src/api/schema/object.ts";
import { endScenario } from "../support/end-scenario.ts";
import { TestCluster, annotation, hasApiServer, hasKubectl, machineConfig } from "../support/test-cluster.ts";
import { untilSeen } from "../support/until-seen.ts";

const { annotations, labels } = names;
const worker = "worker-0";
let cluster: TestCluster;

/** What the administrator's tools say of a text: kubectl on this cluster, and the commands that need none. */
async function everybodySays(text: string): Promise<Readonly<Record<"kubectl" | "validate" | "plan", string>>> {
  const file = join(cluster.directory, "brought.yaml");
  writeFileSync(file, text);
  const told = async (result: ReturnType<TestCluster["kubectl"]>) => {
    const { code, stdout, stderr } = await result;
    return `${code}\n${stdout}${stderr}`;
  };
  return {
    kubectl: await told(cluster.kubectl(["apply", "--dry-run=server", "-o", "json", "-f", file])),
    validate: await told(cluster.offline("validate", file)),
    plan: await told(cluster.mco(["plan", "-f", file])),
  };
}

const inRole = (name: string, spec: string) =>
  `apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: ${name}, labels: {${labels.role}: worker}}
spec:
  config:
    ignition: {version: 3.4.0}
${spec}`;

const applied = (object: object) => cluster.kube.apply(MachineConfig, object as never, { owner: "test" });

/** Applies, and waits until all machines of the pool have it. */
async function rolledOut(object: object): Promise<void> {
  const before = await cluster.target("worker");
  await applied(object);
  await cluster.untilRolledOut("worker", before);
}

/** Deletes, and waits until all machines of the pool are as without it. */
async function takenBack(name: string): Promise<void> {
  const before = await cluster.target("worker");
  await cluster.kube.delete(MachineConfig, { name });
  await cluster.untilRolledOut("worker", before);
  await cluster.untilNode(worker, (node) => annotation(node, annotations.state) === "Done", "well again");
}

const poolCondition = ({ status }: Pick<MachineConfigPool, "status">, wanted: string) =>
  status?.conditions?.find(({ type }) => type === wanted);

/** Every place that says why the machine has no target, once all of them do. @param path that keeps the machine from it. */
async function whatIsSaid(path: string): Promise<Readonly<Record<string, string>>> {
  await cluster.untilNode(
    worker,
    (node) => ["Degraded", "Unreconcilable"].includes(annotation(node, annotations.state)),
    "degraded",
    300,
  );
  const machine = await cluster.until(
    MachineConfigNode,
    worker,
    ({ status }) => conditionOf(status?.conditions, "NodeDegraded")?.status === "True",
    "its condition",
  );
  const pool = await cluster.until(
    MachineConfigPool,
    "worker",
    (one) => poolCondition(one, "NodeDegraded")?.status === "True",
    "the pool's condition",
  );
  const events = await untilSeen(
    "an Event of the machine",
    async () => (await cluster.kube.list(kubernetes.Event, { fieldSelector: `involvedObject.name=${worker}` })).items,
    (items) =>
      items.some(
        ({ type, reason, message }) =>
          type === "Warning" && reason !== "ConfigDriftDetected" && message?.includes(path) === true,
      ),
  );
  // A machine sends its lines a moment after it has reported.
  const printed = (command: string) =>
    untilSeen(
      `mco ${command} names ${path}`,
      async () => (await cluster.mco([command, `node/${worker}`])).stdout,
      (text) => text.includes(path),
      { seconds: 420 },
    );
  const node = await cluster.kube.get(kubernetes.Node, { name: worker });
  return {
    node: node === undefined ? "" : annotation(node, annotations.reason),
    machine: conditionOf(machine.status?.conditions, "NodeDegraded")?.message ?? "",
    pool: poolCondition(pool, "NodeDegraded")?.message ?? "",
    events: events
      .filter(({ type }) => type === "Warning")
      .map(({ message }) => message ?? "")
      .join("\n"),
    explain: await printed("explain"),
    book: await printed("book"),
  };
}

describe.skipIf(!hasKubectl || !hasApiServer)("what administrators bring to a running cluster", () => {
  beforeAll(async () => {
    cluster = await TestCluster.start({ workers: 1 });
  }, 600_000);

  afterAll(() => endScenario(cluster));

  test("numbers and words of YAML mean the same to kubectl and to every command [scenario-brought-1]", async () => {
    const text = (mode: string, enabled: string) =>
      inRole(
        "91-worker-yaml",
        `    storage: {files: [{path: /etc/y/a, mode: ${mode}, contents: {source: "data:,a"}}]}
    systemd: {units: [{name: y.service, enabled: ${enabled}, contents: "[Unit]\\n"}]}
`,
      );
    const octal = await everybodySays(text("0o644", "on"));
    expect(octal.kubectl).toMatch(/^0\n[^]*"mode": 420/);
    expect(octal.kubectl).toContain('"enabled": true');
    expect([octal.validate, octal.plan]).toEqual([expect.stringMatching(/^0\n/), expect.stringMatching(/^[02]\n/)]);
    const quoted = await everybodySays(text('"0644"', "yes"));
    for (const said of Object.values(quoted)) {
      expect(said).toMatch(/^1\n/);
      expect(said).toContain("spec.config.storage.files[0].mode");
    }
    // 644 is 01204, with the sticky bit, which no MachineConfig may set; 444 is 0674, which it may.
    const sticky = await everybodySays(text("644", "yes"));
    for (const said of Object.values(sticky)) {
      expect(said).toMatch(/^1\n/);
      expect(said).toContain("write 0644 if octal was meant");
    }
    const decimal = await everybodySays(text("444", "yes"));
    for (const said of [decimal.kubectl, decimal.validate]) {
      expect(said).toMatch(/^0\n/);
      expect(said).toContain("0674");
    }
  });

  test("a file with append is refused with its field, and one with a mode alone is judged alike, everywhere [scenario-brought-2]", async () => {
    const append = await everybodySays(
      inRole(
        "95-worker-append",
        `    storage: {files: [{path: /etc/hosts, append: [{source: "data:,192.0.2.10%20registry.example%0A"}]}]}\n`,
      ),
    );
    for (const said of Object.values(append)) {
      expect(said).toMatch(/^1\n/);
      expect(said).toContain("spec.config.storage.files[0].append");
    }
    const mode = await everybodySays(
      inRole("95-worker-append", "    storage: {files: [{path: /etc/motd, mode: 0600}]}\n"),
    );
    expect(new Set(Object.values(mode).map((said) => said.slice(0, said.indexOf("\n"))))).toEqual(new Set(["1"]));
    for (const said of Object.values(mode)) expect(said).toContain("spec.config.storage.files[0]");
  });

  test("a pool that does not take worker's configurations is refused by the server and by validate, with the same field [scenario-brought-3]", async () => {
    const pool = (name: string, selector: string) =>
      `apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: ${name}}
spec:
  machineConfigSelector: ${selector}
  nodeSelector: {matchLabels: {node-role.kubernetes.io/${name}: ""}}
`;
    const gpu = await everybodySays(pool("gpu", `{matchLabels: {${labels.role}: gpu}}`));
    for (const said of [gpu.kubectl, gpu.validate]) {
      expect(said).toMatch(/^1\n/);
      expect(said).toContain("spec.machineConfigSelector");
    }
    const infra = await everybodySays(
      pool("infra", `{matchExpressions: [{key: ${labels.role}, operator: In, values: [worker, infra]}]}`),
    );
    expect([infra.kubectl, infra.validate]).toEqual([expect.stringMatching(/^0\n/), expect.stringMatching(/^0\n/)]);
  });

  test(
    "a path that is a file and a folder is refused with both objects; one that becomes a folder is rolled out, and back [scenario-brought-4]",
    { timeout: 400_000 },
    async () => {
      await rolledOut(machineConfig("70-worker-notes", { "/etc/b20/notes": "a plain file\n" }));
      const below = await everybodySays(
        inRole(
          "71-worker-notes-below",
          `    storage: {files: [{path: /etc/b20/notes/today, mode: 0644, contents: {source: "data:,below"}}]}\n`,
        ),
      );
      for (const said of [below.kubectl, below.plan]) {
        expect(said).toMatch(/^1\n/);
        for (const named of ["70-worker-notes", "/etc/b20/notes", "/etc/b20/notes/today"])
          expect(said).toContain(named);
      }
      await rolledOut(machineConfig("70-worker-notes", { "/etc/b20/notes/today": "now a folder\n" }));
      expect(cluster.hostFile(worker, "/etc/b20/notes/today")).toBe("now a folder\n");
      await rolledOut(machineConfig("70-worker-notes", { "/etc/b20/notes": "a plain file\n" }));
      expect(cluster.hostFile(worker, "/etc/b20/notes")).toBe("a plain file\n");
      await takenBack("70-worker-notes");
      expect(cluster.hostFile(worker, "/etc/b20/notes")).toBeUndefined();
    },
  );

  test(
    "a path that is a folder of somebody on the machine is refused before anything is written, and every place names it [scenario-brought-5]",
    { timeout: 400_000 },
    async () => {
      const folder = join(cluster.directory, "hosts", worker, "rootfs/etc/b20/dir");
      mkdirSync(folder, { recursive: true });
      const boot = cluster.machineState(worker).bootId;
      await applied(machineConfig("72-worker-over-directory", { "/etc/b20/dir": "x", "/etc/b20/beside": "y" }));
      for (const [place, said] of Object.entries(await whatIsSaid("/etc/b20/dir")))
        expect(said, place).toContain("/etc/b20/dir");
      expect([cluster.hostFile(worker, "/etc/b20/beside"), cluster.machineState(worker).bootId]).toEqual([
        undefined,
        boot,
      ]);
      const master = await cluster.kube.get(MachineConfigPool, { name: "master" });
      expect(master === undefined ? "" : poolCondition(master, "Degraded")?.status).toBe("False");
      await takenBack("72-worker-over-directory");
      rmSync(folder, { recursive: true });
    },
  );

  test(
    "a write that fails puts everything back as it was, and every place names its path and no other [scenario-brought-6]",
    { timeout: 400_000 },
    async () => {
      const version = (name: string, more: Readonly<Record<string, string>>) =>
        machineConfig(
          "94-worker-rollback",
          { "/etc/rb/a.conf": `${name}\n`, ...more },
          {
            config: {
              passwd: {
                users: [
                  { name: "core", sshAuthorizedKeys: [`ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${name} ${name}@example`] },
                ],
              },
              systemd: {
                units: [
                  {
                    name: "rb.service",
                    enabled: true,
                    contents: `[Unit]\nDescription=${name}\n[Service]\nExecStart=/usr/bin/sleep 1\n[Install]\nWantedBy=multi-user.target\n`,
                    dropins: [{ name: "10-a.conf", contents: `[Service]\nEnvironment=A=${name}\n` }],
                  },
                ],
              },
            },
          },
        );
      await rolledOut(version("old", {}));
      const managed = [
        "/etc/rb/a.conf",
        "/etc/systemd/system/rb.service",
        "/etc/systemd/system/rb.service.d/10-a.conf",
        names.hostPaths.sshKeys.replace(/^\/home/, "/var/home"),
      ];
      const now = () => managed.map((path) => cluster.hostFile(worker, path));
      const before = now();
      expect(
        before.every((text) => text?.includes("old") === true),
        JSON.stringify(before),
      ).toBe(true);
      // A file stands where the new configuration needs a folder.
      mkdirSync(join(cluster.directory, "hosts", worker, "rootfs/etc/zz"), { recursive: true });
      cluster.writeHostFile(worker, "/etc/zz/blocked", "in the way");
      await applied(version("new", { "/etc/zz/blocked/inner.conf": "x" }));
      const said = await whatIsSaid("/etc/zz/blocked");
      for (const [place, text] of Object.entries(said)) expect(text, place).toContain("/etc/zz/blocked");
      for (const [place, text] of Object.entries(said))
        if (place !== "book" && place !== "explain")
          for (const path of managed) expect(text, `${place} blames ${path}`).not.toContain(path);
      expect(now()).toEqual(before);
      await takenBack("94-worker-rollback");
      expect(now()[0]).toBeUndefined();
    },
  );
});
