import { describe, expect, test } from "vitest";
import { MachineConfigNode } from "../api/kinds/machine-config-node.ts";
import { annotations, hostPaths } from "../api/names.ts";
import type { Host } from "../host/host.ts";
import { ImageHarness, imageNumber, imageOf, stock, desiredImage } from "../../test/support/image-harness.ts";
import { type Content, type MachineHarness, machineConfigOf } from "../../test/support/machine-harness.ts";

const { signal } = new AbortController();
const unit = (words = "a") => `[Service]\nExecStart=/bin/${words}\n[Install]\nWantedBy=multi-user.target\n`;
const first: Content = {
  files: { "/etc/app.conf": "one", "/etc/only-one": "1", "/var/lib/app/data": "one" },
  units: [{ name: "a.service", enabled: true, contents: unit() }],
  keys: ["ssh-ed25519 A"],
};
const second: Content = {
  files: { "/etc/app.conf": "two", "/etc/only-two": "2", "/var/lib/app/data": "two", "/var/lib/app/more": "2" },
  units: [{ name: "b.service", enabled: true, contents: unit("b") }],
  keys: ["ssh-ed25519 B"],
};

/** Paths that the daemon may write on a machine whose image holds its configuration. */
const itsOwn = new Set<string>([
  hostPaths.currentConfig,
  hostPaths.currentImage,
  hostPaths.force,
  hostPaths.nodeAnnotations,
  hostPaths.nodeAnnotationsDone,
  `/etc/systemd/system/${hostPaths.settleUnit}`,
  `/etc/systemd/system/multi-user.target.wants/${hostPaths.settleUnit}`,
]);

interface Audit {
  readonly calls: string[];
  readonly host: (host: Host) => Host;
}

/** Notes what the daemon writes that is a configuration's: files, units, accounts. */
function audit(): Audit {
  const calls: string[] = [];
  const host = (of: Host): Host => ({
    ...of,
    files: {
      ...of.files,
      write: (writes, until) => (
        calls.push(...writes.map(({ path }) => `write ${path}`).filter((call) => !itsOwn.has(call.slice(6)))),
        of.files.write(writes, until)
      ),
      remove: (path, until) => (
        itsOwn.has(path) ? undefined : calls.push(`remove ${path}`),
        of.files.remove(path, until)
      ),
      makeFolder: (path, own, until) => (calls.push(`makeFolder ${path}`), of.files.makeFolder(path, own, until)),
    },
    units: {
      ...of.units,
      enable: (name, until) => (
        name === hostPaths.settleUnit ? undefined : calls.push(`enable ${name}`),
        of.units.enable(name, until)
      ),
      disable: (name, until) => (
        name === hostPaths.settleUnit ? undefined : calls.push(`disable ${name}`),
        of.units.disable(name, until)
      ),
      preset: (name, until) => (calls.push(`preset ${name}`), of.units.preset(name, until)),
      relink: (change, until) => (calls.push("relink"), of.units.relink(change, until)),
    },
    users: {
      ...of.users,
      setPasswordHash: (name, hash, until) => (
        calls.push(`password ${name}`),
        of.users.setPasswordHash(name, hash, until)
      ),
    },
  });
  return { calls, host };
}

async function classic(content: Content = first): Promise<ImageHarness> {
  const made = await ImageHarness.make();
  await made.harness.updatedTo("rendered-1", content);
  return made;
}

/** A machine that boots an image of its configuration. */
async function inImageMode(content: Content = first): Promise<ImageHarness> {
  const made = await classic(content);
  await made.roll("rendered-1i", content, 1);
  await made.untilHas("rendered-1i", 1);
  made.harness.reboots.length = 0;
  made.harness.effects.length = 0;
  return made;
}

/** Managed paths as they are: those that a classic machine with `content` has, too. */
async function filesOf(
  harness: MachineHarness,
  content: Content,
): Promise<Readonly<Record<string, string | undefined>>> {
  const paths = [
    ...Object.keys(content.files ?? {}),
    ...(content.units ?? []).map((one) => `/etc/systemd/system/${(one as { name: string }).name}`),
    hostPaths.sshKeys,
  ];
  return Object.fromEntries(await Promise.all(paths.map(async (path) => [path, await harness.file(path)] as const)));
}

