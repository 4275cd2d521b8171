import { expect, test } from "vitest";
import { type PodDisruptionBudget, kubernetes } from "../api/foreign/kubernetes.ts";
import { currentBudgets } from "./drain-watches.ts";

const budget = (namespace: string, name: string): PodDisruptionBudget => ({
  apiVersion: kubernetes.PodDisruptionBudget.apiVersion,
  kind: kubernetes.PodDisruptionBudget.kind,
  metadata: { name, namespace },
});

test("budgets of a namespace are listed where those of others have taken all places of the watch [drain-watches-1]", async () => {
  const watched = {
    kept: [budget("kept", "a")],
    crowded: "noRoom",
    full: "incomplete",
  } as const;
  const asked: (string | undefined)[] = [];
  const kube = {
    list: (_: unknown, { namespace }: { readonly namespace?: string }) => {
      asked.push(namespace);
      return Promise.resolve({ items: namespace === "empty" ? [] : [budget(namespace ?? "", "listed")] });
    },
  };
  const current = (namespaces: readonly string[], isRunning = true) =>
    currentBudgets(
      namespaces,
      {
        budgets: {
          share: (_: string, namespace: keyof typeof watched) => (isRunning ? (watched[namespace] ?? []) : undefined),
        },
      } as never,
      { kube, signal: new AbortController().signal } as never,
    );
  const names = async (...given: Parameters<typeof current>) =>
    Object.fromEntries(
      [...(await current(...given))].map(([namespace, all]) => [
        namespace,
        all === "tooMany" ? all : all.map(({ metadata }) => metadata.name),
      ]),
    );
  expect(await names(["kept", "full", "other"])).toEqual({ kept: ["a"], full: "tooMany", other: [] });
  expect(asked).toEqual([]);
  expect(await names(["kept", "crowded"])).toEqual({ kept: ["a"], crowded: ["listed"] });
  expect(asked.splice(0)).toEqual(["crowded"]);
  expect(await names(["kept", "empty"], false)).toEqual({ kept: ["listed"] });
  expect(asked).toEqual(["kept", "empty"]);
});
