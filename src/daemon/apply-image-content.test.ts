import { describe, expect, test } from "vitest";
import { hostPaths } from "../api/names.ts";
import { type Payload, printPayload, settleUnitText } from "../core/config/image-content.ts";
import { mostOriginalBytes } from "../core/machine/kept-originals.ts";
import { localPayloadName } from "../core/machine/image-content-plan.ts";
import type { Host } from "../host/host.ts";
import { type MemoryHost, type MemoryImage, memoryHost } from "../../test/support/hosts/memory-host.ts";
import { encodeBase64 } from "../ignition/data-url.ts";
import type { Clock } from "../ports/clock.ts";
import type { Random } from "../ports/random.ts";
import { type Settled, applyImageContent } from "./apply-image-content.ts";
import type { ImageContentRecord } from "../core/machine/observed-node.ts";

const { signal } = new AbortController();
const bytes = (text: string) => new TextEncoder().encode(text);
const rooted = { uid: 0, gid: 0 } as const;
const file = (path: string, text: string, more: object = {}) => ({
  path,
  kind: "file" as const,
  contents: encodeBase64(bytes(text)),
  mode: 0o644,
  ...rooted,
  ...more,
});
const payload = (
  entries: Payload["entries"],
  units: Payload["units"] = [],
  accounts: Payload["accounts"] = [],
): Payload => ({ v: 1, entries: entries.toSorted((a, b) => (a.path < b.path ? -1 : 1)), units, accounts });
const unit = (words = "a") => `[Service]\nExecStart=/bin/${words}\n[Install]\nWantedBy=multi-user.target\n`;

const usr = {
  "/usr/lib/systemd/system/crio.service": unit("crio"),
  "/usr/lib/systemd/system/systemd-sysctl.service": "[Service]\n",
  [`/usr/lib/systemd/system/${hostPaths.settleUnit}`]: settleUnitText,
  [`/usr/lib/systemd/system/multi-user.target.wants/${hostPaths.settleUnit}`]: {
    kind: "link",
    target: `../${hostPaths.settleUnit}`,
  },
} as const;

/** An image that holds a payload, and in /etc what images can bring of it. */
function imageOf(of: Payload, bare: Readonly<Record<string, string>> = {}): MemoryImage {
  const etc = Object.fromEntries(
    of.entries.flatMap((entry) =>
      entry.kind === "file" && entry.path.startsWith("/etc/") && entry.ifAbsent !== true
        ? [[entry.path, new TextDecoder().decode(Uint8Array.from(atob(entry.contents), (c) => c.charCodeAt(0)))]]
        : [],
    ),
  );
  return {
    etc: { "/etc/app.conf": "vendor", ...bare, ...etc },
    usr: { ...usr, [hostPaths.payload]: printPayload(of) },
  };
}

interface Machine {
  readonly host: MemoryHost;
  readonly reboots: string[];
  readonly outcomes: Settled[];
  /** Stands between settling and the machine. */
  wrap: (host: Host) => Host;
  readonly slept: number[];
}

const random: Random = {
  next: () => 0.5,
  uuid: (
    (count) => () =>
      `boot-${(count += 1)}`
  )(0),
} as Partial<Random> as Random;
const silent = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silent,
};

function machineWith(images: Readonly<Record<string, MemoryImage>>, image: string): Machine {
  const made: { -readonly [Key in keyof Machine]: Machine[Key] } = {
    reboots: [],
    outcomes: [],
    slept: [],
    wrap: (host) => host,
    host: memoryHost({
      images,
      image,
      random,
      onReboot: (because) => made.reboots.push(because),
      applyImageContent: async (host) => {
        const clock = {
          now: () => 0,
          monotonic: () => 0,
          sleep: async (ms: number) => void made.slept.push(ms),
        } as Partial<Clock> as Clock;
        const outcome = await applyImageContent({ host: made.wrap(host), clock, random, log: silent }, signal);
        made.outcomes.push(outcome);
        if (outcome.verdict === "failed") throw new Error(outcome.cause);
      },
    }),
  };
  return made;
}

