import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { annotations, hostPaths } from "../api/names.ts";
import { type Content, MachineHarness } from "../../test/support/machine-harness.ts";
import type { Previous } from "../core/machine/machine-record.ts";

const { signal } = new AbortController();
const one: Content = {
  files: { "/etc/app.conf": "one" },
  spec: { kernelArguments: ["a=1", "b=2"], extensions: ["usbguard", "kerberos"] },
};

async function settled(
  content: Content = {},
  options: Parameters<typeof MachineHarness.make>[0] = {},
): Promise<MachineHarness> {
  const harness = await MachineHarness.make(options);
  await harness.updatedTo("rendered-1", content);
  return harness;
}

async function goTo(harness: MachineHarness, name: string, content: Content): Promise<void> {
  await harness.config(name, content);
  await harness.desire(name);
  await harness.untilDone(name);
}

describe("a pass", () => {
  test("over a machine whose Node is being deleted changes nothing [daemon-looks-1]", async () => {
    const harness = await settled();
    await harness.act(() =>
      harness.kube.patch(
        kubernetes.Node,
        { name: harness.name },
        { type: "merge", body: { metadata: { finalizers: ["example.com/wait"] } } },
      ),
    );
    await harness.act(() => harness.kube.delete(kubernetes.Node, { name: harness.name }));
    await harness.config("rendered-2", { files: { "/etc/app.conf": "two" } });
    await harness.desire("rendered-2");
    await harness.pass(600_000);
    expect(harness.effects).toEqual([]);
  });

  test("over a healthy machine without the state Done only reports Done [daemon-looks-4]", async () => {
    const harness = await settled(one);
    await harness.annotate({ [annotations.state]: "Degraded", [annotations.reason]: "somebody's words" });
    await harness.untilDone("rendered-1");
    expect(await harness.annotation(annotations.reason)).toBe("");
    expect(harness.effects).toEqual([]);
  });

  test("waits for a target that is not chosen or does not exist yet [daemon-looks-3]", async () => {
    const harness = await MachineHarness.make();
    harness.start();
    await harness.pass(120_000);
    await harness.desire("rendered-1");
    await harness.pass(120_000);
    expect(harness.effects).toEqual([]);
    await harness.config("rendered-1", one);
    await harness.untilDone("rendered-1");
  });

  test("after a reboot clears its announcement, once the machine has really rebooted [daemon-looks-2]", async () => {
    const harness = await settled();
    await harness.config("rendered-2", { files: { "/etc/app.conf": "two" } });
    await harness.desire("rendered-2");
    await harness.until(async () => harness.reboots.length === 1, "the reboot");
    expect(await harness.annotation(annotations.postConfigAction)).toBe("Rebooting");
    await harness.untilDone("rendered-2");
    expect(await harness.annotation(annotations.postConfigAction)).toBe("");
    expect(harness.history.filter(({ path, mark }) => path === "PostAction/Rebooted" && mark === "end")).toHaveLength(
      1,
    );
    expect(await harness.events()).toContain("Rebooted");
  });

  test("keeps the documents that a roll-back needs, complete and without the API server [daemon-looks-9]", async () => {
    const harness = await settled(one);
    await goTo(harness, "rendered-2", { ...one, files: { "/etc/app.conf": "two" } });
    expect(await harness.ledgerDocument<Previous>("previous.json")).toMatchObject({
      proven: true,
      config: { metadata: { name: "rendered-2" }, spec: { extensions: ["usbguard", "kerberos"] } },
    });
    for (const name of ["ledger.json", "target.json"]) expect(await harness.ledgerDocument(name)).toBeUndefined();
    expect(await harness.file(hostPaths.currentImage)).toBeUndefined();
  });
});

describe("another spelling of the same", () => {
  test("extensions in another order change nothing [daemon-looks-7]", async () => {
    const harness = await settled(one);
    await goTo(harness, "rendered-2", { ...one, spec: { ...one.spec, extensions: ["kerberos", "usbguard"] } });
    expect(harness.reboots).toEqual([]);
  });

  test("kernel arguments in one entry or in several change nothing [daemon-looks-5]", async () => {
    const harness = await settled(one);
    await goTo(harness, "rendered-2", { ...one, spec: { ...one.spec, kernelArguments: ["a=1  b=2"] } });
    expect(harness.reboots).toEqual([]);
  });

  test("kernel arguments in another order change nothing [daemon-looks-6]", async () => {
    const harness = await settled(one);
    await goTo(harness, "rendered-2", { ...one, spec: { ...one.spec, kernelArguments: ["b=2", "a=1"] } });
    expect(harness.reboots).toEqual([]);
  });
});

