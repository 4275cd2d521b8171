import { spawn } from "node:child_process";
import { mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { stringify } from "yaml";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../api/kinds/machine-config-pool.ts";
import { ProvisioningToken } from "../api/kinds/provisioning-token.ts";
import { tokenHash } from "../core/join/provisioning-token.ts";
import { silentLogger } from "../ports/logger.ts";
import { systemClock, systemFiles } from "../ports/node/index.ts";
import { FolderSource } from "./folder-source.ts";
import { testAuthority } from "../../test/support/test-pki.ts";
import { ignition, problemOf, send, tokenText } from "../../test/support/server-harness.ts";

class Folder {
  readonly path = mkdtempSync(join(tmpdir(), "mco-bootstrap-"));

  constructor() {
    onTestFinished(() => rmSync(this.path, { recursive: true }));
    this.write(
      "kubeconfig",
      "apiVersion: v1\nkind: Config\nusers: [{name: kubelet, user: {token: bootstrap-secret}}]\n",
    );
    this.put("controller-config/machine-config-controller.yaml", {
      apiVersion: ControllerConfig.apiVersion,
      kind: "ControllerConfig",
      metadata: { name: "machine-config-controller" },
      spec: {
        clusterDNSIP: "10.0.0.10",
        cloudProviderConfig: "",
        kubeAPIServerServingCAData: "",
        rootCAData: "",
        cloudProviderCAData: null,
        additionalTrustBundle: null,
        images: {},
        baseOSContainerImage: "os",
        releaseImage: "r",
        proxy: null,
        infra: null,
        dns: null,
        ipFamilies: "IPv4",
      },
    });
    for (const pool of ["master", "worker"]) this.pool(pool, "first");
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(join(this.path, path)), { recursive: true });
    writeFileSync(join(this.path, path), text);
  }

  put(path: string, object: object): void {
    this.write(path, stringify(object));
  }

  pool(name: string, text: string): void {
    const configuration = { name: `rendered-${name}-${text}` };
    this.put(`machine-configs/${configuration.name}.yaml`, {
      apiVersion: MachineConfig.apiVersion,
      kind: "MachineConfig",
      metadata: configuration,
      spec: {
        config: {
          ignition: { version: "3.4.0" },
          storage: { files: [{ path: "/etc/a", mode: 0o644, contents: { source: `data:,${text}` } }] },
        },
      },
    });
    this.put(`machine-pools/${name}.yaml`, {
      apiVersion: MachineConfigPool.apiVersion,
      kind: "MachineConfigPool",
      metadata: { name },
      spec: { configuration },
      status: { configuration },
    });
  }

  source(certificates: readonly (readonly [string, string])[] = []) {
    const reads: string[] = [];
    const files = { ...systemFiles, readText: (path: string) => (reads.push(path), systemFiles.readText(path)) };
    return {
      source: new FolderSource({
        files,
        clock: systemClock,
        log: silentLogger,
        folder: this.path,
        kubeconfig: join(this.path, "kubeconfig"),
        certificates: new Map(certificates),
      }),
      reads,
    };
  }
}

