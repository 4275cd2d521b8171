import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { lstatSync, readFileSync, readdirSync, readlinkSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MachineConfig, MachineConfigNode, MachineConfigPool, kubernetes, names } from "../../src/api/index.ts";
import { conditionOf } from "../../src/api/schema/object.ts";
import { imageTrees } from "../../src/cli/image-trees.ts";
import { addressesOf } from "../../src/standin/cluster/layout.ts";
import { packedStockOs, stockOsImage } from "../../src/standin/cluster/stock-os.ts";
import { askMachine } from "../../src/host/directory/control.ts";
import { directoryHost } from "../../src/host/directory/directory-host.ts";
import { gzippedLayer } from "../support/registry/tar-builder.ts";
import { type TestRegistry, startTestRegistry } from "../support/registry/test-registry.ts";
import { TestCluster, annotation, hasApiServer, machineConfig } from "../support/test-cluster.ts";
import { endScenario } from "../support/end-scenario.ts";

const { annotations, hostPaths } = names;
const worker = "worker-0";
const root = join(import.meta.dirname, "../..");
let cluster: TestCluster;
let registry: TestRegistry;

const folder = () => join(cluster.directory, "hosts", worker);
const booted = () => {
  const { booted: id, deployments } = cluster.machineState(worker);
  return deployments[id];
};
const { signal } = new AbortController();
/**
 * The next shutdown of the machine will not finalise what is staged. A machine that boots answers again when it is up.
 */
const failToFinalise = (reason: string) =>
  askMachine(join(folder(), "control.sock"), "fail-to-finalise", reason, signal);

/**
 * Every entry of the machine that a configuration can touch: type, mode, owner, contents. What the daemon keeps for
 * itself is not among it.
 */
function tree(): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const walk = (path: string, real: string) => {
    if (path.startsWith("/etc/machine-config-daemon") || path === "/var/lib/machine-config-daemon") return;
    const stat = lstatSync(real);
    const own = `${(stat.mode & 0o7777).toString(8)} ${stat.uid}:${stat.gid}`;
    if (stat.isSymbolicLink()) found.set(path, `link ${readlinkSync(real)}`);
    else if (stat.isDirectory()) {
      found.set(path, `folder ${own}`);
      for (const name of readdirSync(real).sort()) walk(`${path}/${name}`, join(real, name));
    } else found.set(path, `file ${own} ${createHash("sha256").update(readFileSync(real)).digest("hex")}`);
  };
  walk("/etc", join(folder(), "rootfs", "etc"));
  walk("/var", join(folder(), "sysroot", "var"));
  return found;
}

const isDone =
  (target: string) =>
  ({ metadata, spec }: { metadata: { annotations?: Record<string, string> }; spec?: { unschedulable?: boolean } }) =>
    metadata.annotations?.[annotations.currentConfig] === target &&
    metadata.annotations[annotations.state] === "Done" &&
    spec?.unschedulable !== true;

async function apply(
  name: string,
  files: Readonly<Record<string, string>>,
  options: Parameters<typeof machineConfig>[2] = {},
): Promise<string> {
  const before = await cluster.target("worker");
  await cluster.kube.apply(MachineConfig, machineConfig(name, files, options) as never, { owner: "test" });
  const pool = await cluster.until(
    MachineConfigPool,
    "worker",
    ({ spec }) => (spec.configuration?.name ?? before) !== before,
    "a new target",
  );
  return pool.spec.configuration?.name ?? "";
}

async function remove(name: string): Promise<string> {
  const before = await cluster.target("worker");
  await cluster.kube.delete(MachineConfig, { name });
  const pool = await cluster.until(
    MachineConfigPool,
    "worker",
    ({ spec }) => (spec.configuration?.name ?? before) !== before,
    "a new target",
  );
  return pool.spec.configuration?.name ?? "";
}

