import { describe, expect, test } from "vitest";
import { annotations } from "../../api/names.ts";
import type { KubeObject } from "../../api/schema/object.ts";
import { generatedName } from "./generated-names.ts";

interface Given {
  readonly name: string;
  readonly day: number;
  readonly finalizers?: readonly string[];
  readonly suffix?: string;
}

const object = ({ name, day, finalizers, suffix }: Given): KubeObject => ({
  apiVersion: "machineconfiguration.openshift.io/v1",
  kind: "KubeletConfig",
  metadata: {
    name,
    creationTimestamp: `2026-01-${String(day).padStart(2, "0")}T00:00:00Z`,
    ...(finalizers === undefined ? {} : { finalizers: [...finalizers] }),
    ...(suffix === undefined ? {} : { annotations: { [annotations.configNameSuffix]: suffix } }),
  },
});
const plain = "99-worker-generated-kubelet";

/** Makes objects and gives each the finalizer that its first name becomes, as the controller does. */
class Pool {
  readonly objects = new Map<string, KubeObject>();
  readonly names = new Map<string, string>();
  add(given: Given): void {
    const config = object(given);
    const name = generatedName({
      kind: "kubelet",
      pool: "worker",
      config,
      others: [...this.objects.values()],
      exists: (one) => [...this.names.values()].includes(one),
    });
    this.names.set(given.name, name);
    this.objects.set(given.name, object({ ...given, finalizers: [name] }));
  }
  remove(name: string): void {
    this.objects.delete(name);
    this.names.delete(name);
  }
  /** Of which object the machines take the file. */
  get winner(): string | undefined {
    return [...this.names].toSorted(([, one], [, other]) => (one < other ? -1 : 1)).at(-1)?.[0];
  }
}

describe("the names of generated MachineConfigs", () => {
  test("are unique for any number of objects and deletions in any order, and the newest object wins [kubelet-generated-names-1]", () => {
    const pool = new Pool();
    const alive: string[] = [];
    for (let day = 1; day <= 28; day += 1) {
      pool.add({ name: `config-${day}`, day });
      alive.push(`config-${day}`);
      if (day % 3 === 0) {
        const [gone = ""] = alive.splice((day * 7) % alive.length, 1);
        pool.remove(gone);
      }
      expect(new Set(pool.names.values()).size).toBe(alive.length);
      if (alive.length > 0) expect(pool.winner).toBe(alive.at(-1));
    }
  });

  test.for([
    { title: "of the only object is plain", given: {}, is: plain },
    { title: "that an annotation gives stays", given: { suffix: "4" }, is: `${plain}-4` },
    { title: "that an empty annotation gives stays", given: { suffix: "" }, is: plain },
    {
      title: "with the largest number among existing finalizers stays",
      given: { finalizers: [`${plain}-2`, "99-other-generated-kubelet-9", plain, `${plain}-7`] },
      exists: [plain, `${plain}-2`],
      is: `${plain}-2`,
    },
    {
      title: "of an older object stays plain beside a new one",
      given: { finalizers: [plain] },
      others: [object({ name: "b", day: 2 })],
      is: plain,
    },
    {
      title: "of a second object follows from its time and name",
      given: {},
      others: [object({ name: "b", day: 2 })],
      is: `${plain}-t0t85s00ca978112`,
    },
  ] as const)("$title [kubelet-generated-names-2]", ({ given, is, ...rest }) => {
    const { others = [], exists = [] }: { others?: readonly KubeObject[]; exists?: readonly string[] } = rest;
    const config = object({ name: "a", day: 1, ...given });
    const name = generatedName({
      kind: "kubelet",
      pool: "worker",
      config,
      others,
      exists: (one) => exists.includes(one),
    });
    expect(name).toBe(is);
  });

  test("fit into a finalizer, however long the object's name is [kubelet-generated-names-4]", () => {
    const name = generatedName({
      kind: "containerruntime",
      pool: "worker",
      config: object({ name: "a".repeat(253), day: 1 }),
      others: [object({ name: "b", day: 2 })],
      exists: () => false,
    });
    expect(name.length).toBeLessThanOrEqual(63);
  });

  test("of new objects come behind those that the reference numbers [kubelet-generated-names-3]", () => {
    const name = generatedName({
      kind: "kubelet",
      pool: "worker",
      config: object({ name: "new", day: 9 }),
      others: [object({ name: "old", day: 1, suffix: "9" })],
      exists: () => false,
    });
    expect(name > `${plain}-9`).toBe(true);
  });
});
