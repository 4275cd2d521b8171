import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { annotations, hostPaths } from "../api/names.ts";
import { type Content, MachineScene } from "../../test/support/machine-scene.ts";
import type { Previous } from "../core/machine/machine-record.ts";

const { signal } = new AbortController();
const one: Content = {
  files: { "/etc/app.conf": "one" },
  spec: { kernelArguments: ["a=1", "b=2"], extensions: ["usbguard", "kerberos"] },
};

async function settled(
  content: Content = {},
  options: Parameters<typeof MachineScene.make>[0] = {},
): Promise<MachineScene> {
  const scene = await MachineScene.make(options);
  await scene.settledOn("rendered-1", content);
  return scene;
}

async function goTo(scene: MachineScene, name: string, content: Content): Promise<void> {
  await scene.config(name, content);
  await scene.desire(name);
  await scene.untilDone(name);
}

describe("a look", () => {
  test("at a machine whose Node goes away touches nothing [daemon-looks-1]", async () => {
    const scene = await settled();
    await scene.act(() =>
      scene.kube.patch(
        kubernetes.Node,
        { name: scene.name },
        { type: "merge", body: { metadata: { finalizers: ["example.com/wait"] } } },
      ),
    );
    await scene.act(() => scene.kube.delete(kubernetes.Node, { name: scene.name }));
    await scene.config("rendered-2", { files: { "/etc/app.conf": "two" } });
    await scene.desire("rendered-2");
    await scene.pass(600_000);
    expect(scene.effects).toEqual([]);
  });

  test("at a machine that is well and does not say so makes it say so, and does nothing else [daemon-looks-4]", async () => {
    const scene = await settled(one);
    await scene.annotate({ [annotations.state]: "Degraded", [annotations.reason]: "somebody's words" });
    await scene.untilDone("rendered-1");
    expect(await scene.annotation(annotations.reason)).toBe("");
    expect(scene.effects).toEqual([]);
  });

  test("waits for a target that is not chosen, or that nobody has made yet [daemon-looks-3]", async () => {
    const scene = await MachineScene.make();
    scene.start();
    await scene.pass(120_000);
    await scene.desire("rendered-1");
    await scene.pass(120_000);
    expect(scene.effects).toEqual([]);
    await scene.config("rendered-1", one);
    await scene.untilDone("rendered-1");
  });

  test("after a reboot takes back what was said of it, once the machine has really gone down [daemon-looks-2]", async () => {
    const scene = await settled();
    await scene.config("rendered-2", { files: { "/etc/app.conf": "two" } });
    await scene.desire("rendered-2");
    await scene.until(async () => scene.reboots.length === 1, "the reboot");
    expect(await scene.annotation(annotations.postConfigAction)).toBe("Rebooting");
    await scene.untilDone("rendered-2");
    expect(await scene.annotation(annotations.postConfigAction)).toBe("");
    expect(scene.story.filter(({ path, mark }) => path === "PostAction/Rebooted" && mark === "end")).toHaveLength(1);
    expect(await scene.events()).toContain("Rebooted");
  });

  test("leaves the documents that going back needs, whole and without the API server [daemon-looks-9]", async () => {
    const scene = await settled(one);
    await goTo(scene, "rendered-2", { ...one, files: { "/etc/app.conf": "two" } });
    expect(await scene.ledgerDocument<Previous>("previous.json")).toMatchObject({
      proven: true,
      config: { metadata: { name: "rendered-2" }, spec: { extensions: ["usbguard", "kerberos"] } },
    });
    for (const name of ["ledger.json", "target.json"]) expect(await scene.ledgerDocument(name)).toBeUndefined();
    expect(await scene.file(hostPaths.currentImage)).toBeUndefined();
  });
});

