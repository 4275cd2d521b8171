import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { request } from "node:https";
import { describe, expect, test } from "vitest";
import { type Node, kubernetes } from "../../../api/foreign/kubernetes.ts";
import { annotations, hostPaths } from "../../../api/names.ts";
import { installedBy } from "./install-machine.ts";
import { systemFiles } from "../../../ports/node/index.ts";
import { conditionOf } from "../../../api/schema/object.ts";
import { canRun, ignitions } from "../../../../test/support/ignition-pair.ts";
import { type JoinHarness, joinHarness, requestsOf } from "../../../../test/support/join-harness.ts";
import { untilSeen } from "../../../../test/support/until-seen.ts";

const node = { name: "worker-9" };
const client = "/var/lib/kubelet/pki/kubelet-client-current.pem";

const isMember = (found: Node | undefined): found is Node =>
  conditionOf(found?.status?.conditions, "Ready")?.status === "True" &&
  found?.metadata.annotations?.[annotations.joinedPool] !== undefined;

const joined = ({ kube }: JoinHarness): Promise<Node> =>
  untilSeen("the machine is a ready member of its pool", () => kube.get(kubernetes.Node, node), isMember);

/** Whether somebody answers where the machine serves its logs, and with whose certificate. */
const logCertificate = (host: string): Promise<X509Certificate | undefined> =>
  new Promise((resolve) => {
    const asking = request({ host, port: 10_250, path: "/", rejectUnauthorized: false, agent: false }, (answer) => {
      const { raw } = (answer.socket as unknown as { getPeerCertificate(): { raw: Buffer } }).getPeerCertificate();
      answer.resume();
      resolve(new X509Certificate(raw));
    });
    asking.once("error", () => resolve(undefined));
    asking.end();
  });

const hasReal = ignitions.some(({ path }) => canRun(path));