/** All that the machine holds beside what the daemon keeps of its own. */
const treeOf = (harness: MachineHarness) => new Map([...harness.host.snapshot()].filter(([path]) => !itsOwn.has(path)));

describe("a machine that is given an image which holds its configuration", () => {
  test("boots it with the configuration's content; the daemon never writes a file, unit or account [daemon-images-1]", async () => {
    const made = await classic();
    const { harness } = made;
    const audited = audit();
    harness.tamper = audited.host;
    harness.kill();
    harness.start();
    await made.roll("rendered-2", second, 2);
    await made.untilHas("rendered-2", 2);
    expect(audited.calls).toEqual([]);
    expect((await harness.host.os.status(signal)).booted.image).toBe(imageNumber(2));
    expect(await filesOf(harness, second)).toEqual({
      "/etc/app.conf": "two",
      "/etc/only-two": "2",
      "/var/lib/app/data": "two",
      "/var/lib/app/more": "2",
      "/etc/systemd/system/b.service": unit("b"),
      [hostPaths.sshKeys]: "ssh-ed25519 B\n",
    });
    expect(await harness.file("/etc/only-one")).toBeUndefined();
    expect(await harness.file("/etc/systemd/system/a.service")).toBeUndefined();
    expect((await harness.host.units.state(["b.service"], signal)).get("b.service")).toEqual({
      enablement: "enabled",
      activity: "active",
    });
    expect(await harness.file(hostPaths.currentImage)).toBe(imageNumber(2));
  });

  test("reboots once and applies no content if the image was built from its own configuration [daemon-images-6]", async () => {
    const made = await classic();
    await made.roll("rendered-1i", first, 1);
    await made.untilHas("rendered-1i", 1);
    expect(made.harness.settlings).toEqual([{ verdict: "settled", changed: [] }]);
    expect(made.harness.reboots).toHaveLength(1);
    const { history } = made.harness;
    expect(
      history.filter(({ path }) => path === "PostAction/Settled").map(({ mark, reason }) => `${mark} ${reason}`),
    ).toEqual(["end Settled"]);
    // The steps in their order: nothing that could be owed is done before it is written down.
    expect(
      made.harness.effects.filter(
        (effect) => effect.startsWith("os.") || effect.startsWith("ledger.") || effect === "credentials",
      ),
    ).toEqual([
      // Of the target: its first pull may need them.
      "credentials",
      "os.prefetch",
      ...Array.from({ length: 3 }, () => "ledger.write"),
      "credentials",
      "ledger.write",
      "ledger.write",
      "os.stage",
      "ledger.write",
      "os.reboot",
      "ledger.write",
      "ledger.write",
      "ledger.remove",
      "ledger.remove",
    ]);
  });

  test("has its drifted and stale files corrected at boot, once, with one reboot [daemon-images-16]", async () => {
    const made = await classic();
    const { harness } = made;
    await made.roll("rendered-2", second, 2);
    // In the last moment, when nothing looks any more.
    harness.tamper = (host) => ({
      ...host,
      os: {
        ...host.os,
        reboot: async (because, until) => (
          await harness.put("/etc/app.conf", "drifted"),
          host.os.reboot(because, until)
        ),
      },
    });
    harness.kill();
    harness.start();
    await made.untilHas("rendered-2", 2);
    expect(await harness.file("/etc/app.conf")).toBe("two");
    expect(harness.settlings[0]).toMatchObject({
      verdict: "settled",
      changed: expect.arrayContaining(["/etc/app.conf"]) as unknown,
    });
    expect(harness.reboots).toHaveLength(1);
  });

  test("boots the next image, and applies only content that images cannot contain [daemon-images-17]", async () => {
    const made = await inImageMode();
    // For the system that it could still boot.
    expect(await made.harness.ledgerDocument("payloads.json")).toMatchObject({ images: [stock] });
    await made.roll("rendered-2", second, 2);
    await made.untilHas("rendered-2", 2);
    expect(made.harness.settlings.at(-1)).toEqual({
      verdict: "settled",
      changed: [hostPaths.sshKeys, "/var/lib/app/data", "/var/lib/app/more"],
    });
    expect(await made.harness.file("/etc/only-one")).toBeUndefined();
    expect(made.harness.reboots).toHaveLength(1);
    expect(await made.harness.ledgerDocument("payloads.json")).toBeUndefined();
  });

  test("restores its previous configuration, also below /var, when it boots its provisioned system [daemon-images-18]", async () => {
    const made = await classic();
    const { harness } = made;
    const before = treeOf(harness);
    await made.roll("rendered-2", second, 2);
    await made.untilHas("rendered-2", 2);
    await harness.host.os.bootPrevious(signal);
    harness.kill();
    await harness.host.boot({ orderly: true });
    expect(treeOf(harness)).toEqual(before);
    // Somebody booted it; its daemon brings it to its target again when it is told to.
    harness.start();
    await harness.untilState("Degraded");
    await harness.put(hostPaths.force, "");
    await harness.pass(60_000);
    await made.untilHas("rendered-2", 2);
    expect(await filesOf(harness, second)).toMatchObject({ "/etc/app.conf": "two", "/var/lib/app/data": "two" });
  });

  test("has companions of a unit enabled, and masked units masked, when it boots its provisioned system [daemon-images-20]", async () => {
    const made = await ImageHarness.make();
    const bare = made.images[stock] ?? { etc: {}, usr: {} };
    const socket = "[Socket]\nListenStream=/run/p\n[Install]\nWantedBy=sockets.target\n";
    const os = { ...bare, usr: { ...bare.usr, "/usr/lib/systemd/system/pair.socket": socket } };
    made.images[stock] = os;
    await made.harness.updatedTo("rendered-1", {
      files: { "/etc/app.conf": "one" },
      units: [
        { name: "pair.service", enabled: true, contents: `${unit("pair")}Also=pair.socket\n` },
        { name: "crio.service", mask: true },
      ],
    });
    const { harness } = made;
    const before = treeOf(harness);
    expect([...before.keys()]).toContain("/etc/systemd/system/sockets.target.wants/pair.socket");
    await made.roll("rendered-2", second, 2, "full", os);
    await made.untilHas("rendered-2", 2);
    await harness.host.os.bootPrevious(signal);
    harness.kill();
    await harness.host.boot({ orderly: true });
    expect(treeOf(harness)).toEqual(before);
  });

  test("restores the previous image's configuration when it boots the previous image", async () => {
    const made = await inImageMode();
    const { harness } = made;
    const before = treeOf(harness);
    await made.roll("rendered-2", second, 2);
    await made.untilHas("rendered-2", 2);
    await harness.host.os.bootPrevious(signal);
    harness.kill();
    await harness.host.boot({ orderly: true });
    expect(treeOf(harness)).toEqual(before);
  });

  test("follows kernel arguments with one reboot and no new image [daemon-images-10]", async () => {
    const made = await inImageMode();
    await made.harness.config("rendered-k", { ...first, spec: { kernelArguments: ["nosmt"] } });
    await made.give("rendered-k", 1);
    await made.harness.untilDone("rendered-k");
    expect((await made.harness.host.os.status(signal)).booted).toMatchObject({
      image: imageNumber(1),
      kernelArguments: ["root=x", "nosmt"],
    });
    expect(made.harness.reboots).toHaveLength(1);
    expect(made.harness.effects).not.toContain("os.prefetch");
  });

  test("takes extensions and kernel from the image, and layers no package", async () => {
    const made = await classic();
    const content = { ...first, spec: { extensions: ["usbguard"], kernelType: "realtime" } };
    await made.roll("rendered-2", content, 2);
    await made.untilHas("rendered-2", 2);
    expect((await made.harness.host.os.status(signal)).booted).toMatchObject({ packages: [], kernelType: "default" });
  });

  test("gets a new rendered configuration with the same image: the daemon writes credentials without a reboot [daemon-images-7]", async () => {
    const made = await inImageMode();
    const { harness } = made;
    const audited = audit();
    harness.tamper = audited.host;
    harness.kill();
    harness.start();
    await harness.config("rendered-c", { ...first, files: { ...first.files, "/var/lib/kubelet/config.json": "{}" } });
    await made.give("rendered-c", 1);
    await harness.untilDone("rendered-c");
    expect(audited.calls).toEqual(["write /var/lib/kubelet/config.json"]);
    expect(harness.reboots).toEqual([]);
    expect(await harness.file("/var/lib/kubelet/config.json")).toBe("{}");
  });
});