describe("another spelling of the same", () => {
  test("extensions in another order change nothing [daemon-looks-7]", async () => {
    const scene = await settled(one);
    await goTo(scene, "rendered-2", { ...one, spec: { ...one.spec, extensions: ["kerberos", "usbguard"] } });
    expect(scene.reboots).toEqual([]);
  });

  test("kernel arguments in one entry or in several change nothing [daemon-looks-5]", async () => {
    const scene = await settled(one);
    await goTo(scene, "rendered-2", { ...one, spec: { ...one.spec, kernelArguments: ["a=1  b=2"] } });
    expect(scene.reboots).toEqual([]);
  });

  test("kernel arguments in another order change nothing [daemon-looks-6]", async () => {
    const scene = await settled(one);
    await goTo(scene, "rendered-2", { ...one, spec: { ...one.spec, kernelArguments: ["b=2", "a=1"] } });
    expect(scene.reboots).toEqual([]);
  });
});

describe("kernel arguments", () => {
  test("of a configuration go with it, one by one; those of others stay [daemon-looks-12]", async () => {
    const scene = await settled(
      { spec: { kernelArguments: ["a", "b=1 c"] } },
      { kernelArguments: ["root=x", "theirs"] },
    );
    await goTo(scene, "rendered-2", { spec: { kernelArguments: ["a", "d"] } });
    expect((await scene.host.os.status(signal)).booted.kernelArguments).toEqual(["root=x", "theirs", "a", "d"]);
  });

  test("of a configuration leave what the machine was born with [daemon-looks-13]", async () => {
    const scene = await settled({ spec: { kernelArguments: ["extra"] } });
    await goTo(scene, "rendered-2", {});
    expect((await scene.host.os.status(signal)).booted.kernelArguments).toEqual(["root=x"]);
  });
});

test("packages that somebody layered by hand stay through an update of the system, and are counted [daemon-looks-15]", async () => {
  const scene = await settled();
  await scene.host.os.stage({ ...(await scene.host.os.status(signal)).booted, packages: ["htop"] }, undefined, signal);
  await scene.boot({ orderly: true });
  await goTo(scene, "rendered-2", { spec: { osImageURL: "os@sha256:2" } });
  expect((await scene.host.os.status(signal)).booted).toMatchObject({ image: "os@sha256:2", packages: ["htop"] });
  expect(scene.facts.foreignPackages).toBe(1);
});

test("an update without packages fetches the system and no packages [daemon-looks-11]", async () => {
  const scene = await settled();
  const fetched: string[] = [];
  scene.tamper = (host) => ({
    ...host,
    os: { ...host.os, prefetch: async (image, until) => (fetched.push(image), host.os.prefetch(image, until)) },
  });
  scene.kill();
  scene.start();
  await goTo(scene, "rendered-2", { files: { "/etc/app.conf": "two" }, spec: { osImageURL: "os@sha256:2" } });
  expect(fetched).toEqual(["os@sha256:2"]);
});

test("a realtime kernel is no reason to fetch or stage anything [daemon-looks-10]", async () => {
  const realtime: Content = { spec: { kernelType: "realtime", extensions: ["usbguard"] } };
  const scene = await settled(realtime);
  await goTo(scene, "rendered-2", { ...realtime, files: { "/etc/app.conf": "two" } });
  expect(scene.effects.filter((effect) => effect.startsWith("os."))).toEqual(["os.reboot"]);
});

test("registries.conf that comes compressed is read like any other [daemon-looks-8]", async () => {
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
  const scene = await settled(conf(registry("one.example")));
  await goTo(scene, "rendered-2", conf(registry("one.example") + registry("two.example")));
  expect(scene.effects).toContain("units.reload");
  expect(await scene.events()).not.toContain("Drain");
  await goTo(scene, "rendered-3", conf(registry("two.example")));
  expect(await scene.events()).toContain("Drain");
  expect(scene.reboots).toEqual([]);
});

test("an extension that does not exist is refused by name [daemon-looks-14]", async () => {
  const scene = await settled();
  await scene.config("rendered-2", { spec: { extensions: ["wasm"] } });
  await scene.desire("rendered-2");
  expect(await scene.untilState("Unreconcilable")).toContain("wasm: no such extension");
  expect(scene.effects).toEqual([]);
});
