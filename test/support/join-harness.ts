import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { serveApiServer } from "../../src/standin/apiserver/node/serve.ts";
import { type CertificateSigningRequest, kubernetes } from "../../src/api/foreign/kubernetes.ts";
import { ControllerConfig } from "../../src/api/kinds/controller-config.ts";
import { JoinPlace } from "../../src/api/kinds/join-place.ts";
import { MachineConfigPool } from "../../src/api/kinds/machine-config-pool.ts";
import { NodeBinding } from "../../src/api/kinds/node-binding.ts";
import { ProvisioningToken } from "../../src/api/kinds/provisioning-token.ts";
import { annotations, hostPaths, joinNamespace, namespace, objects } from "../../src/api/names.ts";
import { runClusterControllers } from "../../src/standin/cluster/controllers/run-cluster-controllers.ts";
import { enterCluster, renewCertificates, servingCertificate } from "../../src/standin/cluster/host/enter-cluster.ts";
import { forgetInstallation, installMachine, pointerPath } from "../../src/standin/cluster/host/install-machine.ts";
import { type ReportState, runHost } from "../../src/standin/cluster/host/run-host.ts";
import { machineMounts, resolveInRoot } from "../../src/host/directory/root-folder.ts";
import { addressesOf, networkFor } from "../../src/standin/cluster/layout.ts";
import { stockOsImage, writeStockOs } from "../../src/standin/cluster/stock-os.ts";
import { bindingController } from "../../src/controller/binding-controller.ts";
import { joinController } from "../../src/controller/join-controller.ts";
import { placeLifeMs } from "../../src/core/join/judge-csr.ts";
import { completeFirstBoot } from "../../src/daemon/first-boot.ts";
import { directoryHost, directoryMachine } from "../../src/host/directory/directory-host.ts";
import { systemDisk } from "../../src/host/directory/disk.ts";
import { machineFiles } from "../../src/host/directory/machine-files.ts";
import type { ControlHandler } from "../../src/host/host.ts";
import { findIgnition } from "../../src/host/ignition/run-ignition.ts";
import { encodeDataUrl } from "../../src/ignition/index.ts";
import { certificateAuthority } from "../../src/kube/certificates.ts";
import { runControllers } from "../../src/kube/controller.ts";
import { createEventRecorder } from "../../src/kube/event-recorder.ts";
import { type KubeClient, createKubeClient } from "../../src/kube/kube-client.ts";
import type { Connection } from "../../src/kube/kubeconfig.ts";
import { httpsTransport } from "../../src/kube/node/https-transport.ts";
import type { Files } from "../../src/ports/files.ts";
import { silentLogger } from "../../src/ports/logger.ts";
import {
  downloadDocument,
  httpsListen,
  systemClock,
  systemFiles,
  systemProcesses,
  systemRandom,
} from "../../src/ports/node/index.ts";
import { memoryJournal } from "../../src/ports/journal.ts";
import { ignitions, canRun } from "./ignition-pair.ts";
import { ampleLimits } from "./ample-limits.ts";

const pool = "worker";
const config = "rendered-worker-0123456789abcdef0123456789abcdef";
const ports = { clock: systemClock, random: systemRandom, log: silentLogger, journal: memoryJournal() };

/** One life of the host process. */
export interface HostLife {
  readonly told: readonly string[];
  ask(verb: string): Promise<unknown>;
  /** Renews certificates that are due, as if this much time had passed. */
  renew(afterMs: number): Promise<void>;
  /** Ends the process as if it were killed now: waits for nothing that it does. */
  end(): Promise<void>;
}

export interface JoinHarness {
  readonly kube: KubeClient;
  readonly directory: string;
  readonly address: string;
  /** How many answers the config server has given, and how it answers now. */
  readonly server: { served: number; answers: "well" | "withAnError" };
  readonly pointers: () => number;
  /** Reads a file of the machine. */
  file(path: string): string;
  /** `onReport` is called with each state, `onChange` before each change of the disk. */
  live(hear?: { readonly onReport?: (state: string) => void; readonly onChange?: () => void }): HostLife;
}

