import { describe, expect, test } from "vitest";
import { type Harness, updatedPool } from "../../test/support/control-plane-harness.ts";
import { kubernetes } from "../api/foreign/kubernetes.ts";
import { ControllerConfig } from "../api/kinds/controller-config.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { labels, objects, poolConditions } from "../api/names.ts";
import { renderedName } from "../core/render/rendered-name.ts";

const change = (harness: Harness) => harness.act(() => harness.config("60-worker", "worker", { "/etc/b": "1" }));

/** The name that the change of {@link change} leads to: anybody can know it before. */
async function nextName(): Promise<string> {
  const { harness } = await updatedPool(["w0"]);
  await change(harness);
  await harness.pass(3000);
  return (await harness.poolStatus("worker")).target;
}
const filesOf = (config: MachineConfig | undefined) =>
  (
    (config?.spec?.config as { storage?: { files?: { path: string }[] } } | undefined)?.storage?.files?.map(
      ({ path }) => path,
    ) ?? []
  ).toSorted();
const stored = (harness: Harness, name: string) => harness.act(() => harness.kube.get(MachineConfig, { name }));
const renderLines = (harness: Harness) =>
  harness.journal.lines
    .filter(({ book, path }) => book === "pool/worker" && path === "Refused")
    .map(({ reason, mark }) => `${reason} ${mark}`);