describe("a folder in place of a cluster", () => {
  test("serves the machines of the control plane, and no others [server-bootstrap-3]", async () => {
    const { source } = new Folder().source();
    expect(source.missing()).toEqual(["folder"]);
    await source.look();
    expect([source.missing(), source.pools()]).toEqual([[], ["master"]]);
    expect(source.pool("master")).toMatchObject({
      verdict: "snapshot",
      snapshot: {
        config: "rendered-master-first",
        inputs: { mode: "bootstrap", image: undefined, kubeconfig: expect.stringContaining("bootstrap-secret") },
      },
    });
    expect(source.pool("worker")).toEqual({ verdict: "absent" });
    expect(source.pool("arbiter")).toEqual({ verdict: "absent" });
  });

  test("reads only changed files [server-bootstrap-4]", async () => {
    const folder = new Folder();
    const { source, reads } = folder.source();
    await source.look();
    let changes = 0;
    source.onChange(() => void (changes += 1));
    reads.length = 0;
    await source.look();
    for (let turn = 0; turn < 100; turn += 1) source.pool("master");
    expect([reads, changes]).toEqual([[], 0]);
    folder.pool("master", "second");
    await source.look();
    expect(changes).toBe(1);
    expect(source.pool("master")).toMatchObject({ snapshot: { config: "rendered-master-second" } });
    expect(reads.map((path) => path.slice(folder.path.length + 1)).toSorted()).toEqual([
      "machine-configs/rendered-master-second.yaml",
      "machine-pools/master.yaml",
    ]);
  });

  test.for([
    {
      title: "no settings",
      spoil: (folder: Folder) => rmSync(join(folder.path, "controller-config"), { recursive: true }),
      reason: "NoControllerConfig",
    },
    {
      title: "no configuration",
      spoil: (folder: Folder) => rmSync(join(folder.path, "machine-configs"), { recursive: true }),
      reason: "ConfigMissing",
    },
    {
      title: "no kubeconfig",
      spoil: (folder: Folder) => rmSync(join(folder.path, "kubeconfig")),
      reason: "NoCredential",
    },
    {
      title: "no certificate of a registry",
      spoil: () => undefined,
      reason: "NoAuthorities",
      certificates: [["r.example.com:5000", "r.crt"]] as const,
    },
    {
      title: "a name that is not a pool",
      spoil: (folder: Folder) => folder.write("machine-pools/master.yaml", "kind: [\n"),
      reason: "Unreadable",
    },
    {
      title: "a name that escapes the folder",
      spoil: (folder: Folder) =>
        folder.put("machine-pools/master.yaml", {
          apiVersion: MachineConfigPool.apiVersion,
          kind: "MachineConfigPool",
          metadata: { name: "master" },
          spec: {},
          status: { configuration: { name: "../kubeconfig" } },
        }),
      reason: "NotRendered",
    },
  ])("is not ready with $title [server-bootstrap-2]", async ({ spoil, reason, certificates = [] }) => {
    const folder = new Folder();
    spoil(folder);
    const { source } = folder.source(certificates);
    await source.look();
    expect(source.pool("master")).toMatchObject({ verdict: "notReady", reason });
  });

  test("adds the registry's certificate [server-bootstrap-6]", async () => {
    const folder = new Folder();
    folder.write("certs/r.crt", "PEM");
    const { source } = folder.source([["r.example.com:5000", "certs/r.crt"]]);
    await source.look();
    const look = source.pool("master");
    expect(look.verdict === "snapshot" ? [...look.snapshot.inputs.registryCertificates] : look).toEqual([
      ["r.example.com:5000", "PEM"],
    ]);
  });
});