export async function joinHarness(options: { readonly ignition: "real" | "ours" }): Promise<JoinHarness> {
  const folder = mkdtempSync(join(tmpdir(), "mco-join-"));
  chmodSync(folder, 0o755);
  const directory = join(folder, "hosts", "worker-9");
  await systemFiles.makeDirectory(directory);
  const addresses = addressesOf(networkFor(folder, 0));
  const ending = new AbortController();
  const closers: (() => void)[] = [];

  const authority = await certificateAuthority({ name: "cluster-ca", ...ports });
  const tls = await authority.issue({ commonName: "apiserver", usage: "server", hosts: [addresses.apiServer] });
  const tokens = await authority.issue({ commonName: "tokens", usage: "client" });
  const running = await serveApiServer({
    file: join(folder, "store.db"),
    host: addresses.apiServer,
    port: 0,
    tls,
    clusterCA: authority.certificate,
    tokenKey: tokens.key,
    ...ports,
    signal: ending.signal,
  });
  const connect = (connection: Connection): KubeClient => {
    const transport = httpsTransport({
      connection,
      reread: undefined,
      clock: systemClock,
      files: systemFiles,
      processes: systemProcesses,
      environment: {},
    });
    closers.push(() => transport.close());
    return createKubeClient({
      transport: transport.exchange,
      clock: systemClock,
      random: systemRandom,
      userAgent: "test",
    });
  };
  const kube = createKubeClient({
    transport: running.server.as({ name: "admin", groups: ["system:masters"] }),
    clock: systemClock,
    random: systemRandom,
    userAgent: "test",
  });
  for (const kind of [MachineConfigPool, ControllerConfig, JoinPlace, NodeBinding, ProvisioningToken])
    await kube.create(kubernetes.CustomResourceDefinition, kind.crd() as never);
  await kube.create(MachineConfigPool, {
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfigPool",
    metadata: { name: pool },
    spec: {
      nodeSelector: { matchLabels: { "node-role.kubernetes.io/worker": "" } },
      machineConfigSelector: { matchLabels: {} },
    },
  } as never);
  for (const name of [namespace, joinNamespace])
    await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  const account = `${objects.nodeBootstrapperPrefix}${pool}`;
  await kube.create(kubernetes.ServiceAccount, {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: { name: account, namespace: joinNamespace },
  });
  const rbac = "rbac.authorization.k8s.io";
  await kube.create(kubernetes.ClusterRoleBinding, {
    apiVersion: `${rbac}/v1`,
    kind: "ClusterRoleBinding",
    metadata: { name: account },
    roleRef: { apiGroup: rbac, kind: "ClusterRole", name: "system:node-bootstrapper" },
    subjects: [{ kind: "ServiceAccount", name: account, namespace: joinNamespace }],
  } as never);

  const controllers = [
    runClusterControllers(
      {
        ...ports,
        kube,
        events: createEventRecorder({ ...ports, kube, component: "c" }),
        rootCa: "",
        authority,
        nodeMonitorGraceSeconds: 1e6,
      },
      ending.signal,
    ),
    runControllers(
      [joinController(), bindingController()],
      { ...ports, kube, events: createEventRecorder({ ...ports, kube, component: "c" }), coalesceMs: 5 },
      ending.signal,
    ),
  ];

  // The config server: each token is valid for one answer.
  const serverAuthority = await certificateAuthority({ name: "server-ca", ...ports });
  const serverTls = await serverAuthority.issue({
    commonName: "config-server",
    usage: "server",
    hosts: [addresses.configServer],
  });
  const good = new Set<string>();
  let pointers = 0;
  const server: { served: number; answers: "well" | "withAnError" } = { served: 0, answers: "well" };
  const file = (path: string, contents: string, mode: number) => ({
    path,
    overwrite: true,
    mode,
    contents: { source: encodeDataUrl(contents) },
  });

  async function served(): Promise<{ readonly answer: object; readonly credential: string }> {
    const asked = (await kube.request({
      method: "POST",
      target: `/api/v1/namespaces/${joinNamespace}/serviceaccounts/${account}/token`,
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenRequest",
        spec: { expirationSeconds: 3600 },
      }),
    })) as { status: { token: string } };
    const kubeconfig = {
      apiVersion: "v1",
      kind: "Config",
      "current-context": "kubelet",
      clusters: [
        { name: "local", cluster: { server: running.url, "certificate-authority-data": btoa(authority.certificate) } },
      ],
      users: [{ name: "kubelet", user: { token: asked.status.token } }],
      contexts: [{ name: "kubelet", context: { cluster: "local", user: "kubelet" } }],
    };
    const machineConfig = (ignition: object) =>
      JSON.stringify({
        apiVersion: "machineconfiguration.openshift.io/v1",
        kind: "MachineConfig",
        metadata: { name: config },
        spec: { osImageURL: stockOsImage, kernelArguments: ["mitigations=auto"], config: ignition },
      });
    const content = {
      ignition: { version: "3.2.0" },
      storage: { files: [file("/etc/motd", "welcome\n", 0o644)] },
      systemd: {
        units: [
          {
            name: "extra.service",
            enabled: true,
            contents: "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n",
          },
        ],
      },
    };
    const more = [
      file(
        hostPaths.nodeAnnotations,
        JSON.stringify({
          [annotations.currentConfig]: config,
          [annotations.desiredConfig]: config,
          [annotations.state]: "Done",
        }),
        0o644,
      ),
      file(hostPaths.kubeconfig, JSON.stringify(kubeconfig), 0o600),
      file(hostPaths.servedConfig, machineConfig(content), 0o600),
      file(hostPaths.encapsulated, machineConfig({ ignition: { version: "3.2.0" } }), 0o600),
    ];
    const [, claims = ""] = asked.status.token.split(".");
    const { jti } = JSON.parse(Buffer.from(claims, "base64url").toString()) as { readonly jti: string };
    return {
      answer: { ...content, storage: { files: [...content.storage.files, ...more] } },
      credential: `JTI=${jti}`,
    };
  }

  const { port } = await httpsListen(
    { host: addresses.configServer, port: 0, tls: serverTls, limits: ampleLimits },
    async ({ target, headers }) => {
      if (server.answers === "withAnError")
        return { status: 503, headers: {}, body: JSON.stringify({ message: "not ready" }) };
      if (target !== `/config/${pool}`) return { status: 404, headers: {}, body: "" };
      if (!good.delete(headers["authorization"] ?? ""))
        return { status: 401, headers: {}, body: JSON.stringify({ message: "no" }) };
      server.served += 1;
      const { answer, credential } = await served();
      const expiresAt = new Date(systemClock.now() + placeLifeMs).toISOString();
      await kube.create(JoinPlace, {
        apiVersion: JoinPlace.apiVersion,
        kind: JoinPlace.kind,
        metadata: { name: `place-${server.served}` },
        spec: { pool, expiresAt, credential, addresses: [addresses.host(9)] },
      });
      return { status: 200, headers: { "content-type": "application/json" }, body: JSON.stringify(answer) };
    },
    ending.signal,
  );

  async function newPointer(): Promise<void> {
    pointers += 1;
    const token = `Bearer token-${pointers}`;
    good.clear();
    good.add(token);
    const pointer = {
      ignition: {
        version: "3.2.0",
        config: {
          merge: [
            {
              source: `https://${addresses.configServer}:${port}/config/${pool}`,
              httpHeaders: [{ name: "Authorization", value: token }],
            },
          ],
        },
        security: { tls: { certificateAuthorities: [{ source: encodeDataUrl(serverAuthority.certificate) }] } },
      },
    };
    await systemFiles.write(pointerPath(directory), JSON.stringify(pointer), { mode: 0o600 });
  }

  const stock = await writeStockOs(systemFiles, join(folder, "os"));
  const images = { treeOf: () => Promise.resolve(stock), fetch: () => Promise.resolve() };
  const programs = ignitions.filter(({ path }) => canRun(path)).map(({ path }) => path);

  function live({
    onReport = () => undefined,
    onChange = () => undefined,
  }: Parameters<JoinHarness["live"]>[0] = {}): HostLife {
    const life = new AbortController();
    const told: string[] = [];
    /** Changes of the disk; a killed process makes none. */
    const mortal = <T extends object>(changer: T, verbs: readonly (keyof T)[]): T =>
      new Proxy(changer, {
        get(target, verb: string) {
          const work = target[verb as keyof T];
          if (!verbs.includes(verb as keyof T) || typeof work !== "function") return work;
          return async (...words: readonly unknown[]): Promise<unknown> => {
            onChange();
            if (life.signal.aborted) throw new Error("killed");
            return (work as (...given: readonly unknown[]) => unknown)(...words);
          };
        },
      });
    const ownFiles: Files = mortal(systemFiles, ["write", "remove", "makeDirectory", "append", "rename", "symlink"]);
    const disk = mortal(systemDisk, ["create", "symlink", "mkdir", "rename", "unlink", "rmdir"]);
    let own: KubeClient | undefined;
    let control: ControlHandler = () => Promise.reject(new Error("not yet"));
    const machine = directoryMachine({ directory, images, disk });
    const noting =
      (report: ReportState): ReportState =>
      (state, reason) => {
        report(state, reason);
        told.push(`${state}: ${reason}`);
        onReport(state);
      };
    const entering = {
      ...ports,
      nodeName: "worker-9",
      address: addresses.host(9),
      files: machineFiles(directory, disk),
      connect,
      clientCa: authority.certificate,
    };
    const done = runHost(
      {
        ...ports,
        nodeName: "worker-9",
        address: addresses.host(9),
        directory,
        files: ownFiles,
        processes: systemProcesses,
        machine,
        install: async (report, signal) => {
          const ignition =
            options.ignition === "real"
              ? await findIgnition(programs.toReversed(), { files: systemFiles, processes: systemProcesses }, signal)
              : undefined;
          await installMachine(
            {
              ...ports,
              directory,
              machine,
              os: { image: stockOsImage, kernelArguments: ["rw"], packages: [], kernelType: "default" },
              files: ownFiles,
              processes: systemProcesses,
              download: downloadDocument,
              ignition,
              version: "test",
              newPointer,
            },
            noting(report),
            signal,
          );
        },
        async beforeKubelet(signal) {
          const host = directoryHost({
            directory,
            images,
            disk,
            requestReboot: async (because) => void (await control("reboot", because)),
          });
          await completeFirstBoot({ ...ports, host, file: hostPaths.encapsulated }, signal);
        },
        async enter(report, signal) {
          const entered = await enterCluster(entering, noting(report), signal);
          if (entered === "lost") await forgetInstallation(systemFiles, directory);
          else own = entered;
          return entered;
        },
        serving: (client, signal) => servingCertificate({ ...entering, kube: client }, signal),
        taints: [],
        serveControl: (handle) => {
          control = handle;
          return Promise.resolve();
        },
        listen: httpsListen,
        locate: {
          below: (root, path) => resolveInRoot(root, path, {}, true),
          onMachine: (path) => resolveInRoot(`${directory}/rootfs`, path, machineMounts(directory), true),
        },
        program: ["true"],
        environment: {},
        version: "test",
        architecture: "amd64",
      },
      life.signal,
    );
    const renew = (afterMs: number): Promise<void> =>
      own === undefined
        ? Promise.reject(new Error("no member yet"))
        : renewCertificates(
            { ...entering, kube: own, clock: { ...systemClock, now: () => systemClock.now() + afterMs } },
            life.signal,
          ).then(() => undefined);
    let ended: Promise<void> | undefined;
    const end = () => {
      life.abort(new Error("killed"));
      ended ??= done.catch(() => undefined).then(() => systemFiles.remove(`${directory}/orderly-end`));
      return ended;
    };
    closers.push(() => void end());
    return { told, ask: (verb) => control(verb, "test"), renew, end };
  }

  onTestFinished(async () => {
    for (const close of closers.toReversed()) close();
    ending.abort();
    await Promise.all([...controllers, running.closed]);
    rmSync(folder, { recursive: true, force: true });
  });
  await newPointer();

  return {
    kube,
    directory,
    address: addresses.host(9),
    server,
    pointers: () => pointers,
    file: (path) =>
      readFileSync(path.startsWith("/var/") ? `${directory}/sysroot${path}` : `${directory}/rootfs${path}`, "utf8"),
    live,
  };
}

/** The machine's certificate requests, oldest first. */
export async function requestsOf(kube: KubeClient): Promise<readonly CertificateSigningRequest[]> {
  return (await kube.list(kubernetes.CertificateSigningRequest)).items;
}
