import { expect, onTestFinished, test } from "vitest";
import { inProcessCluster } from "../../test/simulation/in-process-cluster.ts";
import { Kernel } from "../../test/simulation/kernel.ts";
import { timestampOf } from "../api/schema/object.ts";
import { ProvisioningToken } from "../api/kinds/provisioning-token.ts";
import { endedTokensStayMs } from "../core/join/ended-tokens.ts";
import { runControllers } from "../kube/controller.ts";
import { createEventRecorder } from "../kube/event-recorder.ts";
import type { LogFields, Logger } from "../ports/logger.ts";
import { memoryJournal } from "../ports/journal.ts";
import { tokenController } from "./token-controller.ts";

const hour = 3_600_000;

/** A cluster in virtual time that has these tokens, by name. */
async function clusterWith(
  tokens: Readonly<
    Record<
      string,
      (now: number) => Pick<ProvisioningToken, "status"> & { readonly spec: Partial<ProvisioningToken["spec"]> }
    >
  >,
) {
  const kernel = new Kernel(7);
  const { kube } = await kernel.complete(inProcessCluster(kernel), 60_000);
  const act = <T>(work: () => Promise<T>): Promise<T> => kernel.complete(work(), 60_000);
  await act(async () => {
    for (const [name, made] of Object.entries(tokens)) {
      const { spec, status } = made(kernel.clock.now());
      await kube.create(ProvisioningToken, {
        apiVersion: ProvisioningToken.apiVersion,
        kind: ProvisioningToken.kind,
        metadata: { name },
        spec: { pool: "worker", tokenHash: "0".repeat(64), ...spec },
      });
      if (status !== undefined)
        await kube.patch(ProvisioningToken, { name }, { type: "merge", body: { status } }, { subresource: "status" });
    }
  });
  const told: LogFields[] = [];
  const log: Logger = {
    debug() {},
    info: (fields, message) => void (message === "provisioning token removed" && told.push(fields)),
    warn() {},
    error() {},
    child: () => log,
  };
  const ports = { clock: kernel.clock, random: kernel.random, log, journal: memoryJournal() };
  const stopping = new AbortController();
  const events = createEventRecorder({ ...ports, kube, component: "test" });
  void runControllers([tokenController()], { ...ports, kube, events }, stopping.signal);
  onTestFinished(() => stopping.abort(new Error("the test is over")));
  const pass = (ms: number) => kernel.complete(kernel.clock.sleep(ms), ms);
  const left = async () =>
    (await act(() => kube.list(ProvisioningToken))).items.map(({ metadata }) => metadata.name).sort();
  return { kube, act, pass, told, left };
}

test("an expired token is deleted a day after its end, and reported once", async () => {
  const { pass, told, left } = await clusterWith({
    aaaaaaaaa1: (now) => ({ spec: { expiresAt: timestampOf(now + hour) } }),
    aaaaaaaaa2: (now) => ({ spec: { maxUses: 1 }, status: { uses: 1, lastUsedAt: timestampOf(now) } }),
    aaaaaaaaa3: () => ({ spec: { maxUses: 2 }, status: { uses: 1, lastUsedAt: "2001-01-01T00:00:00Z" } }),
    aaaaaaaaa4: (now) => ({ spec: { expiresAt: timestampOf(now + 1000 * hour) } }),
    aaaaaaaaa5: (now) => ({ spec: { expiresAt: timestampOf(now - endedTokensStayMs - hour) } }),
  });
  await pass(5000);
  expect(await left()).toEqual(["aaaaaaaaa1", "aaaaaaaaa2", "aaaaaaaaa3", "aaaaaaaaa4"]);
  await pass(endedTokensStayMs - 60_000);
  expect(await left()).toEqual(["aaaaaaaaa1", "aaaaaaaaa2", "aaaaaaaaa3", "aaaaaaaaa4"]);
  await pass(60_000);
  expect(await left()).toEqual(["aaaaaaaaa1", "aaaaaaaaa3", "aaaaaaaaa4"]);
  await pass(hour);
  expect(await left()).toEqual(["aaaaaaaaa3", "aaaaaaaaa4"]);
  await pass(48 * hour);
  expect(told.map(({ token, because }) => [token, because])).toEqual([
    ["aaaaaaaaa5", "Expired"],
    ["aaaaaaaaa2", "UsedUp"],
    ["aaaaaaaaa1", "Expired"],
  ]);
});

test("a returned use keeps its token", async () => {
  const { kube, act, pass, told, left } = await clusterWith({
    aaaaaaaaa1: (now) => ({ spec: { maxUses: 1 }, status: { uses: 1, lastUsedAt: timestampOf(now) } }),
  });
  await pass(endedTokensStayMs - hour);
  await act(() =>
    kube.patch(
      ProvisioningToken,
      { name: "aaaaaaaaa1" },
      { type: "merge", body: { status: { uses: 0 } } },
      { subresource: "status" },
    ),
  );
  await pass(100 * hour);
  expect(await left()).toEqual(["aaaaaaaaa1"]);
  expect(told).toEqual([]);
});