describe("a machine whose image holds only what an image can hold", () => {
  test("boots it, and the daemon writes its files; a later file follows its policy without a reboot [daemon-images-9]", async () => {
    const made = await ImageHarness.make({
      policies: { files: [{ path: "/etc/app.conf", actions: [{ type: "None" }] }] },
    });
    const { harness } = made;
    await harness.updatedTo("rendered-1", first);
    await made.roll("rendered-2", second, 2, "os-only");
    await made.untilHas("rendered-2", 2);
    expect(await filesOf(harness, second)).toMatchObject({ "/etc/app.conf": "two", "/var/lib/app/more": "2" });
    expect(harness.settlings).toEqual([]);
    harness.reboots.length = 0;
    await harness.config("rendered-3", { ...second, files: { ...second.files, "/etc/app.conf": "three" } });
    await made.give("rendered-3", 2, "os-only");
    await harness.untilDone("rendered-3");
    expect(harness.reboots).toEqual([]);
    expect(await harness.file("/etc/app.conf")).toBe("three");
    expect(await harness.file(hostPaths.currentImage)).toBe(imageNumber(2));
  });

  test.for([
    { title: "to an image that holds its configuration", from: "os-only", to: "full" },
    { title: "from an image that holds its configuration", from: "full", to: "os-only" },
  ] as const)("changes $title, and boots back correctly", async ({ from, to }) => {
    const made = await classic();
    const { harness } = made;
    await made.roll("rendered-1i", first, 1, from);
    await made.untilHas("rendered-1i", 1);
    const before = treeOf(harness);
    await made.roll("rendered-2", second, 2, to);
    await made.untilHas("rendered-2", 2);
    expect(await filesOf(harness, second)).toMatchObject({
      "/etc/app.conf": "two",
      "/var/lib/app/data": "two",
      [hostPaths.sshKeys]: "ssh-ed25519 B\n",
      "/etc/systemd/system/b.service": unit("b"),
    });
    for (const gone of [
      "/etc/only-one",
      "/etc/systemd/system/a.service",
      `/etc/systemd/system/${hostPaths.settleUnit}`,
    ])
      expect([gone, await harness.file(gone)]).toEqual([gone, undefined]);
    await harness.host.os.bootPrevious(signal);
    harness.kill();
    await harness.host.boot({ orderly: true });
    expect(treeOf(harness)).toEqual(before);
  });
});