describe("a MachineConfig of the name of a rendered config", () => {
  test("that somebody made before does not reach the machines of the pool, which says what to do [render-names-1]", async () => {
    const next = await nextName();
    const { harness, first } = await updatedPool(["w0"]);
    await harness.act(() => harness.config(next, "infra", { "/etc/evil": "root:x" }));
    await harness.pass(3000);
    await change(harness);
    await harness.pass(60_000);
    const { target, of } = await harness.poolStatus("worker");
    expect(target).toBe(first);
    expect(of(poolConditions.renderDegraded)).toMatchObject({
      status: "True",
      reason: "RenderedNameTaken",
      message: expect.stringContaining(`${next} has other contents`) as string,
    });
    expect(await harness.desired("worker")).toEqual({ w0: first });
    expect((await stored(harness, next))?.metadata.ownerReferences).toBeUndefined();
    expect(renderLines(harness)).toEqual(["RenderedNameTaken begin"]);

    await harness.act(() => harness.kube.delete(MachineConfig, { name: next }));
    await harness.pass(3000);
    expect(await harness.desired("worker")).toEqual({ w0: next });
    expect(filesOf(await stored(harness, next))).toEqual(expect.arrayContaining(["/etc/a", "/etc/b"]));
    expect(filesOf(await stored(harness, next))).not.toContain("/etc/evil");
    expect((await harness.poolStatus("worker")).of(poolConditions.renderDegraded)).toMatchObject({ status: "False" });
    expect(renderLines(harness)).toEqual(["RenderedNameTaken begin", "Recovered end"]);
  });

  test("that somebody changes after it was made degrades its pool until it is as before [render-names-2]", async () => {
    const { harness, first } = await updatedPool(["w0"]);
    const before = await stored(harness, first);
    const patch = (spec: object | undefined) =>
      harness.act(() =>
        harness.kube.patch(MachineConfig, { name: first }, { type: "merge", body: { spec } }, { owner: "people" }),
      );
    await patch({ kernelArguments: ["init=/evil"] });
    await harness.pass(3000);
    expect((await harness.poolStatus("worker")).of(poolConditions.renderDegraded)).toMatchObject({
      status: "True",
      reason: "RenderedNameTaken",
    });
    await patch(before?.spec);
    await harness.pass(3000);
    expect((await harness.poolStatus("worker")).of(poolConditions.renderDegraded)).toMatchObject({ status: "False" });
  });

  test("that holds what is rendered, in the form of another writer, is taken over [render-names-3]", async () => {
    const next = await nextName();
    const one = await updatedPool(["w0"]);
    await change(one.harness);
    await one.harness.pass(3000);
    const spec = (await stored(one.harness, next))?.spec;
    const { harness } = await updatedPool(["w0"]);
    // As programs in Go write a list without items.
    await harness.act(() =>
      harness.kube.create(MachineConfig, {
        apiVersion: MachineConfig.apiVersion,
        kind: MachineConfig.kind,
        metadata: { name: next },
        spec: { ...spec, extensions: null },
      }),
    );
    await change(harness);
    await harness.pass(3000);
    expect(await harness.desired("worker")).toEqual({ w0: next });
    expect((await stored(harness, next))?.metadata.ownerReferences).toMatchObject([{ name: "worker" }]);
  });

  test("whose texts differ only for what its name does not tell apart is another one [render-names-4]", async () => {
    const contents = "[Service]\n# rules of the site\nExecStart=/usr/local/bin/firewall\n";
    const unit = (text: string) => ({ name: "firewall.service", contents: text });
    const withUnit = (harness: Harness) =>
      harness.act(() =>
        harness.config(
          "60-worker",
          "worker",
          {},
          { config: { ignition: { version: "3.4.0" }, systemd: { units: [unit(contents)] } } },
        ),
      );
    const one = await updatedPool(["w0"]);
    await withUnit(one.harness);
    await one.harness.pass(3000);
    const { target: next } = await one.harness.poolStatus("worker");
    const spec = (await stored(one.harness, next))?.spec ?? {};

    const { harness, first } = await updatedPool(["w0"]);
    const comment = unit(contents.replace("site\n", "site\u0085\u0085"));
    const changed = { ...spec, config: { ...spec.config, systemd: { units: [comment] } } };
    expect(renderedName("worker", changed as never)).toEqual({ verdict: "named", name: next });
    await harness.act(() =>
      harness.kube.create(MachineConfig, {
        apiVersion: MachineConfig.apiVersion,
        kind: MachineConfig.kind,
        metadata: { name: next, labels: { [labels.role]: "infra" } },
        spec: changed,
      }),
    );
    await withUnit(harness);
    await harness.pass(60_000);
    expect(await harness.desired("worker")).toEqual({ w0: first });
    expect((await harness.poolStatus("worker")).of(poolConditions.renderDegraded)).toMatchObject({
      status: "True",
      reason: "RenderedNameTaken",
    });
  });

  test("that the cluster's definition of MachineConfig does not keep as rendered is nobody else's [render-names-5]", async () => {
    const { harness, first } = await updatedPool(["w0"]);
    const definition = { name: `${MachineConfig.plural}.machineconfiguration.openshift.io` };
    const patch = (operations: readonly object[]) =>
      harness.act(() =>
        harness.kube.patch(kubernetes.CustomResourceDefinition, definition, {
          type: "json",
          operations: operations as never,
        }),
      );
    const field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/baseOSExtensionsContainerImage";
    await patch([{ op: "remove", path: field }]);
    await harness.act(() =>
      harness.kube.patch(
        ControllerConfig,
        { name: objects.controllerConfig },
        { type: "merge", body: { spec: { baseOSExtensionsContainerImage: "extensions@sha256:0" } } },
      ),
    );
    await harness.pass(60_000);
    const { target, of } = await harness.poolStatus("worker");
    expect(target).toBe(first);
    const condition = of(poolConditions.renderDegraded);
    expect(condition).toMatchObject({ status: "True", reason: "RenderedConfigNotKept" });
    expect(condition?.message).toContain("spec.baseOSExtensionsContainerImage");
    expect(condition?.message).toContain("machineconfigs.machineconfiguration.openshift.io");
    expect(renderLines(harness)).toEqual(["RenderedConfigNotKept begin"]);

    // As its remedy says.
    await patch([{ op: "replace", path: "/spec", value: MachineConfig.crd().spec }]);
    const next = /MachineConfig (rendered-worker-\w+)/.exec(condition?.message ?? "")?.[1] ?? "";
    await harness.act(() => harness.kube.delete(MachineConfig, { name: next }));
    await harness.pass(3000);
    expect(await harness.desired("worker")).toEqual({ w0: next });
    expect(renderLines(harness)).toEqual(["RenderedConfigNotKept begin", "Recovered end"]);
  });

  test("to which a newer definition of MachineConfig adds a default holds what was rendered, unless that differs [render-names-6]", async () => {
    const { harness, first } = await updatedPool(["w0"]);
    const definition = { name: `${MachineConfig.plural}.machineconfiguration.openshift.io` };
    const path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/laterField";
    await harness.act(() =>
      harness.kube.patch(kubernetes.CustomResourceDefinition, definition, {
        type: "json",
        operations: [{ op: "add", path, value: { type: "string", default: "Standard" } }],
      }),
    );
    await change(harness);
    await harness.pass(3000);
    const { target, of } = await harness.poolStatus("worker");
    expect(target).not.toBe(first);
    expect((await stored(harness, target))?.spec).toHaveProperty("laterField", "Standard");
    expect(of(poolConditions.renderDegraded)).toMatchObject({ status: "False" });
    await harness.act(() => harness.finish("w0"));
    // What is there is compared again.
    await harness.act(() => harness.config("70-worker", "worker", { "/etc/c": "1" }));
    await harness.pass(3000);
    await harness.act(() => harness.kube.delete(MachineConfig, { name: "70-worker" }));
    await harness.pass(3000);
    expect((await harness.poolStatus("worker")).target).toBe(target);
    expect((await harness.poolStatus("worker")).of(poolConditions.renderDegraded)).toMatchObject({ status: "False" });
    expect(renderLines(harness)).toEqual([]);

    await harness.act(() =>
      harness.kube.patch(
        MachineConfig,
        { name: target },
        { type: "merge", body: { spec: { config: { passwd: { users: [{ name: "evil" }] } } } } },
        { owner: "people" },
      ),
    );
    await harness.pass(3000);
    expect((await harness.poolStatus("worker")).of(poolConditions.renderDegraded)).toMatchObject({
      status: "True",
      reason: "RenderedNameTaken",
    });
  });
});
