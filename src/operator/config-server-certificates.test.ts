import "reflect-metadata";
import { KeyObject, X509Certificate, createPrivateKey, webcrypto } from "node:crypto";
import { X509CertificateGenerator } from "@peculiar/x509";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  addNode,
  installed,
  lookedAgain,
  movableClock,
  startOperator,
  until,
} from "../../test/support/operator-harness.ts";
import { inProcessCluster } from "../../test/simulation/in-process-cluster.ts";
import { type ConfigMap, type Secret, kubernetes } from "../api/foreign/kubernetes.ts";
import { namespace, objects } from "../api/names.ts";
import type { KubeObject, Resource } from "../api/schema/object.ts";
import { certificatesOf } from "../core/certificates/certificate-facts.ts";
import { Caches, type Context, watching } from "../kube/controller.ts";
import { createEventRecorder } from "../kube/event-recorder.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { WatchCache } from "../kube/watch-cache.ts";
import { systemClock, systemRandom } from "../ports/node/index.ts";
import { silentLogger } from "../ports/logger.ts";
import { memoryJournal } from "../ports/journal.ts";
import { ours } from "./cluster-sources.ts";
import { keepConfigServerCertificates } from "./config-server-certificates.ts";
import { createReport } from "../kube/report.ts";

const day = 86_400_000;
const authoritySecret = { name: objects.configServerCa, namespace };
const servingSecret = { name: objects.configServerTls, namespace };
const ownName = `${objects.configServer}.${namespace}.svc`;

const textOf = (secret: Secret | undefined, key: string) =>
  Buffer.from(secret?.data?.[key] ?? "", "base64").toString("utf8");
const certificateIn = (secret: Secret | undefined, key = "tls.crt") => new X509Certificate(textOf(secret, key));
const bundleIn = (map: ConfigMap | undefined) =>
  certificatesOf(map?.data?.["ca-bundle.crt"] ?? "").map(({ pem }) => new X509Certificate(pem));
const prints = (certificates: readonly X509Certificate[]) => certificates.map(({ fingerprint256 }) => fingerprint256);

/** Everything that the config server proves itself with, as it is now. */
async function proof(kube: KubeClient) {
  const authority = await kube.get(kubernetes.Secret, authoritySecret);
  const serving = await kube.get(kubernetes.Secret, servingSecret);
  const bundle = await kube.get(kubernetes.ConfigMap, authoritySecret);
  return {
    authority,
    serving,
    bundle,
    versions: [authority, serving, bundle].map((object) => object?.metadata.resourceVersion),
  };
}

/** A client that believes the bundle takes the certificate for these hosts. */
function believes(bundle: readonly X509Certificate[], served: X509Certificate, hosts: readonly string[]): boolean {
  const signers = bundle.filter((one) => one.ca && served.checkIssued(one) && served.verify(one.publicKey));
  return (
    signers.length > 0 &&
    hosts.every((host) => (/^[\d.]+$|:/.test(host) ? served.checkIP(host) : served.checkHost(host)) !== undefined)
  );
}

/**
 * An operator that has made its first certificates and whose date a test moves; `after(days)` moves the date and waits
 * for the operator's next pass.
 */
async function start(prepare?: (kube: KubeClient) => Promise<unknown>) {
  const clock = movableClock();
  const began = clock.now();
  const harness = await startOperator(prepare, { clock, configServerAddress: "127.9.9.3" });
  const { kube } = harness;
  await installed(kube);
  await until(kube, kubernetes.Secret, servingSecret, ({ metadata }) => metadata.annotations !== undefined);
  const look = async () => {
    await lookedAgain(kube);
    return proof(kube);
  };
  const after = async (days: number) => {
    clock.moveTo(began + days * day);
    return look();
  };
  return { ...harness, look, after, began };
}

/** An authority as the reference leaves it: an RSA key, PKCS #1, of ten years. */
async function rsaAuthority(): Promise<{ readonly certificate: string; readonly key: string }> {
  const algorithm = {
    name: "RSASSA-PKCS1-v1_5",
    hash: "SHA-256",
    publicExponent: new Uint8Array([1, 0, 1]),
    modulusLength: 2048,
  };
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: "01",
    name: "CN=root-ca",
    notBefore: new Date(Date.now() - day),
    notAfter: new Date(Date.now() + 1000 * day),
    signingAlgorithm: algorithm,
    keys,
  });
  return {
    certificate: `${certificate.toString("pem")}\n`,
    key: KeyObject.from(keys.privateKey).export({ type: "pkcs1", format: "pem" }) as string,
  };
}