const deployment = (image: string) => ({ image, kernelArguments: [], packages: [], kernelType: "default" as const });
const record = async ({ host }: Machine) =>
  JSON.parse((await host.ledger.read("settled.json", signal)) ?? "null") as ImageContentRecord | null;
const put = (host: Host, path: string, text: string, own: object = {}) =>
  host.files.write([{ path, entry: { kind: "file", contents: bytes(text), mode: 0o644, ...rooted, ...own } }], signal);
const text = async (host: Host, path: string) => {
  const entry = await host.files.read(path, signal);
  return entry?.kind === "file" ? new TextDecoder().decode(entry.contents) : entry?.kind;
};
const tree = (host: MemoryHost) => new Map([...host.snapshot()].sort());

const first = payload(
  [
    file("/etc/app.conf", "one"),
    file("/etc/one.conf", "one"),
    file("/etc/systemd/system/a.service", unit()),
    file("/var/lib/app", "one", { mode: 0o600, uid: 7, gid: 8, folder: { mode: 0o700, uid: 7, gid: 8 } }),
    file(hostPaths.sshKeys, "key A", { mode: 0o600, uid: 1000, gid: 1000 }),
  ],
  [
    { name: "a.service", enabled: true },
    { name: "crio.service", enabled: true },
  ],
  [{ user: "core", passwordHash: "$6$a$b" }],
);
const second = payload(
  [
    file("/etc/two.conf", "two"),
    file("/var/lib/app", "two"),
    { path: "/etc/systemd/system/crio.service", kind: "absent" },
    { path: "/etc/link", kind: "link", target: "two.conf" },
  ],
  [{ name: "crio.service", enabled: false }],
);
const images = {
  bare: { etc: { "/etc/app.conf": "vendor" }, usr: { "/usr/lib/systemd/system/crio.service": unit("crio") } },
  first: imageOf(first),
  second: imageOf(second),
};

/** Boots the image, as it is staged. */
async function boot({ host }: Machine, image?: string): Promise<void> {
  if (image !== undefined) await host.os.stage(deployment(image), undefined, signal);
  await host.boot({ orderly: true });
}