describe("a machine that returns to the stock system", () => {
  test("keeps no payload, unit, image file or annotation after one reboot [daemon-images-8]", async () => {
    const never = await classic();
    await never.harness.config("rendered-2", second);
    await never.harness.desire("rendered-2");
    await never.harness.untilDone("rendered-2");

    const made = await inImageMode();
    const { harness } = made;
    await harness.config("rendered-2", second);
    await made.give("rendered-2", undefined);
    await made.untilHas("rendered-2", undefined);
    expect(harness.reboots).toHaveLength(1);
    expect((await harness.host.os.status(signal)).booted.image).toBe(stock);
    // Two clusters: the uid of an object is not the other's.
    const whole = ({ host }: MachineHarness) =>
      new Map([...host.snapshot()].sort().map(([path, text]) => [path, path === hostPaths.currentConfig ? "…" : text]));
    expect(whole(harness)).toEqual(whole(never.harness));
    expect(
      Object.keys((await harness.ledgerDocument<{ paths: object }>("originals.json"))?.paths ?? {}).sort(),
    ).toEqual(
      Object.keys((await never.harness.ledgerDocument<{ paths: object }>("originals.json"))?.paths ?? {}).sort(),
    );
    expect(await harness.ledgerDocument("payloads.json")).toBeUndefined();
    for (const key of [annotations.currentImage, annotations.currentOSImage])
      expect(await harness.annotation(key)).toBeUndefined();
    // From here on it follows its files as ever.
    await harness.config("rendered-3", {});
    await harness.desire("rendered-3");
    await harness.untilDone("rendered-3");
    expect(await harness.file("/etc/app.conf")).toBe("vendor");
    expect(await harness.file("/etc/only-two")).toBeUndefined();
  });

  test("and fails to apply its content boots its image again without an API server, and reports the failed path [daemon-images-15]", async () => {
    const made = await inImageMode();
    const { harness } = made;
    const before = treeOf(harness);
    await harness.config("rendered-2", second);
    harness.contentHost = (host) => ({
      ...host,
      files: {
        ...host.files,
        write: async (writes, until) => {
          if (
            (await host.os.status(until)).booted.image === stock &&
            writes.some(({ path }) => path === "/var/lib/app/more")
          )
            throw new Error("no space left");
          await host.files.write(writes, until);
        },
      },
    });
    await made.give("rendered-2", undefined);
    const reason = await harness.untilState("Degraded").then(async () => {
      await harness.pass(300_000);
      return harness.condition("NodeDegraded");
    });
    expect(reason).toBe("True RevertFailed");
    expect(await harness.annotation(annotations.reason)).toContain("no space left");
    expect((await harness.host.os.status(signal)).booted.image).toBe(imageNumber(1));
    expect(treeOf(harness)).toEqual(before);
    // Three tries, then back.
    expect(harness.settlings.map(({ verdict }) => verdict)).toEqual(["settled", "failed", "settled"]);
    expect(await harness.annotation(annotations.currentImage)).toBe(imageNumber(1));
    expect((await harness.node()).metadata.annotations?.[annotations.desiredDrain]).toContain("uncordon-");
  });
});