describe("mco server bootstrap", () => {
  const main = join(import.meta.dirname, "../cli/main.ts");
  const start = (args: readonly string[]) => {
    const child = spawn(process.execPath, [main, "server", "bootstrap", ...args], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    let log = "";
    const port = new Promise<number>((resolve) =>
      child.stderr.on(
        "data",
        (chunk: Buffer) => (
          (log += chunk.toString()),
          /"port":(\d+).*"serving configurations"/.test(log) && resolve(Number(/"port":(\d+)/.exec(log)?.[1]))
        ),
      ),
    );
    const exited = new Promise<number | null>((resolve) => child.once("exit", resolve));
    return { child, port, exited, log: () => log };
  };

  test("serves over TLS with a token, reports what it does, and stops cleanly [server-bootstrap-5]", async () => {
    const folder = new Folder();
    const authority = await testAuthority();
    const shown = await authority.server("127.0.0.1");
    folder.write("tls.crt", shown.certificate);
    folder.write("tls.key", shown.key);
    const { id, secret, text } = tokenText("boot", "b");
    folder.put("provisioning-tokens/a.yaml", {
      apiVersion: ProvisioningToken.apiVersion,
      kind: "ProvisioningToken",
      metadata: { name: id },
      spec: { pool: "master", tokenHash: tokenHash(secret), maxUses: 1, node: "master-0" },
    });
    const at = (name: string) => join(folder.path, name);
    const server = start([
      "--server-basedir",
      folder.path,
      "--bootstrap-kubeconfig",
      at("kubeconfig"),
      "--cert",
      at("tls.crt"),
      "--key",
      at("tls.key"),
      "--secure-port",
      "0",
      "--address",
      "127.0.0.1",
      "--journal-dir",
      at("journal"),
    ]);
    const port = await server.port;
    const ask = (more: object = {}) =>
      send(port, authority.certificate, { path: "/config/master", headers: { accept: ignition("3.2.0") }, ...more });
    while ((await ask({ path: "/readyz" })).status !== 200);
    expect((await ask()).status).toBe(401);
    expect((await ask({ token: text, path: "/config/worker" })).status).toBe(403);
    const got = await ask({ token: text });
    expect([got.status, got.text.includes("data:,first"), got.text.includes("bootstrap-secret")]).toEqual([
      200,
      true,
      true,
    ]);
    expect(problemOf(await ask({ token: text })).reason).toBe("TokenUsedUp");
    server.child.kill("SIGTERM");
    expect(await server.exited).toBe(0);
    const { readdirSync } = await import("node:fs");
    const lines = readdirSync(at("journal"))
      .flatMap((name) =>
        readFileSync(join(at("journal"), name), "utf8")
          .trim()
          .split("\n"),
      )
      .map(
        (line) =>
          JSON.parse(line) as {
            readonly book: string;
            readonly run?: string;
            readonly path: string;
            readonly reason: string;
            readonly data?: Readonly<Record<string, string>>;
          },
      );
    expect(lines.map(({ book, run, path, reason }) => [book, run, path, reason])).toEqual([
      ["cluster", undefined, "ServerUp", "ServerUp"],
      ["node/master-0", undefined, "Served", "Served"],
      ["cluster", undefined, "Served/master", "Served"],
    ]);
    expect(lines[2]?.data).toMatchObject({ requester: "127.0.0.1", config: "rendered-master-first", version: "3.2.0" });
    expect([server.log(), JSON.stringify(lines)].join("").includes(secret)).toBe(false);
  });

  test.for([
    { title: "no kubeconfig", args: ["--bootstrap-kubeconfig", "/nowhere"], says: "/nowhere does not exist" },
    {
      title: "a certificate outside of the folder",
      args: ["--bootstrap-certs", "r.example.com=../x"],
      says: "--bootstrap-certs must be HOST=FILE",
    },
    { title: "an older TLS", args: ["--tls-min-version", "VersionTLS11"], says: "VersionTLS11 is not spoken" },
    { title: "an empty list of ciphers", args: ["--tls-cipher-suites="], says: "the list of ciphers is empty" },
    { title: "another access", args: ["--access", "maybe"], says: "--access is required or insecure" },
  ])("$title is refused at the start, with the reason", async ({ args, says }) => {
    const folder = new Folder();
    const server = start([
      "--server-basedir",
      folder.path,
      "--bootstrap-kubeconfig",
      join(folder.path, "kubeconfig"),
      ...args,
    ]);
    expect(await server.exited).toBe(64);
    expect(server.log()).toContain(says);
  });

  test("follows the cluster's TLS profile, and refuses an unsupported one [server-bootstrap-1]", async () => {
    const folder = new Folder();
    folder.put("api-server/api-server.yaml", {
      apiVersion: "config.openshift.io/v1",
      kind: "APIServer",
      metadata: { name: "cluster" },
      spec: { tlsSecurityProfile: { type: "Custom", custom: { ciphers: [], minTLSVersion: "VersionTLS12" } } },
    });
    const server = start(["--server-basedir", folder.path, "--bootstrap-kubeconfig", join(folder.path, "kubeconfig")]);
    expect(await server.exited).toBe(64);
    expect(server.log()).toContain("names no ciphers");
  });
});