const base64 = (text: string) => Buffer.from(text).toString("base64");

describe("the certificates of the config server", () => {
  test("are there from the first start: an authority, what machines are to believe, and a certificate for every way to the server", async () => {
    const { kube } = await start();
    const { authority, serving, bundle } = await proof(kube);
    const root = certificateIn(authority);
    expect(root.ca).toBe(true);
    expect(root.verify(root.publicKey)).toBe(true);
    expect(prints(bundleIn(bundle))).toEqual([root.fingerprint256]);
    const served = certificateIn(serving);
    expect(served.ca).toBe(false);
    expect(believes(bundleIn(bundle), served, ["127.9.9.10", "127.9.9.3", ownName])).toBe(true);
    expect(believes(bundleIn(bundle), served, ["127.9.9.11"])).toBe(false);
    expect(served.checkPrivateKey(createPrivateKey(textOf(serving, "tls.key")))).toBe(true);
    expect([authority?.type, serving?.type]).toEqual(["kubernetes.io/tls", "kubernetes.io/tls"]);
    // The signing key never leaves its Secret.
    expect(JSON.stringify(bundle)).not.toContain("PRIVATE KEY");
  });

  test("stay as they are while nothing changes, also for an operator that has just been started", async () => {
    const { kube, look, replaceOperator } = await start();
    const { versions } = await look();
    expect((await look()).versions).toEqual(versions);
    await replaceOperator("1.0.0", "suite:1");
    await lookedAgain(kube);
    expect((await proof(kube)).versions).toEqual(versions);
  });

  test("vouch for a control-plane machine that comes later; one that is no part of it changes nothing", async () => {
    const { kube, look } = await start();
    const before = await look();
    await addNode(kube, "worker-9", "worker", "127.9.9.19");
    expect((await look()).versions).toEqual(before.versions);
    await addNode(kube, "master-1", "master", "127.9.9.11");
    await until(
      kube,
      kubernetes.Secret,
      servingSecret,
      ({ metadata }) => metadata.resourceVersion !== before.serving?.metadata.resourceVersion,
    );
    const { authority, serving, bundle } = await look();
    expect(believes(bundleIn(bundle), certificateIn(serving), ["127.9.9.10", "127.9.9.11", "127.9.9.3", ownName])).toBe(
      true,
    );
    expect(certificateIn(authority).fingerprint256).toBe(certificateIn(before.authority).fingerprint256);
  });

  test("change hands over years without a moment in which a machine believes the wrong one", async () => {
    const { after, look, lines } = await start();
    const first = await look();
    const old = certificateIn(first.authority);
    const hosts = ["127.9.9.10", "127.9.9.3", ownName];

    // Half of a serving certificate's year: another one by the same authority.
    const young = await after(181);
    expect(certificateIn(young.serving).fingerprint256).toBe(certificateIn(first.serving).fingerprint256);
    const renewed = await after(184);
    expect(certificateIn(renewed.serving).fingerprint256).not.toBe(certificateIn(first.serving).fingerprint256);
    expect(prints(bundleIn(renewed.bundle))).toEqual([old.fingerprint256]);
    expect(believes([old], certificateIn(renewed.serving), hosts)).toBe(true);

    // Half of the authority's two years: the next one becomes known, and signs nothing.
    const prepared = await after(366);
    const next = certificateIn(prepared.authority, "next.crt");
    expect(next.fingerprint256).not.toBe(old.fingerprint256);
    expect(prints(bundleIn(prepared.bundle))).toEqual([old.fingerprint256, next.fingerprint256]);
    expect(certificateIn(prepared.authority).fingerprint256).toBe(old.fingerprint256);
    expect(believes([old], certificateIn(prepared.serving), hosts)).toBe(true);
    expect((await after(540)).versions[0]).toBe(prepared.versions[0]);

    // Three quarters: the new authority signs, and clients that know only the old one still trust it.
    const switched = await after(549);
    expect(certificateIn(switched.authority).fingerprint256).toBe(next.fingerprint256);
    expect(switched.authority?.data).not.toHaveProperty("next.crt");
    expect(switched.authority?.data).not.toHaveProperty("next.key");
    expect(prints(bundleIn(switched.bundle))).toEqual([next.fingerprint256, old.fingerprint256]);
    expect(believes([next], certificateIn(switched.serving), hosts)).toBe(true);
    // Clients that got the bundle in the quarter before have trusted the new authority all along.
    expect(believes(bundleIn(prepared.bundle), certificateIn(switched.serving), hosts)).toBe(true);

    // The old authority expires: the bundle no longer contains it.
    const over = await after(731);
    expect(prints(bundleIn(over.bundle))).not.toContain(old.fingerprint256);
    expect(over.authority?.data).not.toHaveProperty("retired.crt");
    expect(believes(bundleIn(over.bundle), certificateIn(over.serving), hosts)).toBe(true);

    expect(
      lines()
        .filter(({ path }) => path === "Certificate")
        .map(({ message }) => message),
    ).toEqual(
      [
        "half of its time was over",
        "signs next is published",
        "half of its time was over",
        "signs now",
        "signs next is published",
      ].map((why) => expect.stringContaining(why)),
    );
  }, 60_000);

  test("continue after years without a pass", async () => {
    const { after, look } = await start();
    const first = await look();
    const late = await after(900);
    expect(prints(bundleIn(late.bundle))).toEqual([certificateIn(late.authority).fingerprint256]);
    expect(certificateIn(late.authority).fingerprint256).not.toBe(certificateIn(first.authority).fingerprint256);
    expect(believes(bundleIn(late.bundle), certificateIn(late.serving), ["127.9.9.10"])).toBe(true);
  });

  test("a next authority that comes late is known for half of what is left before it signs", async () => {
    const { after, look } = await start();
    const first = await look();
    const prepared = await after(640);
    expect(prints(bundleIn(prepared.bundle))).toHaveLength(2);
    expect((await look()).authority?.data).toHaveProperty("next.crt");
    expect(believes([certificateIn(first.authority)], certificateIn((await after(680)).serving), ["127.9.9.10"])).toBe(
      true,
    );
    const switched = await after(686);
    expect(certificateIn(switched.authority).fingerprint256).toBe(
      certificateIn(prepared.authority, "next.crt").fingerprint256,
    );
  });

  test("an authority as the reference leaves it is replaced by one that can sign, and believed until it ends", async () => {
    const rsa = await rsaAuthority();
    const manager = { owner: "cluster-bootstrap" };
    const { look, after } = await start(async (kube) => {
      await kube.create(
        kubernetes.Secret,
        {
          apiVersion: "v1",
          kind: "Secret",
          metadata: authoritySecret,
          type: "kubernetes.io/tls",
          data: { "tls.crt": base64(rsa.certificate), "tls.key": base64(rsa.key) },
        },
        manager,
      );
      await kube.create(
        kubernetes.ConfigMap,
        { apiVersion: "v1", kind: "ConfigMap", metadata: authoritySecret, data: { "ca-bundle.crt": rsa.certificate } },
        manager,
      );
      await kube.create(
        kubernetes.Secret,
        {
          apiVersion: "v1",
          kind: "Secret",
          metadata: servingSecret,
          type: "Opaque",
          data: { "tls.crt": base64(rsa.certificate), "tls.key": base64(rsa.key) },
        },
        manager,
      );
    });
    const { authority, serving, bundle, versions } = await look();
    const theirs = new X509Certificate(rsa.certificate);
    const current = certificateIn(authority);
    expect(prints(bundleIn(bundle))).toEqual([current.fingerprint256, theirs.fingerprint256]);
    expect(current.publicKey.asymmetricKeyType).toBe("ec");
    expect(believes([current], certificateIn(serving), ["127.9.9.10", "127.9.9.3", ownName])).toBe(true);
    // The type of a Secret never changes.
    expect([authority?.type, serving?.type]).toEqual(["kubernetes.io/tls", "Opaque"]);
    expect((await look()).versions).toEqual(versions);
    expect(prints(bundleIn((await after(1001)).bundle))).not.toContain(theirs.fingerprint256);
  });

  test("lost certificates and a removed bundle are created again", async () => {
    const { kube, look } = await start();
    const before = await look();
    await kube.delete(kubernetes.ConfigMap, authoritySecret);
    await until(
      kube,
      kubernetes.ConfigMap,
      authoritySecret,
      ({ metadata }) => metadata.uid !== before.bundle?.metadata.uid,
    );
    await kube.delete(kubernetes.Secret, servingSecret);
    await until(
      kube,
      kubernetes.Secret,
      servingSecret,
      ({ metadata }) => metadata.uid !== before.serving?.metadata.uid,
    );
    const again = await look();
    expect(again.authority?.data).toEqual(before.authority?.data);
    expect(again.bundle?.data).toEqual(before.bundle?.data);
    expect(certificateIn(again.serving).fingerprint256).not.toBe(certificateIn(before.serving).fingerprint256);
    expect(believes(bundleIn(again.bundle), certificateIn(again.serving), ["127.9.9.10"])).toBe(true);
  });
});