describe.skipIf(!hasApiServer)("a machine", () => {
  beforeAll(async () => {
    [cluster, registry] = await Promise.all([TestCluster.start({ workers: 1 }), startTestRegistry()]);
  }, 600_000);

  afterAll(() => registry?.close());
  afterAll(() => endScenario(cluster));

  test(
    "applies every field of a MachineConfig, and is restored byte for byte without it",
    { timeout: 120_000 },
    async () => {
      const start = await cluster.target("worker");
      await cluster.untilNode(worker, isDone(start), "in service");
      const before = tree();
      const system = booted();
      const unit = "[Service]\nExecStart=/usr/bin/true\n[Install]\nWantedBy=multi-user.target\n";
      const target = await apply(
        "99-worker-everything",
        {},
        {
          more: {
            kernelArguments: ["nosmt", 'quoted="a b"'],
            extensions: ["usbguard", "kerberos"],
            kernelType: "realtime",
          },
          config: {
            storage: {
              files: [
                {
                  path: "/etc/chrony.conf",
                  mode: 0o600,
                  overwrite: true,
                  contents: { source: "data:,server%20ours%0A" },
                },
                {
                  path: "/etc/deep/in/new/folders.conf",
                  mode: 0o755,
                  user: { name: "core" },
                  group: { id: 10 },
                  contents: { source: `data:;base64,${gzipSync("packed\n").toString("base64")}`, compression: "gzip" },
                },
                { path: "/var/lib/ours/state", contents: { source: "data:,x" } },
                { path: "/etc/empty", contents: { source: "data:," } },
              ],
            },
            systemd: {
              units: [
                { name: "ours.service", enabled: true, contents: unit },
                { name: "crio.service", dropins: [{ name: "10-ours.conf", contents: "[Service]\nEnvironment=A=1\n" }] },
                { name: "NetworkManager.service", mask: true },
                { name: "sshd.service", enabled: false },
              ],
            },
            passwd: {
              users: [
                { name: "core", passwordHash: "$6$canary$hash", sshAuthorizedKeys: ["ssh-ed25519 AAAA canary@test"] },
              ],
            },
          },
        },
      );
      await cluster.untilNode(worker, isDone(target), "on everything");
      expect(booted()).toMatchObject({
        kernelArguments: ["root=LABEL=root", "rw", "nosmt", 'quoted="a b"'],
        packages: ["krb5-workstation", "libkadm5", "usbguard"],
        kernelType: "realtime",
      });
      const now = tree();
      expect(now.get("/etc/chrony.conf")).toMatch(/^file 600 0:0 /);
      expect(now.get("/etc/deep/in/new/folders.conf")).toMatch(/^file 755 1000:10 /);
      expect(cluster.hostFile(worker, "/etc/deep/in/new/folders.conf")).toBe("packed\n");
      expect(now.get("/etc/systemd/system/NetworkManager.service")).toBe("link /dev/null");
      expect(now.get("/etc/systemd/system/multi-user.target.wants/ours.service")).toBe(
        "link /etc/systemd/system/ours.service",
      );
      expect(now.has("/etc/systemd/system/multi-user.target.wants/sshd.service")).toBe(false);
      expect(cluster.hostFile(worker, "/etc/shadow")).toMatch(/^core:\$6\$canary\$hash:/m);
      expect(now.get("/var/home/core/.ssh/authorized_keys.d/ignition")).toMatch(/^file 600 1000:1000 /);

      await cluster.untilNode(worker, isDone(await remove("99-worker-everything")), "without it");
      expect([...tree()]).toEqual([...before]);
      expect(booted()).toEqual(system);
      // What is secret stays on the machine.
      const told = JSON.stringify([
        await cluster.kube.get(kubernetes.Node, { name: worker }),
        await cluster.kube.get(MachineConfigNode, { name: worker }),
        (await cluster.kube.list(kubernetes.Event)).items,
      ]);
      expect(told).not.toContain("canary");
    },
  );

  test("boots an image from a registry, and its stock OS again", { timeout: 120_000 }, async () => {
    const layer = gzippedLayer(
      { path: "etc/", type: "5" },
      { path: "etc/from-the-image.conf", contents: "built\n" },
      { path: "usr/", type: "5" },
      { path: "usr/lib/", type: "5" },
      { path: "usr/lib/built", contents: "built\n" },
    );
    const digest = registry.addImage("os/built", [
      { bytes: packedStockOs.layer.bytes, plain: gunzipSync(packedStockOs.layer.bytes) },
      layer,
    ]);
    const image = `${registry.host}/os/built@${digest}`;
    registry.plan("blobs", { do: "cut", afterBytes: 100 }, { do: "status", status: 503 });
    const target = await apply("99-worker-image", {}, { more: { osImageURL: image } });
    await cluster.untilNode(worker, isDone(target), "on the image");
    expect(booted()?.image).toBe(image);
    expect(cluster.hostFile(worker, "/etc/from-the-image.conf")).toBe("built\n");
    expect(cluster.hostFile(worker, "/usr/lib/built")).toBe("built\n");
    await cluster.untilNode(worker, isDone(await remove("99-worker-image")), "on the stock image");
    expect(booted()?.image).toBe(cluster.stockOsImage);
    expect(cluster.hostFile(worker, "/etc/from-the-image.conf")).toBeUndefined();
  });

  test(
    "is not drained for an image that policy.json refuses, and names the refusing rule",
    { timeout: 120_000 },
    async () => {
      const digest = registry.addImage("os/refused", [
        { bytes: packedStockOs.layer.bytes, plain: gunzipSync(packedStockOs.layer.bytes) },
      ]);
      const policy = JSON.stringify({
        default: [{ type: "insecureAcceptAnything" }],
        transports: { docker: { [`${registry.host}/os/refused`]: [{ type: "reject" }] } },
      });
      await cluster.untilNode(
        worker,
        isDone(await apply("98-worker-policy", { "/etc/containers/policy.json": policy })),
        "with the policy",
      );
      await apply("99-worker-refused", {}, { more: { osImageURL: `${registry.host}/os/refused@${digest}` } });
      const node = await cluster.untilNode(
        worker,
        (one) => annotation(one, annotations.state) === "Degraded",
        "degraded",
      );
      expect(annotation(node, annotations.reason)).toMatch(/os\/refused.*reject/);
      expect(node.spec?.unschedulable).not.toBe(true);
      await cluster.untilNode(worker, isDone(await remove("99-worker-refused")), "well again");
      await cluster.untilNode(worker, isDone(await remove("98-worker-policy")), "without the policy");
    },
  );

  test(
    "whose new system does not boot rolls back config and system automatically, and takes the next target",
    { timeout: 150_000 },
    async () => {
      const before = await cluster.target("worker");
      const layer = gzippedLayer({ path: "etc/", type: "5" }, { path: "etc/never.conf", contents: "never\n" });
      const digest = registry.addImage("os/never", [
        { bytes: packedStockOs.layer.bytes, plain: gunzipSync(packedStockOs.layer.bytes) },
        layer,
      ]);
      await failToFinalise("error: the boot partition is full");
      let boot = cluster.machineState(worker).bootId;
      const target = await apply(
        "99-worker-never",
        { "/etc/never-either.conf": "x" },
        { more: { osImageURL: `${registry.host}/os/never@${digest}` } },
      );
      const refused = cluster.untilNode(
        worker,
        (node) => annotation(node, annotations.reason).includes("is refused: after 3 reboots"),
        "went back",
        140,
      );
      let over = false;
      void refused
        .finally(() => {
          over = true;
        })
        .catch(() => undefined);
      // Each boot uses the fault up; a machine with a broken disk has it again.
      while (!over) {
        const now = cluster.machineState(worker).bootId;
        if (now !== boot) await failToFinalise("error: the boot partition is full");
        boot = now;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      const node = await refused;
      expect(annotation(node, annotations.state)).toBe("Degraded");
      expect(annotation(node, annotations.reason)).toContain("the boot partition is full");
      expect(annotation(node, annotations.currentConfig)).toBe(before);
      expect(booted()?.image).toBe(cluster.stockOsImage);
      expect(cluster.hostFile(worker, "/etc/never-either.conf")).toBeUndefined();
      const object = await cluster.until(
        MachineConfigNode,
        worker,
        ({ metadata, status }) =>
          metadata.annotations?.[annotations.refusedTargets] !== undefined &&
          conditionOf(status?.conditions, "NodeDegraded")?.reason === "TargetRefused",
        "told",
      );
      expect(JSON.parse(object.metadata.annotations?.[annotations.refusedTargets] ?? "[]")).toMatchObject([
        { config: target },
      ]);
      // The pool knows, so that no other machine is given it; and it forgets with the next target.
      const quarantined = (pool: MachineConfigPool) => pool.metadata.annotations?.[annotations.quarantined];
      const pool = await cluster.until(
        MachineConfigPool,
        "worker",
        (one) => quarantined(one) !== undefined,
        "quarantined",
      );
      expect(JSON.parse(quarantined(pool) ?? "[]")).toMatchObject([{ config: target, nodes: [worker] }]);
      await cluster.untilNode(worker, isDone(await remove("99-worker-never")), "on the next target");
      await cluster.until(
        MachineConfigPool,
        "worker",
        (one) => quarantined(one) === undefined,
        "no longer quarantined",
      );
      expect(tree().has("/etc/never.conf")).toBe(false);
    },
  );

  test("that is edited by hand reports the difference, and applies its target again on request", async () => {
    const target = await apply("99-worker-drift", { "/etc/drift.conf": "ours\n" });
    await cluster.untilNode(worker, isDone(target), "with the file");
    cluster.writeHostFile(worker, "/etc/drift.conf", "theirs\n");
    const node = await cluster.untilNode(
      worker,
      (one) => annotation(one, annotations.state) === "Degraded",
      "degraded",
    );
    expect(annotation(node, annotations.reason)).toContain("/etc/drift.conf");
    const { stdout } = await cluster.kubectl([
      "get",
      "events",
      "-A",
      "-o",
      "custom-columns=REASON:.reason",
      "--no-headers",
    ]);
    expect(stdout).toContain("ConfigDriftDetected");
    cluster.writeHostFile(worker, hostPaths.force, "");
    await cluster.untilNode(worker, isDone(target), "well again");
    expect(cluster.hostFile(worker, "/etc/drift.conf")).toBe("ours\n");
    expect(cluster.hostFile(worker, hostPaths.force)).toBeUndefined();
  });

  test("serves metrics and readiness on its own loopback address", async () => {
    const record = cluster.record();
    const index = record.hosts.find(({ name }) => name === worker)?.index ?? 0;
    const get = (path: string) =>
      new Promise<{ status: number; body: string }>((resolve, reject) => {
        request({ host: addressesOf(record.network).host(index), port: 8797, path }, (incoming) => {
          let body = "";
          incoming.on("data", (chunk: Buffer) => (body += chunk.toString("utf8")));
          incoming.once("end", () => resolve({ status: incoming.statusCode ?? 0, body }));
        })
          .once("error", reject)
          .end();
      });
    expect(await get("/readyz")).toEqual({ status: 200, body: "ok\n" });
    const { body } = await get("/metrics");
    expect(body).toContain('mcd_host_os_and_version{os="mco",version="1"} 1');
    expect(body).toContain('mcd_state{state="Done",reason=""} 1');
    expect(body).toContain("mcd_config_drift 0");
  });

  test("completes a first boot without any API server", async () => {
    expect((await cluster.mco(["host", "fail", worker])).code).toBe(0);
    while ((await cluster.processes("daemon", "start", worker)).length > 0)
      await new Promise((resolve) => setTimeout(resolve, 50));
    const served = {
      ...machineConfig("rendered-first-boot", {}),
      spec: { osImageURL: stockOsImage, kernelArguments: ["first=boot"], config: { ignition: { version: "3.4.0" } } },
    };
    const host = directoryHost({
      directory: folder(),
      images: imageTrees(join(cluster.directory, "os")),
      requestReboot: async () => undefined,
    });
    for (const document of ["previous.json", "originals.json", "target.json", "ledger.json"])
      await host.ledger.remove(document, signal);
    writeFileSync(join(folder(), "rootfs", hostPaths.encapsulated), JSON.stringify(served));
    // Nobody runs the machine, so its control socket answers no reboot: the command says so and would try again.
    const ended = spawnSync(
      join(root, "bin/mco"),
      ["daemon", "firstboot-complete-machineconfig", "--root-mount", join(folder(), "rootfs")],
      { cwd: root, timeout: 300_000, encoding: "utf8" },
    );
    expect(`${ended.stdout}${ended.stderr}`).toContain("stageOs");
    const status = await host.os.status(signal);
    expect(status.staged?.kernelArguments).toContain("first=boot");
    expect(JSON.parse((await host.ledger.read("ledger.json", signal)) ?? "{}")).toMatchObject({
      target: "rendered-first-boot",
    });
  });
});
