import { describe, expect, test } from "vitest";
import { type Harness, updatedPool } from "../../test/support/control-plane-harness.ts";
import { MachineConfig } from "../api/kinds/machine-config.ts";
import { poolConditions } from "../api/names.ts";

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
});