describe("an image that a machine cannot apply", () => {
  test("is given up by a boot of the previous system without an API server, refused, and replaced by another image [daemon-images-11]", async () => {
    const made = await classic();
    const { harness } = made;
    const before = treeOf(harness);
    await made.roll("rendered-2", second, 2);
    const broken = made.images[imageNumber(2)] ?? { etc: {}, usr: {} };
    made.images[imageNumber(2)] = { ...broken, usr: { ...broken.usr, [hostPaths.payload]: "{" } };
    let away = false;
    harness.intercept = (next) => (request, until) =>
      away ? Promise.reject(new Error("connection refused")) : next(request, until);
    harness.kill();
    harness.start();
    await harness.until(async () => harness.reboots.length === 1, "it reboots");
    away = true;
    await harness.pass(180_000);
    expect((await harness.host.os.status(signal)).booted.image).toBe(stock);
    expect(treeOf(harness)).toEqual(before);
    away = false;
    await harness.untilState("Degraded");
    await harness.pass(60_000);
    expect(await harness.condition("NodeDegraded")).toBe("True TargetRefused");
    expect(await harness.annotation(annotations.reason)).toContain("it is no JSON");
    const refused = await harness.act(
      async () =>
        (await harness.kube.get(MachineConfigNode, { name: harness.name }))?.metadata.annotations?.[
          annotations.refusedTargets
        ],
    );
    expect(JSON.parse(refused ?? "[]")).toMatchObject([{ config: "rendered-2", image: imageNumber(2) }]);
    expect((await harness.node()).spec?.unschedulable).toBeUndefined();
    // The same configuration, built once more.
    made.images[imageNumber(3)] = imageOf(second, "full");
    await made.give("rendered-2", 3);
    await made.untilHas("rendered-2", 3);
    expect(await harness.file("/etc/app.conf")).toBe("two");
  });

  test("that no shutdown finalises is given up after three boots; the machine keeps configuration and image [daemon-images-12]", async () => {
    const made = await inImageMode();
    const { harness } = made;
    const before = treeOf(harness);
    harness.tamper = (host) => ({
      ...host,
      os: {
        ...host.os,
        stage: async (...args) => (await harness.host.failToFinalise?.("error: broken"), host.os.stage(...args)),
      },
    });
    harness.kill();
    harness.start();
    await made.roll("rendered-2", second, 2);
    await harness.untilState("Degraded");
    await harness.pass(300_000);
    expect(harness.reboots).toHaveLength(3);
    expect(await harness.condition("NodeDegraded")).toBe("True TargetRefused");
    expect(treeOf(harness)).toEqual(before);
    expect([
      await harness.annotation(annotations.currentConfig),
      await harness.annotation(annotations.currentImage),
    ]).toEqual(["rendered-1i", imageNumber(1)]);
  });

  test("that contains another configuration is reported with the differing paths, and not booted [daemon-images-13]", async () => {
    const made = await classic();
    const { harness } = made;
    await made.roll("rendered-2", second, 2);
    made.images[imageNumber(2)] = imageOf(
      { ...second, files: { ...second.files, "/etc/app.conf": "something else" } },
      "full",
    );
    const audited = audit();
    harness.tamper = audited.host;
    harness.kill();
    harness.start();
    expect(await harness.untilState("Degraded")).toContain("/etc/app.conf");
    await harness.pass(600_000);
    expect(await harness.condition("NodeDegraded")).toBe("True SettleFailed");
    expect(harness.reboots).toHaveLength(1);
    expect(audited.calls).toEqual([]);
    // A right one heals it.
    made.images[imageNumber(3)] = imageOf(second, "full");
    await made.give("rendered-2", 3);
    await made.untilHas("rendered-2", 3);
  });

  test("at once is applied at the second or third attempt without another boot [daemon-images-14]", async () => {
    const made = await classic();
    const { harness } = made;
    let failures = 2;
    harness.contentHost = (host) => ({
      ...host,
      files: {
        ...host.files,
        write: async (writes, until) =>
          (failures -= 1) >= 0 ? Promise.reject(new Error("busy")) : host.files.write(writes, until),
      },
    });
    await made.roll("rendered-2", second, 2);
    await made.untilHas("rendered-2", 2);
    expect(harness.settlings.map(({ verdict }) => verdict)).toEqual(["settled"]);
    expect(harness.reboots).toHaveLength(1);
  });
});