describe("an empty machine", { timeout: 60_000 }, () => {
  for (const ignition of ["ours", "real"] as const) {
    test.skipIf(ignition === "real" && !hasReal)(
      `joins with ${ignition === "ours" ? "our own applier" : "the real Ignition"}, and is what its configuration says`,
      async () => {
        const harness = await joinHarness({ ignition });
        const life = harness.live();
        const found = await joined(harness);
        expect(found.metadata.labels).toMatchObject({
          "node-role.kubernetes.io/worker": "",
          "kubernetes.io/hostname": "worker-9",
        });
        expect(harness.file("/etc/motd")).toBe("welcome\n");
        expect(await installedBy(systemFiles, harness.directory)).toMatch(
          ignition === "ours" ? "mco test" : /^Ignition 2\./,
        );
        // Kernel arguments were left to the first boot, which took one reboot for them.
        const { deployments, booted } = JSON.parse(readFileSync(`${harness.directory}/state.json`, "utf8")) as {
          deployments: Record<string, { kernelArguments: string[] }>;
          booted: string;
        };
        expect(deployments[booted]?.kernelArguments).toEqual(["rw", "mitigations=auto"]);
        expect(() => harness.file(hostPaths.encapsulated)).toThrow("ENOENT");
        expect(life.told.map((line) => line.split(":")[0])).toEqual(
          expect.arrayContaining(["fetching", "installing", "joining"]),
        );
        expect(JSON.stringify(await life.ask("status"))).not.toContain("joining");
        expect(new X509Certificate(harness.file(client)).subject).toContain("CN=system:node:worker-9");
        expect(harness.file(hostPaths.kubeletKubeconfig)).toContain(client);
        const served = await untilSeen(
          "the log's certificate",
          () => logCertificate(harness.address),
          (served) => served !== undefined,
        );
        expect(served.checkIP(harness.address)).toBe(harness.address);
        expect(harness.server.served).toBe(1);
        expect((await requestsOf(harness.kube)).map(({ spec }) => spec.signerName).toSorted()).toEqual([
          "kubernetes.io/kube-apiserver-client-kubelet",
          "kubernetes.io/kubelet-serving",
        ]);
        await life.end();
      },
    );
  }

  for (const state of ["fetching", "installing", "joining"]) {
    test(`that is killed while it is ${state} continues there, and does nothing twice`, async () => {
      const harness = await joinHarness({ ignition: "ours" });
      const reached = Promise.withResolvers<void>();
      const first = harness.live({
        onReport(now) {
          if (now !== state) return;
          // At this very moment, not when somebody has heard of it.
          void first.end();
          reached.resolve();
        },
      });
      await reached.promise;
      await first.end();
      const second = harness.live();
      await joined(harness);
      expect(harness.file("/etc/motd")).toBe("welcome\n");
      // The token that it was given is good until it is shown.
      expect(harness.pointers()).toBe(1);
      expect(
        (await requestsOf(harness.kube)).filter(({ spec }) => spec.signerName.endsWith("client-kubelet")),
      ).toHaveLength(1);
      await second.end();
      // And as any other machine from now on.
      const third = harness.live();
      await untilSeen(
        "the machine is on",
        async () => (await third.ask("status").catch(() => undefined)) as { power?: string } | undefined,
        (status) => status?.power === "on",
      );
      expect(harness.pointers()).toBe(1);
      await third.end();
    });
  }

  test(
    "that is killed repeatedly, each time at another change of its disk, finally joins",
    { timeout: 120_000 },
    async () => {
      const harness = await joinHarness({ ignition: "ours" });
      let lives = 0;
      for (let joins = false; !joins;) {
        lives += 1;
        let changes = 0;
        const dead = Promise.withResolvers<"killed">();
        // Closer together where there is little to do, at the beginning and at the end.
        const last = Math.ceil(lives ** 1.7);
        const life = harness.live({
          onChange() {
            changes += 1;
            if (changes !== last) return;
            void life.end();
            dead.resolve("killed");
          },
        });
        joins = (await Promise.race([dead.promise, joined(harness).then(() => "joined" as const)])) === "joined";
        await life.end();
      }
      expect(lives).toBeGreaterThan(5);
      expect(harness.file("/etc/motd")).toBe("welcome\n");
      expect(new X509Certificate(harness.file(client)).subject).toContain("CN=system:node:worker-9");
      expect(harness.server.served).toBeLessThanOrEqual(harness.pointers());
    },
  );

  test("that has joined renews its certificates when due, and not before", async () => {
    const harness = await joinHarness({ ignition: "ours" });
    const life = harness.live();
    await joined(harness);
    await untilSeen(
      "the log's certificate",
      () => logCertificate(harness.address),
      (served) => served !== undefined,
    );
    const pem = () => [client, "/var/lib/kubelet/pki/kubelet-server-current.pem"].map((path) => harness.file(path));
    const day = 86_400_000;
    const daysOf = (text = "") => {
      const { validFrom, validTo } = new X509Certificate(text);
      return (Date.parse(validTo) - Date.parse(validFrom)) / day;
    };
    // The first certificate is good for an hour; a node in service gets one that is good for as long as the signer gives.
    await harness.kube.patch(
      kubernetes.Node,
      node,
      { type: "merge", body: { status: { conditions: [{ type: "Ready", status: "True" }] } } },
      { subresource: "status" },
    );
    await life.renew(0);
    const [first, firstServing] = pem();
    expect(daysOf(first)).toBeGreaterThan(300);
    await life.renew(200 * day);
    expect(pem()).toEqual([first, firstServing]);
    await life.renew(300 * day);
    const [second, secondServing] = pem();
    expect(second).not.toBe(first);
    expect(secondServing).not.toBe(firstServing);
    expect(new X509Certificate(second ?? "").subject).toBe(new X509Certificate(first ?? "").subject);
    await life.end();
  });

  test("that gets no configuration reports why, and joins when it gets one", async () => {
    const harness = await joinHarness({ ignition: "ours" });
    harness.server.answers = "withAnError";
    const life = harness.live();
    const status = await untilSeen(
      "the machine says why it does not join",
      async () => (await life.ask("status").catch(() => ({}))) as { state?: string; reason?: string; power?: string },
      ({ reason = "" }) => reason !== "",
    );
    expect(status).toMatchObject({ state: "fetching", reason: "HTTP 503: not ready", power: "booting" });
    expect(await harness.kube.get(kubernetes.Node, node)).toBeUndefined();
    harness.server.answers = "well";
    await joined(harness);
    await life.end();
  });

  test("survives a power cut during the join", async () => {
    const harness = await joinHarness({ ignition: "ours" });
    harness.server.answers = "withAnError";
    const life = harness.live();
    await untilSeen(
      "the machine was refused",
      () => life.told,
      (told) => told.some((line) => line.includes("503")),
    );
    await life.ask("power-cut");
    await expect(harness.kube.get(kubernetes.Node, node)).resolves.toBeUndefined();
    harness.server.answers = "well";
    const found = await joined(harness);
    expect(found.metadata.labels).toMatchObject({ "node-role.kubernetes.io/worker": "" });
    expect(harness.file("/etc/motd")).toBe("welcome\n");
    expect(harness.server.served).toBe(1);
    await life.end();
  });
});
