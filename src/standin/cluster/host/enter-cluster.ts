import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { McoError } from "../../../api/errors.ts";
import { type CertificateSigningRequest, kubernetes } from "../../../api/foreign/kubernetes.ts";
import { hostPaths, nodeIdentity, signers } from "../../../api/names.ts";
import { conditionOf } from "../../../api/schema/object.ts";
import { certificatesOf } from "../../../core/certificates/certificate-facts.ts";
import { type RequestedKey, requestCertificate } from "../../../kube/certificates.ts";
import type { KubeClient } from "../../../kube/kube-client.ts";
import { isAlreadyExists, isUnauthorized } from "../../../kube/kube-error.ts";
import { type Connection, readKubeconfig } from "../../../kube/kubeconfig.ts";
import type { Files } from "../../../ports/files.ts";
import type { Ports } from "../../../ports/index.ts";
import type { TlsFiles } from "../../../ports/listener.ts";
import { jittered } from "../../../ports/random.ts";
import type { ReportState } from "./run-host.ts";

export interface EnterOptions extends Ports {
  readonly nodeName: string;
  readonly address: string;
  /** The files of the machine, by the machine's own paths. */
  readonly files: Pick<Files, "readText" | "write" | "remove">;
  /** `reread` returns the credentials to use from now on. */
  readonly connect: (connection: Connection, reread?: () => Promise<Connection>) => KubeClient;
  /** PEM: the authority of clients that may read logs. */
  readonly clientCa: string;
}

const pki = "/var/lib/kubelet/pki";
const clientPath = `${pki}/kubelet-client-current.pem`;
const servingPath = `${pki}/kubelet-server-current.pem`;
/** How often a waiting machine checks for its certificate, and how long it waits after a denial. */
const lookMs = 1_000;
const refusedMs = 60_000;

interface Pending extends RequestedKey {
  /** Of the CertificateSigningRequest. */
  readonly name: string;
}

/**
 * Joins the cluster as a kubelet does: with the given kubeconfig it requests its own certificate, stores it at a
 * kubelet's usual path, and uses it from then on. Every step is on disk before the next one starts, so that a killed
 * machine continues with the same key and the same request.
 *
 * @returns `lost`: the credentials for joining have expired.
 */
export async function enterCluster(
  options: EnterOptions,
  report: ReportState,
  signal: AbortSignal,
): Promise<KubeClient | "lost"> {
  const { files, connect, clock } = options;
  const [kept] = certificatesOf((await files.readText(clientPath)) ?? "");
  if (kept !== undefined && Date.parse(kept.notAfter) <= clock.now()) {
    // The machine was off before it was in service, for longer than its first certificate is good.
    await files.remove(hostPaths.kubeletKubeconfig);
    await files.remove(clientPath);
  }
  if ((await files.readText(clientPath)) === undefined) {
    report("joining", "waits for its certificate");
    const bootstrap = await readKubeconfig(files, hostPaths.kubeconfig);
    let pem: string;
    try {
      pem = await certificate(
        { ...options, kube: connect(bootstrap), lifeSeconds: firstLifeSeconds },
        "client",
        [],
        report,
        signal,
      );
    } catch (error) {
      if (isUnauthorized(error)) return "lost";
      throw error;
    }
    await files.write(clientPath, pem, { mode: 0o600 });
    await files.write(hostPaths.kubeletKubeconfig, kubeletConfig(bootstrap), { mode: 0o600 });
    await files.remove(pendingPath("client"));
  }
  // A machine that was killed between the two has the certificate alone.
  if ((await files.readText(hostPaths.kubeletKubeconfig)) === undefined)
    await files.write(hostPaths.kubeletKubeconfig, kubeletConfig(await readKubeconfig(files, hostPaths.kubeconfig)), {
      mode: 0o600,
    });
  const own = () => readKubeconfig(files, hostPaths.kubeletKubeconfig);
  return connect(await own(), own);
}

/** The certificate that a kubelet serves logs with: its own name and address, which its Node has to say first. */
export async function servingCertificate(
  options: EnterOptions & { readonly kube: KubeClient },
  signal: AbortSignal,
): Promise<TlsFiles> {
  const { files, nodeName, address } = options;
  let pem = await files.readText(servingPath);
  if (pem === undefined) {
    pem = await certificate(options, "serving", [nodeName, address], () => undefined, signal);
    await files.write(servingPath, pem, { mode: 0o600 });
    await files.remove(pendingPath("serving"));
  }
  return { certificate: pem, key: pem, clientCa: options.clientCa };
}

/** Once this much of its life is over, a certificate is replaced. */
const renewAfter = 0.8;
const renewLookMs = 6 * 3_600_000;
/**
 * Life of a certificate until the node is in service: the name of a machine that never arrives is free after that. The
 * node's first certificate in service is good for as long as the signer gives.
 */
const firstLifeSeconds = 3600;
/** How often a node that is not in service yet checks whether it is. */
const inServiceLookMs = 30_000;

/**
 * Replaces certificates of the machine whose life is mostly over, and the short-lived first one as soon as the node is
 * in service. The next connection shows the new one; logs are served with theirs from the next start of the host
 * process on.
 *
 * @returns whether the client's certificate is still a short-lived one.
 */
