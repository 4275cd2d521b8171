import { expect, test } from "vitest";
import { type ErrorCode, McoError } from "../api/errors.ts";
import { annotations, hostPaths } from "../api/names.ts";
import type { Payload } from "../core/config/image-content.ts";
import { mostOriginalBytes, mostOriginalsText, withFound } from "../core/machine/kept-originals.ts";
import type { OriginalEntry, Originals } from "../core/machine/observed-content.ts";
import { readTarget } from "../core/machine/read-config.ts";
import { maxRenderedBytes } from "../core/render/too-large-together.ts";
import { type Host, mostDocumentBytes } from "../host/host.ts";
import { defaultMaxTotalBytes, encodeBase64 } from "../ignition/data-url.ts";
import { documentStore } from "./machine-documents.ts";
import { noOriginals, observeHost } from "./observe-host.ts";
import { performStep } from "./perform-step.ts";
import { MachineHarness, images, machineConfigOf } from "../../test/support/machine-harness.ts";

/** A machine where a user can put something at a path that cannot be read as a file. */
class Junk {
  readonly at = new Map<string, ErrorCode>();

  readonly host = (of: Host): Host => ({
    ...of,
    files: {
      ...of.files,
      read: (path, signal) => {
        const code = this.at.get(path);
        return code === undefined ? of.files.read(path, signal) : Promise.reject(new McoError(code, { path }));
      },
      write: async (writes, signal) => {
        for (const { path } of writes) this.at.delete(path);
        await of.files.write(writes, signal);
      },
      remove: async (path, signal) => {
        this.at.delete(path);
        await of.files.remove(path, signal);
      },
    },
  });
}

test.for<ErrorCode>(["MCO_HOST_FILE_TOO_LARGE", "MCO_HOST_NO_FILE"])(
  "what a user of a machine puts in the way of a managed file is replaced, and stops no pass: %s [daemon-unreadable-1]",
  async (code) => {
    const junk = new Junk();
    const harness = await MachineHarness.make();
    harness.tamper = junk.host;
    harness.kill();
    harness.start();
    await harness.updatedTo("rendered-1", {});
    // Before the path is managed.
    junk.at.set(hostPaths.sshKeys, code);
    await harness.updatedTo("rendered-2", { keys: ["ssh-ed25519 A"] });
    expect(await harness.file(hostPaths.sshKeys)).toBe("ssh-ed25519 A\n");
    // While it is managed.
    junk.at.set(hostPaths.sshKeys, code);
    await harness.updatedTo("rendered-3", { keys: ["ssh-ed25519 B"] });
    expect(await harness.file(hostPaths.sshKeys)).toBe("ssh-ed25519 B\n");
    // When it is managed no more.
    junk.at.set(hostPaths.sshKeys, code);
    await harness.updatedTo("rendered-4", {});
    expect(await harness.file(hostPaths.sshKeys)).toBeUndefined();
    expect(junk.at.size).toBe(0);
  },
);

const linesOf = (harness: MachineHarness) =>
  harness.history.filter(({ reason }) => reason === "OriginalNotKept").map(({ message }) => message);
const says = (paths: string) =>
  `not kept, because it is too large or cannot be read: what was here before it was managed: ${paths}`;
const tooLarge = "x".repeat(mostOriginalBytes.ofUserFile + 1);

test("the machine's book names the files whose former content is not kept [daemon-originals-1]", async () => {
  const harness = await MachineHarness.make();
  await harness.updatedTo("rendered-1", {});
  const own = { mode: 0o600, uid: 1000, gid: 1000 };
  const contents = new TextEncoder().encode(tooLarge);
  const { signal } = new AbortController();
  await harness.host.files.write([{ path: "/var/theirs", entry: { kind: "file", contents, ...own } }], signal);
  await harness.put("/etc/large", tooLarge);
  await harness.config("rendered-2", { files: { "/etc/large": "ours", "/var/theirs": "ours" } });
  await harness.annotate({ [annotations.desiredConfig]: "rendered-2" });
  await harness.untilDone("rendered-2");
  expect(linesOf(harness)).toEqual([says("/var/theirs")]);
  // The end of it: what is root's comes back.
  await harness.config("rendered-3", {});
  await harness.annotate({ [annotations.desiredConfig]: "rendered-3" });
  await harness.untilDone("rendered-3");
  expect(await harness.file("/etc/large")).toHaveLength(tooLarge.length);
  expect(await harness.file("/var/theirs")).toBeUndefined();
  expect(await harness.ledgerDocument<Originals>("originals.json")).not.toHaveProperty("notKept");
});