describe("kernel arguments", () => {
  test("of a configuration are removed with it, one by one; others stay [daemon-looks-12]", async () => {
    const harness = await settled(
      { spec: { kernelArguments: ["a", "b=1 c"] } },
      { kernelArguments: ["root=x", "theirs"] },
    );
    await goTo(harness, "rendered-2", { spec: { kernelArguments: ["a", "d"] } });
    expect((await harness.host.os.status(signal)).booted.kernelArguments).toEqual(["root=x", "theirs", "a", "d"]);
  });

  test("of a configuration leave the machine's original ones [daemon-looks-13]", async () => {
    const harness = await settled({ spec: { kernelArguments: ["extra"] } });
    await goTo(harness, "rendered-2", {});
    expect((await harness.host.os.status(signal)).booted.kernelArguments).toEqual(["root=x"]);
  });
});

test("packages layered by hand survive an OS update, and are counted [daemon-looks-15]", async () => {
  const harness = await settled();
  await harness.host.os.stage(
    { ...(await harness.host.os.status(signal)).booted, packages: ["htop"] },
    undefined,
    signal,
  );
  await harness.boot({ orderly: true });
  await goTo(harness, "rendered-2", { spec: { osImageURL: "os@sha256:2" } });
  expect((await harness.host.os.status(signal)).booted).toMatchObject({ image: "os@sha256:2", packages: ["htop"] });
  expect(harness.facts.foreignPackages).toBe(1);
});

test("an update without packages fetches the system and no packages [daemon-looks-11]", async () => {
  const harness = await settled();
  const fetched: string[] = [];
  harness.tamper = (host) => ({
    ...host,
    os: { ...host.os, prefetch: async (image, until) => (fetched.push(image), host.os.prefetch(image, until)) },
  });
  harness.kill();
  harness.start();
  await goTo(harness, "rendered-2", { files: { "/etc/app.conf": "two" }, spec: { osImageURL: "os@sha256:2" } });
  expect(fetched).toEqual(["os@sha256:2"]);
});

test("a realtime kernel causes no fetch and no staging [daemon-looks-10]", async () => {
  const realtime: Content = { spec: { kernelType: "realtime", extensions: ["usbguard"] } };
  const harness = await settled(realtime);
  await goTo(harness, "rendered-2", { ...realtime, files: { "/etc/app.conf": "two" } });
  expect(harness.effects.filter((effect) => effect.startsWith("os."))).toEqual(["os.reboot"]);
});

test("a compressed registries.conf is read like any other [daemon-looks-8]", async () => {
  const registry = (name: string) =>
    `[[registry]]\nprefix = "${name}"\nlocation = "${name}"\nmirror-by-digest-only = true\n`;
  const conf = (text: string): Content => ({
    ignition: {
      storage: {
        files: [
          {
            path: "/etc/containers/registries.conf",
            contents: { compression: "gzip", source: `data:;base64,${gzipSync(text).toString("base64")}` },
          },
        ],
      },
    },
  });
  const harness = await settled(conf(registry("one.example")));
  await goTo(harness, "rendered-2", conf(registry("one.example") + registry("two.example")));
  expect(harness.effects).toContain("units.reload");
  expect(await harness.events()).not.toContain("Drain");
  await goTo(harness, "rendered-3", conf(registry("two.example")));
  expect(await harness.events()).toContain("Drain");
  expect(harness.reboots).toEqual([]);
});

test("an extension that does not exist is refused by name [daemon-looks-14]", async () => {
  const harness = await settled();
  await harness.config("rendered-2", { spec: { extensions: ["wasm"] } });
  await harness.desire("rendered-2");
  expect(await harness.untilState("Unreconcilable")).toContain("wasm: no such extension");
  expect(harness.effects).toEqual([]);
});