describe("settling", () => {
  test("makes files, owners, folders, links, units and accounts equal, and writes only differences", async () => {
    const machine = machineWith(images, "bare");
    await boot(machine, "first");
    expect(machine.outcomes).toEqual([
      { verdict: "settled", changed: [hostPaths.sshKeys, "/var/lib/app", "a.service", "crio.service"] },
    ]);
    expect(await machine.host.files.read("/var/lib/app", signal)).toMatchObject({ mode: 0o600, uid: 7, gid: 8 });
    expect(await machine.host.users.passwordHash("core", signal)).toBe("$6$a$b");
    expect((await machine.host.units.state(["a.service", "crio.service"], signal)).get("a.service")).toEqual({
      enablement: "enabled",
      activity: "active",
    });
    expect(machine.reboots).toEqual([]);
    const writes: string[] = [];
    machine.wrap = (host) => ({
      ...host,
      files: {
        ...host.files,
        write: async (all, until) => (writes.push(...all.map(({ path }) => path)), host.files.write(all, until)),
      },
    });
    await boot(machine);
    expect(machine.outcomes.at(-1)).toEqual({ verdict: "settled", changed: [] });
    expect(writes).toEqual([]);
  });

  test("restores the originals of previously managed items: an administrator's file, the system's own, a password", async () => {
    const machine = machineWith(images, "bare");
    await put(machine.host, "/etc/one.conf", "theirs");
    await put(machine.host, "/var/lib/app", "theirs");
    await boot(machine, "first");
    expect(await text(machine.host, "/etc/one.conf")).toBe("one");
    await boot(machine, "second");
    expect([
      await text(machine.host, "/etc/one.conf"),
      await text(machine.host, "/etc/app.conf"),
      await text(machine.host, "/etc/systemd/system/a.service"),
      await text(machine.host, hostPaths.sshKeys),
    ]).toEqual(["theirs", "vendor", undefined, undefined]);
    expect(await machine.host.users.passwordHash("core", signal)).toBeUndefined();
    expect(await text(machine.host, "/var/lib/app")).toBe("two");
    expect((await machine.host.units.state(["crio.service"], signal)).get("crio.service")?.enablement).toBe("disabled");
    expect(await machine.host.files.read("/etc/link", signal)).toEqual({ kind: "link", target: "two.conf" });
    const third = payload([]);
    await boot(machineOn(machine, { third: imageOf(third) }), "third");
    expect(await text(machine.host, "/var/lib/app")).toBe("theirs");
  });

  test("gives the OS its own units and files of today back that images of ours hid [daemon-settle-machine-3]", async () => {
    const wants = "/etc/systemd/system/multi-user.target.wants/crio.service";
    const link = { kind: "link", target: "/usr/lib/systemd/system/crio.service" } as const;
    const over = payload(
      [file("/etc/app.conf", "ours"), file("/etc/systemd/system/crio.service", unit("other"))],
      [{ name: "crio.service", enabled: true }],
    );
    const withLink = (image: MemoryImage, vendor: string): MemoryImage => ({
      ...image,
      etc: { "/etc/app.conf": vendor, ...image.etc, [wants]: link },
    });
    const ofUs = imageOf(over);
    const machine = machineWith(
      {
        bare: withLink(images.bare, "v1"),
        over: { ...ofUs, etc: { ...ofUs.etc, [wants]: link } },
        empty: withLink(imageOf(payload([]), { "/etc/app.conf": "v2" }), "v2"),
      },
      "bare",
    );
    const { host } = machine;
    await boot(machine, "over");
    expect([await text(host, "/etc/app.conf"), (await host.units.links(signal)).length]).toEqual(["ours", 1]);
    await boot(machine, "empty");
    expect(machine.outcomes.at(-1)).toMatchObject({ verdict: "settled" });
    expect(await text(host, "/etc/app.conf")).toBe("v2");
    expect(await host.units.links(signal)).toEqual([{ path: wants, target: link.target }]);
    expect((await host.units.state(["crio.service"], signal)).get("crio.service")?.enablement).toBe("enabled");
    expect(JSON.parse((await host.ledger.read("originals.json", signal)) ?? "")).toMatchObject({ enablement: {} });
  });

  test("records which files of users it replaced without keeping them [daemon-settle-machine-4]", async () => {
    const machine = machineWith(images, "bare");
    await put(machine.host, "/var/lib/app", "x".repeat(mostOriginalBytes.ofUserFile + 1), { uid: 7, gid: 8 });
    await boot(machine, "first");
    const originals = async () =>
      JSON.parse((await machine.host.ledger.read("originals.json", signal)) ?? "") as object;
    expect(await originals()).toMatchObject({ paths: { "/var/lib/app": null }, notKept: ["/var/lib/app"] });
    await boot(machineOn(machine, { third: imageOf(payload([])) }), "third");
    expect(await originals()).not.toHaveProperty("notKept");
  });

  test("leaves existing credentials alone, and writes missing ones", async () => {
    const credential = payload([file("/var/lib/kubelet/config.json", "old", { ifAbsent: true })]);
    const machine = machineWith({ ...images, held: imageOf(credential) }, "bare");
    await put(machine.host, "/var/lib/kubelet/config.json", "newer");
    await boot(machine, "held");
    expect(await text(machine.host, "/var/lib/kubelet/config.json")).toBe("newer");
    await machine.host.files.remove("/var/lib/kubelet/config.json", signal);
    await boot(machine);
    expect(await text(machine.host, "/var/lib/kubelet/config.json")).toBe("old");
  });

  test("prefers the payload staged for the booted system to the image's own, and does nothing without either", async () => {
    const machine = machineWith(images, "bare");
    await boot(machine);
    expect(machine.outcomes).toEqual([]);
    await put(machine.host, `/etc/systemd/system/${hostPaths.settleUnit}`, settleUnitText);
    await machine.host.units.enable(hostPaths.settleUnit, signal);
    await boot(machine);
    expect(machine.outcomes).toEqual([{ verdict: "nothing" }]);
    await machine.host.ledger.write(localPayloadName("bare"), printPayload(payload([file("/etc/local", "1")])), signal);
    await boot(machine);
    expect(await text(machine.host, "/etc/local")).toBe("1");
    // On the system's own /etc, its version is what was there.
    expect(
      (JSON.parse((await machine.host.ledger.read("originals.json", signal)) ?? "{}") as { paths: object }).paths,
    ).toEqual({ "/etc/local": null });
  });

  test("gives a previous system its OS's own file back that the documents say nothing of but that there is one [daemon-settle-machine-5]", async () => {
    const { host } = machineWith(images, "bare");
    await put(host, "/etc/app.conf", "ours");
    await put(host, `/etc/systemd/system/${hostPaths.settleUnit}`, settleUnitText);
    await host.units.enable(hostPaths.settleUnit, signal);
    const hidden = ["/etc/app.conf"];
    const originals = { paths: { "/etc/app.conf": null }, hidden, enablement: {}, passwords: {}, kernelArguments: [] };
    await host.ledger.write("originals.json", JSON.stringify({ v: 1, ...originals, ownKernelArguments: [] }), signal);
    await host.ledger.write(localPayloadName("bare"), printPayload(payload([])), signal);
    await host.boot({ orderly: true });
    expect(await text(host, "/etc/app.conf")).toBe("vendor");
  });

  test("skips content of accounts that the machine lacks", async () => {
    const machine = machineWith(
      {
        lone: imageOf(
          payload(
            [file(hostPaths.sshKeys, "key", { uid: 1000, gid: 1000 })],
            [],
            [{ user: "nobody-here", passwordHash: "$6$x$y" }],
          ),
        ),
      },
      "lone",
    );
    const lookup = async () => undefined;
    machine.wrap = (host) => ({ ...host, users: { ...host.users, lookup } });
    await boot(machine);
    expect(machine.outcomes).toEqual([{ verdict: "settled", changed: [] }]);
  });

  test("that is killed after any write reaches the same state at the next boot as one that is not [daemon-settle-machine-1]", async () => {
    const whole = machineWith(images, "bare");
    await put(whole.host, "/etc/one.conf", "theirs");
    await boot(whole, "first");
    await boot(whole, "second");
    const end = tree(whole.host);
    const originals = await whole.host.ledger.read("originals.json", signal);
    let effects = Infinity;
    for (let at = 1; at <= effects; at += 1) {
      const machine = machineWith(images, "bare");
      await put(machine.host, "/etc/one.conf", "theirs");
      await boot(machine, "first");
      let count = 0;
      machine.wrap = (host) => dying(host, () => (count += 1) > at);
      await boot(machine, "second");
      if (count <= at) effects = at;
      machine.wrap = (host) => host;
      await boot(machine);
      expect([at, tree(machine.host)]).toEqual([at, end]);
      expect(await machine.host.ledger.read("originals.json", signal)).toBe(originals);
      expect((await record(machine))?.result).toBe("settled");
    }
    expect(effects).toBeGreaterThan(8);
  });

  test("requests a second boot if a running program has read a changed file, and never a third [daemon-settle-machine-2]", async () => {
    const early = payload([file("/etc/sysctl.d/90.conf", "kernel.x=1")]);
    const machine = machineWith({ ...images, early: imageOf(early) }, "bare");
    await put(machine.host, "/etc/sysctl.d/90.conf", "kernel.x=0");
    await boot(machine, "early");
    expect(machine.outcomes).toMatchObject([{ verdict: "rebooting" }]);
    expect(machine.reboots).toHaveLength(1);
    await boot(machine);
    expect(machine.outcomes.at(-1)).toEqual({ verdict: "settled", changed: [] });
    expect(machine.host.seenBy("systemd-sysctl.service")).not.toEqual({});
    // Whoever changes it at every boot does not have it booted for ever.
    await put(machine.host, "/etc/sysctl.d/90.conf", "kernel.x=2");
    await boot(machine);
    expect(machine.outcomes.at(-1)).toMatchObject({ verdict: "failed", path: "/etc/sysctl.d/90.conf" });
    expect(machine.reboots).toHaveLength(1);
  });

  test("is tried three times with growing delays, then reports path and cause; without an update the machine stays", async () => {
    const machine = machineWith(images, "bare");
    machine.wrap = (host) => ({
      ...host,
      files: {
        ...host.files,
        write: async (all, until) =>
          all.some(({ path }) => path === "/var/lib/app")
            ? Promise.reject(new Error("no space left"))
            : host.files.write(all, until),
      },
    });
    await boot(machine, "first");
    expect(machine.outcomes).toEqual([{ verdict: "failed", cause: "no space left", goesBack: false }]);
    expect(machine.slept).toHaveLength(2);
    expect(machine.slept[1]).toBeGreaterThan(machine.slept[0] ?? 0);
    expect(await record(machine)).toMatchObject({ result: "failed", cause: "no space left" });
    expect(machine.reboots).toEqual([]);
    expect((await machine.host.os.status(signal)).booted.image).toBe("first");
  });

  test("names a path that still differs after every write", async () => {
    const machine = machineWith(images, "bare");
    // A disk that loses what it is given.
    machine.wrap = (host) => ({
      ...host,
      files: {
        ...host.files,
        write: async (all, until) =>
          host.files.write(
            all.filter(({ path }) => path !== "/var/lib/app"),
            until,
          ),
      },
    });
    await boot(machine, "first");
    expect(machine.outcomes).toMatchObject([{ verdict: "failed", path: "/var/lib/app" }]);
  });

  test("requests a boot of the previous system during an update to this one, and records it in the ledger", async () => {
    const machine = machineWith({ ...images, broken: { etc: {}, usr: { ...usr, [hostPaths.payload]: "{" } } }, "first");
    await boot(machine);
    const before = tree(machine.host);
    const ledger = {
      v: 2,
      target: "rendered-2",
      image: "broken",
      content: "full",
      deployment: deployment("broken"),
      bootId: "earlier",
      owes: [{ kind: "reboot" }],
      openedAt: "",
    };
    await machine.host.ledger.write("ledger.json", JSON.stringify(ledger), signal);
    await boot(machine, "broken");
    expect(machine.outcomes.at(-1)).toMatchObject({ verdict: "failed", goesBack: true });
    expect(machine.reboots).toHaveLength(1);
    await boot(machine);
    expect((await machine.host.os.status(signal)).booted.image).toBe("first");
    expect(tree(machine.host)).toEqual(before);
    expect(JSON.parse((await machine.host.ledger.read("ledger.json", signal)) ?? "{}")).toMatchObject({
      target: "rendered-2",
      failed: { cause: expect.stringContaining("no JSON") as unknown },
    });
    // On the system that it came back to, nothing more is asked for.
    expect(machine.reboots).toHaveLength(1);
  });
});

/** The same machine with more images. */
function machineOn(machine: Machine, more: Readonly<Record<string, MemoryImage>>): Machine {
  Object.assign(images, more);
  return machine;
}

/** Nothing that changes the machine is done once `isDead`. */
function dying(host: Host, isDead: () => boolean): Host {
  const guarded = <T extends object>(part: T, effects: readonly (keyof T)[]): T =>
    Object.fromEntries(
      Object.entries(part).map(([name, verb]) => [
        name,
        typeof verb === "function" && effects.includes(name as keyof T)
          ? async (...args: unknown[]) =>
              isDead() ? Promise.reject(new Error("killed")) : (verb as (...all: unknown[]) => unknown)(...args)
          : (verb as unknown),
      ]),
    ) as T;
  return {
    ...host,
    files: guarded(host.files, ["write", "remove", "makeFolder"]),
    units: guarded(host.units, ["enable", "disable", "preset", "relink", "daemonReload", "restart"]),
    users: guarded(host.users, ["setPasswordHash"]),
    ledger: guarded(host.ledger, ["write", "remove"]),
  };
}