test("so it does of those that taking the machine over found [daemon-originals-2]", async () => {
  const path = "/var/home/core/large";
  const harness = await MachineHarness.make();
  const kept = `${hostPaths.referenceOriginals}${path}.mcdorig`;
  const junk = new Junk();
  junk.at.set(kept, "MCO_HOST_FILE_TOO_LARGE");
  harness.tamper = junk.host;
  await harness.put(path, "one");
  const old = machineConfigOf("rendered-1", { files: { [path]: "one" } });
  await harness.put(hostPaths.currentConfig, JSON.stringify(old));
  await harness.config("rendered-0", {});
  await harness.annotate({
    [annotations.currentConfig]: "rendered-1",
    [annotations.desiredConfig]: "rendered-0",
    [annotations.state]: "Done",
  });
  harness.start();
  await harness.untilDone("rendered-0");
  expect(await harness.file(path)).toBeUndefined();
  expect(linesOf(harness)).toEqual([says(path)]);
});

test.for<{ readonly title: string; readonly isKilledBy: "ledger.json" | "/var/theirs" }>([
  { title: "before the book has it", isKilledBy: "ledger.json" },
  { title: "once the book has it", isKilledBy: "/var/theirs" },
])(
  "a daemon that is killed after it recorded what it does not keep names it once: $title [daemon-originals-4]",
  async ({ isKilledBy }) => {
    const harness = await MachineHarness.make();
    await harness.updatedTo("rendered-1", {});
    harness.kill();
    let isKilled = false;
    const killAt = (what: string) => {
      if (isKilled || what !== isKilledBy) return;
      isKilled = true;
      harness.kill();
    };
    harness.tamper = (host) => ({
      ...host,
      ledger: {
        ...host.ledger,
        write: async (name, text, signal) => {
          await host.ledger.write(name, text, signal);
          killAt(name);
        },
      },
      files: {
        ...host.files,
        write: async (writes, signal) => {
          for (const { path } of writes) killAt(path);
          await host.files.write(writes, signal);
        },
      },
    });
    const { signal } = new AbortController();
    const contents = new TextEncoder().encode(tooLarge);
    const entry = { kind: "file", contents, mode: 0o600, uid: 1000, gid: 1000 } as const;
    await harness.host.files.write([{ path: "/var/theirs", entry }], signal);
    await harness.config("rendered-2", { files: { "/var/theirs": "ours" } });
    await harness.annotate({ [annotations.desiredConfig]: "rendered-2" });
    harness.start();
    await harness.until(() => Promise.resolve(isKilled), "the daemon is killed");
    harness.start();
    await harness.untilDone("rendered-2");
    expect(linesOf(harness)).toEqual([says("/var/theirs")]);
  },
);

test("originals of an earlier release that are too large stop no pass: what is too much goes, and is named [daemon-originals-3]", async () => {
  const large = "A".repeat(mostOriginalsText);
  const entry = { kind: "file", digest: "", mode: 0o600, uid: 1000, gid: 1000 } as const;
  const originals = {
    v: 1,
    paths: { "/home/a": { ...entry, contents: large }, "/etc/b": { ...entry, uid: 0, contents: "Yg==" } },
    enablement: {},
    passwords: {},
    kernelArguments: [],
    ownKernelArguments: [],
  };
  const texts = new Map([["originals.json", JSON.stringify(originals)]]);
  const store = documentStore({
    read: (name) => Promise.resolve(texts.get(name)),
    write: (name, text) => Promise.resolve(void texts.set(name, text)),
    remove: (name) => Promise.resolve(void texts.delete(name)),
  });
  const { signal } = new AbortController();
  const now = { ...originals, paths: { ...originals.paths, "/home/a": null }, notKept: ["/home/a"] };
  expect((await store.load(signal)).originals).toEqual(now);
  expect(JSON.parse(texts.get("originals.json") ?? "")).toEqual(now);
});