describe("an ambiguous target", () => {
  test.for([
    {
      title: "two spellings that differ",
      images: { ...desiredImage(imageNumber(2)), [annotations.desiredOSImage]: imageNumber(1) },
      reason: "ConflictingImageAnnotations",
    },
    {
      title: "a tag in place of a digest",
      images: desiredImage("registry.example/pool:latest"),
      reason: "ImageNotDigest",
    },
    {
      title: "an image that holds less than the annotation says",
      images: desiredImage(imageNumber(3)),
      reason: "ImageContentMismatch",
    },
    {
      title: "an image that holds more than the annotation says",
      images: desiredImage(imageNumber(2), "os-only"),
      reason: "ImageContentMismatch",
    },
    {
      title: "a mode that there is none of",
      images: { ...desiredImage(imageNumber(2)), [annotations.desiredImageContent]: "half" },
      reason: "ImageContentMismatch",
    },
  ])("$title: refused before the drain, and healed by a right one [daemon-images-2]", async ({ images, reason }) => {
    const made = await classic();
    const { harness } = made;
    await made.roll("rendered-2", second, 2);
    made.images[imageNumber(3)] = { etc: {}, usr: {} };
    await harness.annotate({ [annotations.desiredConfig]: "rendered-2", ...images });
    await harness.untilState("Degraded");
    await harness.pass(120_000);
    expect(await harness.condition("NodeDegraded")).toBe(`True ${reason}`);
    expect(harness.effects.filter((effect) => effect !== "os.prefetch" && effect !== "credentials")).toEqual([]);
    expect((await harness.node()).spec?.unschedulable).toBeUndefined();
    await made.give("rendered-2", 2);
    await made.untilHas("rendered-2", 2);
  });

  test("the older spelling alone suffices, and a missing content mode means that the daemon writes files [daemon-images-3]", async () => {
    const made = await classic();
    made.images[imageNumber(2)] = { etc: { "/etc/app.conf": "vendor" }, usr: {} };
    await made.harness.config("rendered-2", second);
    await made.harness.annotate({
      [annotations.desiredConfig]: "rendered-2",
      [annotations.desiredOSImage]: imageNumber(2),
    });
    await made.untilHas("rendered-2", 2);
    expect(await made.harness.file("/etc/app.conf")).toBe("two");
  });
});