export async function renewCertificates(
  options: EnterOptions & { readonly kube: KubeClient },
  signal: AbortSignal,
): Promise<boolean> {
  const { files, clock, log, nodeName, address } = options;
  let isShort = false;
  for (const [purpose, path, hosts] of [
    ["client", clientPath, []],
    ["serving", servingPath, [nodeName, address]],
  ] as const) {
    const [current] = certificatesOf((await files.readText(path)) ?? "");
    if (current === undefined) continue;
    const [from, until] = [Date.parse(current.notBefore), Date.parse(current.notAfter)];
    const isFirst = purpose === "client" && until - from <= firstLifeMostMs;
    const isInService = isFirst && (await isReady(options, signal));
    isShort ||= isFirst && !isInService;
    if (!isInService && clock.now() < from + (until - from) * renewAfter) continue;
    const asked = isFirst && !isInService ? { ...options, lifeSeconds: firstLifeSeconds } : options;
    await files.write(path, await certificate(asked, purpose, hosts, () => undefined, signal), { mode: 0o600 });
    await files.remove(pendingPath(purpose));
    log.info({ purpose, before: current.notAfter }, "certificate renewed");
  }
  return isShort;
}

/** Signers begin a certificate's life some minutes earlier than now, so that clocks may differ. */
const firstLifeMostMs = 2 * firstLifeSeconds * 1000;

async function isReady(
  { kube, nodeName }: Pick<EnterOptions, "nodeName"> & { readonly kube: KubeClient },
  signal: AbortSignal,
): Promise<boolean> {
  const node = await kube.get(kubernetes.Node, { name: nodeName }, { signal });
  return conditionOf(node?.status?.conditions, "Ready")?.status === "True";
}

/** Renews due certificates until `signal` aborts. */
export async function keepCertificates(
  options: EnterOptions & { readonly kube: KubeClient },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const isShort = await renewCertificates(options, signal).catch((error: unknown) => {
      if (!signal.aborted) options.log.warn({ error }, "certificates not renewed, trying again");
      return true;
    });
    const pauseMs = jittered(options.random, isShort ? inServiceLookMs : renewLookMs, 0.2);
    await options.clock.sleep(pauseMs, signal).catch(() => undefined);
  }
}

const pendingPath = (purpose: "client" | "serving") => `${pki}/kubelet-${purpose}-pending.json`;

/** Asks for a certificate until there is one. @returns PEM: certificate and key. */
async function certificate(
  options: EnterOptions & {
    readonly kube: KubeClient;
    /** `undefined`: as long as the signer gives. */
    readonly lifeSeconds?: number;
  },
  purpose: "client" | "serving",
  hosts: readonly string[],
  report: ReportState,
  signal: AbortSignal,
): Promise<string> {
  const { files, kube, clock, random, log, nodeName } = options;
  const username = `${nodeIdentity.userPrefix}${nodeName}`;
  for (;;) {
    const pending = await pendingRequest();
    const request =
      (await kube.get(kubernetes.CertificateSigningRequest, { name: pending.name }, { signal })) ??
      (await file(pending));
    const refusal = ["Denied", "Failed"]
      .map((type) => conditionOf(request.status?.conditions, type))
      .find((condition) => condition?.status === "True");
    if (refusal !== undefined) {
      const { reason = "", message = "" } = refusal;
      report("refused", `${reason}: ${message}`);
      log.warn({ request: pending.name, reason, message }, "certificate refused");
      await clock.sleep(jittered(random, refusedMs, 0.1), signal);
      // Another key, another request.
      await files.remove(pendingPath(purpose));
      continue;
    }
    const granted = request.status?.certificate ?? "";
    if (granted !== "") return `${atob(granted)}${pending.key}`;
    await clock.sleep(jittered(random, lookMs, 0.2), signal);
  }

  async function pendingRequest(): Promise<Pending> {
    const kept = await files.readText(pendingPath(purpose));
    if (kept !== undefined) return JSON.parse(kept) as Pending;
    const asked = await requestCertificate({
      commonName: username,
      organizations: [nodeIdentity.group],
      ...(hosts.length === 0 ? {} : { hosts }),
    });
    const made = { ...asked, name: `node-csr-${bytesToHex(sha256(utf8ToBytes(asked.request))).slice(0, 32)}` };
    await files.write(pendingPath(purpose), JSON.stringify(made), { mode: 0o600 });
    return made;
  }

  async function file({ name, request }: Pending): Promise<CertificateSigningRequest> {
    log.info({ request: name, purpose }, "asking for a certificate");
    const spec = {
      request: btoa(request),
      signerName: purpose === "client" ? signers.kubeletClient : signers.kubeletServing,
      usages: ["digital signature", purpose === "client" ? "client auth" : "server auth"],
      ...(options.lifeSeconds === undefined ? {} : { expirationSeconds: options.lifeSeconds }),
    };
    const made = {
      apiVersion: "certificates.k8s.io/v1",
      kind: "CertificateSigningRequest",
      metadata: { name },
      spec,
    } as unknown as CertificateSigningRequest;
    try {
      return await kube.create(kubernetes.CertificateSigningRequest, made, { signal });
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      return made;
    }
  }
}

/** As a kubelet writes it. */
function kubeletConfig({ server, ca }: Connection): string {
  if (ca === undefined)
    throw new McoError("MCO_KUBECONFIG_INVALID", {
      path: hostPaths.kubeconfig,
      problem: "it names no authority of the API server",
    });
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "default-context",
    clusters: [{ name: "default-cluster", cluster: { server, "certificate-authority-data": btoa(ca) } }],
    users: [{ name: "default-auth", user: { "client-certificate": clientPath, "client-key": clientPath } }],
    contexts: [
      { name: "default-context", context: { cluster: "default-cluster", user: "default-auth", namespace: "default" } },
    ],
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}