describe("an operator that has not heard of its own writes", () => {
  /** One look after another at Secrets as they were at the start, or when `hear` was last called. */
  async function blindKeeper() {
    const clock = movableClock();
    const began = clock.now();
    const { kube } = await inProcessCluster({ clock: systemClock, random: systemRandom });
    await kube.create(kubernetes.Namespace, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
    const ports = { clock, random: systemRandom, log: silentLogger, journal: memoryJournal() };
    const caches = async (): Promise<Caches> => {
      const stopping = new AbortController();
      const held = new Caches(
        ([watch]) =>
          new WatchCache({ ...ports, kube, resource: watch?.resource ?? kubernetes.Secret, selection: ours }),
        [watching({ resource: kubernetes.Secret, selection: ours })],
      );
      const [cache] = held.all();
      const running = cache?.run(stopping.signal);
      await cache?.synced;
      stopping.abort(new Error("it hears no more"));
      await running;
      return held;
    };
    let known = await caches();
    const writes: string[] = [];
    const keep = async (resource: Resource, manifest: KubeObject) => {
      const before = await kube.get(resource, manifest.metadata);
      const { metadata } = await kube.apply(resource, manifest, { owner: "test" });
      if (metadata.resourceVersion !== before?.metadata.resourceVersion)
        writes.push(`${resource.kind}/${metadata.name}`);
    };
    const signal = new AbortController();
    onTestFinished(() => signal.abort(new Error("the test is over")));
    const look = async (days: number) => {
      clock.moveTo(began + days * day);
      const context: Context = {
        ...ports,
        kube,
        caches: known,
        events: createEventRecorder({ ...ports, kube, component: "test" }),
        report: createReport(ports),
        signal: signal.signal,
      };
      await keepConfigServerCertificates(
        { hosts: ["127.9.9.10"], servers: ["https://127.9.9.10:22623"] },
        keep,
        context,
      );
      return writes.splice(0);
    };
    return { look, hear: async () => void (known = await caches()), kube };
  }

  const everything = [
    `Secret/${objects.configServerCa}`,
    `ConfigMap/${objects.configServerCa}`,
    `Secret/${objects.configServerTls}`,
  ];

  test("makes no second authority, no second successor and no second certificate", async () => {
    const { look, hear, kube } = await blindKeeper();
    expect(await look(0)).toEqual(everything);
    expect(await look(0)).toEqual([]);
    await hear();
    expect(await look(366)).toEqual(everything);
    const { "next.crt": next } = (await kube.get(kubernetes.Secret, authoritySecret))?.data ?? {};
    expect(await look(366)).toEqual([]);
    await hear();
    expect(await look(549)).toEqual(everything);
    expect(await look(549)).toEqual([]);
    expect((await kube.get(kubernetes.Secret, authoritySecret))?.data?.["tls.crt"]).toBe(next);
    await hear();
    // Both have expired: the ConfigMap states that there is none.
    expect(await look(2000)).toEqual(everything);
    expect(await look(2000)).toEqual([]);
  });
});