test("large files of the OS take no room in documents, and come back [daemon-originals-5]", async () => {
  const large = "x".repeat(mostOriginalBytes.ofOs);
  const os = images["os@sha256:1"];
  const harness = await MachineHarness.make({
    images: { ...images, "os@sha256:1": { ...os, etc: { ...os.etc, "/etc/large": large, "/etc/small": "small" } } },
  });
  await harness.updatedTo("rendered-1", { files: { "/etc/large": "ours", "/etc/small": "ours" } });
  const { paths, hidden, notKept } = (await harness.ledgerDocument<Originals>("originals.json")) ?? {};
  expect(paths).toMatchObject({ "/etc/large": null, "/etc/small": { contents: "c21hbGw=", shipped: true } });
  expect([hidden, notKept]).toEqual([["/etc/large"], undefined]);
  await harness.config("rendered-2", {});
  await harness.annotate({ [annotations.desiredConfig]: "rendered-2" });
  await harness.untilDone("rendered-2");
  expect(await harness.file("/etc/small")).toBe("small");
  expect(await harness.file("/etc/large")).toHaveLength(large.length);
});

test("a payload with as many originals as are kept, twice, fits into a document beside a configuration [daemon-originals-6]", async () => {
  const mib = 1024 * 1024;
  const entry = {
    kind: "file",
    digest: "0".repeat(64),
    mode: 0o600,
    contents: encodeBase64(new Uint8Array(mib)),
  } as const;
  const found = new Map<string, OriginalEntry>(
    Array.from({ length: 40 }, (_, i) => [
      [`/etc/${i}`, { ...entry, uid: 0, gid: 0 }] as const,
      [`/home/${i}`, { ...entry, uid: 1000, gid: 1000 }] as const,
      [`/etc/of-os-${i}`, { ...entry, uid: 0, gid: 0, shipped: true }] as const,
    ]).flat(),
  );
  const { originals, notKept } = withFound(noOriginals([]), found);
  expect(notKept).toHaveLength(8 + 36);
  const { signal } = new AbortController();
  const { host } = await MachineHarness.make();
  const read = readTarget(machineConfigOf("rendered-1", {}), undefined);
  if (read.verdict === "refused") throw new Error("the configuration cannot be read");
  const target = read.wanted;
  const documents = documentStore(host.ledger);
  const observed = await observeHost(
    host,
    { ledger: undefined, settled: undefined, originals: undefined },
    { previous: target.config, target: target.config, inService: true, onlyControlPlane: false },
    signal,
  );
  await performStep(
    { do: "keepPayload", image: "os@sha256:1", of: "previous" },
    { host, documents, clock: { now: () => 0 }, observed, target, originals, ledger: undefined },
    signal,
  );
  await documents.storeOriginals(originals, signal);
  expect((await host.ledger.read("originals.json", signal))?.length).toBeLessThan(mostOriginalsText);
  const payload = (await documents.payload("os@sha256:1", signal)) ?? "";
  expect(payload.length).toBeLessThan(2 * mostOriginalsText);
  const configuration = Math.ceil(((defaultMaxTotalBytes + maxRenderedBytes) * 4) / 3);
  expect(2 * mostOriginalsText + configuration).toBeLessThan(mostDocumentBytes);
  // The settling machine reads what the OS ships there: nothing says that it is absent.
  const { entries } = JSON.parse(payload) as Payload;
  expect(entries.filter(({ path }) => path.startsWith("/etc/of-os-"))).toHaveLength(2);
});