test("current images are set and removed together in one request [daemon-images-19]", async () => {
  const made = await classic();
  const { harness } = made;
  const bodies: Record<string, string | null>[] = [];
  harness.intercept = (next) => (request, until) => {
    const { metadata } =
      request.method === "PATCH" && request.body !== undefined && !Array.isArray(request.body)
        ? (JSON.parse(typeof request.body === "string" ? request.body : new TextDecoder().decode(request.body)) as {
            metadata?: { annotations?: Record<string, string | null> };
          })
        : {};
    if (metadata?.annotations !== undefined) bodies.push(metadata.annotations);
    return next(request, until);
  };
  harness.kill();
  harness.start();
  await made.roll("rendered-2", second, 2);
  await made.untilHas("rendered-2", 2);
  await made.roll("rendered-3", first, 3, "os-only");
  await made.untilHas("rendered-3", 3);
  await made.give("rendered-1", undefined);
  await made.untilHas("rendered-1", undefined);
  const spoken = bodies.filter((body) => annotations.currentImage in body || annotations.currentOSImage in body);
  expect(spoken.map((body) => body[annotations.currentImage])).toEqual([imageNumber(2), imageNumber(3), null]);
  for (const body of spoken) expect(body[annotations.currentOSImage]).toBe(body[annotations.currentImage]);
  // The desired ones are the node controller's.
  expect(
    bodies.filter(
      (body) =>
        annotations.desiredImage in body ||
        annotations.desiredOSImage in body ||
        annotations.desiredImageContent in body,
    ),
  ).toEqual([]);
});

test("the status of its MachineConfigNode names the current and the desired image", async () => {
  const made = await classic();
  const { harness } = made;
  const images = async () =>
    (await harness.act(() => harness.kube.get(MachineConfigNode, { name: harness.name })))?.status?.configImage;
  expect(await images()).toBeUndefined();
  await made.roll("rendered-2", second, 2);
  await harness.until(async () => harness.reboots.length === 1, "it reboots");
  expect(await images()).toEqual({ desiredImage: imageNumber(2) });
  await made.untilHas("rendered-2", 2);
  expect(await images()).toEqual({ desiredImage: imageNumber(2), currentImage: imageNumber(2) });
  await made.give("rendered-1", undefined);
  await made.untilHas("rendered-1", undefined);
  expect(await images()).toBeUndefined();
});

describe("drift of a machine whose image holds its configuration", () => {
  test("is reported, and nothing is written [daemon-images-4]", async () => {
    const made = await inImageMode();
    const { harness } = made;
    const audited = audit();
    harness.tamper = audited.host;
    harness.kill();
    harness.start();
    await harness.pass(10_000);
    await harness.put("/etc/app.conf", "drifted");
    expect(await harness.untilState("Degraded")).toContain("/etc/app.conf");
    expect(await harness.condition("NodeDegraded")).toBe("True ConfigDrift");
    await harness.pass(600_000);
    expect(audited.calls).toEqual([]);
    expect(await harness.file("/etc/app.conf")).toBe("drifted");
    // The force file has it booted, and a boot settles.
    await harness.put(hostPaths.force, "");
    await harness.untilState("Working");
    await harness.untilDone("rendered-1i");
    expect(await harness.file("/etc/app.conf")).toBe("one");
    expect(audited.calls).toEqual([]);
  });

  test("is repaired from the image if its policy says so, without a reboot [daemon-images-5]", async () => {
    const made = await inImageMode();
    const { harness } = made;
    await harness.annotate({ [annotations.driftPolicy]: "settle" });
    await harness.put("/etc/app.conf", "drifted");
    await harness.until(async () => (await harness.file("/etc/app.conf")) === "one", "it is fixed");
    await harness.untilDone("rendered-1i");
    expect(harness.reboots).toEqual([]);
    expect(harness.settlings.at(-1)).toEqual({ verdict: "settled", changed: ["/etc/app.conf"] });
  });
});

describe("a machine that joins a pool whose machines boot images", () => {
  test("boots the served image at once and applies its content; its daemon writes no file", async () => {
    const made = await ImageHarness.make();
    const { harness } = made;
    made.images[imageNumber(1)] = imageOf(first, "full");
    const audited = audit();
    harness.tamper = audited.host;
    await harness.config("rendered-1", first);
    await harness.firstBoot(
      "rendered-1",
      { files: { "/etc/app.conf": "one" }, ...first },
      desiredImage(imageNumber(1)) as Record<string, string>,
    );
    expect((await harness.host.os.status(signal)).booted.image).toBe(imageNumber(1));
    harness.start();
    await made.untilHas("rendered-1", 1);
    expect(audited.calls).toEqual([]);
    expect(await filesOf(harness, first)).toMatchObject({
      "/etc/app.conf": "one",
      "/var/lib/app/data": "one",
      [hostPaths.sshKeys]: "ssh-ed25519 A\n",
    });
    expect(await harness.annotation(annotations.desiredImageContent)).toBe("full");
    expect(harness.reboots).toHaveLength(1);
  });

  test("stays on its own system if the image's label disagrees, and its daemon reports why", async () => {
    const made = await ImageHarness.make();
    const { harness } = made;
    made.images[imageNumber(1)] = imageOf(first, "os-only");
    await harness.config("rendered-1", first);
    await harness.firstBoot("rendered-1", first, desiredImage(imageNumber(1)) as Record<string, string>);
    expect((await harness.host.os.status(signal)).booted.image).toBe(stock);
    harness.start();
    await harness.untilState("Degraded");
    expect(await harness.condition("NodeDegraded")).toBe("True ImageContentMismatch");
  });
});

test("another daemon's roll-back data is removed", async () => {
  const made = await ImageHarness.make();
  const { harness } = made;
  const left = [
    "/etc/mco/machineconfig-revert.json",
    "/etc/mco/proxy.env.backup",
    "/etc/systemd/system/machine-config-daemon-revert.service",
  ];
  for (const path of left) await harness.put(path, unit());
  await harness.host.units.enable("machine-config-daemon-revert.service", signal);
  await harness.updatedTo("rendered-1", first);
  for (const path of [...left, "/etc/systemd/system/multi-user.target.wants/machine-config-daemon-revert.service"])
    expect([path, await harness.file(path)]).toEqual([path, undefined]);
});

test("a machine with another daemon's image is adopted unchanged", async () => {
  const made = await ImageHarness.make({
    image: imageNumber(1),
    images: { ...new ImageHarness().images, [imageNumber(1)]: imageOf({}, "os-only") },
  });
  const { harness } = made;
  await harness.put("/etc/app.conf", "one");
  await harness.put(
    hostPaths.currentConfig,
    JSON.stringify(machineConfigOf("rendered-1", { files: { "/etc/app.conf": "one" } })),
  );
  await harness.put(hostPaths.currentImage, `${imageNumber(1)}\n`);
  await harness.config("rendered-1", { files: { "/etc/app.conf": "one" } });
  await harness.annotate({
    [annotations.currentConfig]: "rendered-1",
    [annotations.desiredConfig]: "rendered-1",
    [annotations.currentImage]: imageNumber(1),
    [annotations.desiredImage]: imageNumber(1),
    [annotations.state]: "Done",
  });
  harness.start();
  await made.untilHas("rendered-1", 1);
  expect(harness.reboots).toEqual([]);
  expect(harness.effects.filter((effect) => effect.startsWith("os."))).toEqual([]);
  expect(await harness.annotation(annotations.currentOSImage)).toBe(imageNumber(1));
});
