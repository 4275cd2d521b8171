import { describe, expect, test } from "vitest";
import { emptyNodeConfig, findUnitIn, managedUnits, masks } from "../config/node-config.ts";
import { type ImageContentView, planImageContent, targetOfPayload } from "./image-content-plan.ts";
import type { ObservedEntry, OriginalEntry, Originals } from "./observed-content.ts";

const path = "/etc/chrony.conf";
const file = (digest: string) => ({ kind: "file", digest, mode: 0o644, uid: 0, gid: 0 }) as const;
const entry = (digest: string): OriginalEntry => ({ ...file(digest), contents: btoa(digest) });
const originals: Originals = {
  paths: {},
  enablement: {},
  passwords: {},
  kernelArguments: [],
  ownKernelArguments: [],
};

function viewWith(more: Partial<ImageContentView>): ImageContentView {
  return {
    entries: new Map(),
    enablement: new Map(),
    links: new Map(),
    shippedUnits: new Map(),
    passwords: new Map(),
    users: new Map(),
    groups: new Map(),
    previous: undefined,
    vendor: new Map(),
    active: new Set(),
    originals,
    ...more,
  };
}

describe("a path that the image does not name any more [machine-image-plan-1]", () => {
  const shipped = (digest: string): OriginalEntry => ({ ...entry(digest), shipped: true });
  test.for<{
    readonly title: string;
    readonly recorded: OriginalEntry | null;
    readonly is: ObservedEntry | undefined;
    readonly ships: OriginalEntry | undefined;
    readonly restores: OriginalEntry | null | undefined;
  }>([
    {
      title: "keeps what the OS ships now, whatever it shipped when the path was first managed",
      recorded: shipped("v1"),
      is: file("v2"),
      ships: entry("v2"),
      restores: undefined,
    },
    {
      title: "gets what the OS ships now if something else is there",
      recorded: shipped("v1"),
      is: file("ours"),
      ships: entry("v2"),
      restores: entry("v2"),
    },
    {
      title: "is removed if the OS does not ship it any more",
      recorded: shipped("v1"),
      is: file("v1"),
      ships: undefined,
      restores: null,
    },
    {
      title: "gets an administrator's file back",
      recorded: entry("administrator"),
      is: file("v2"),
      ships: entry("v2"),
      restores: entry("administrator"),
    },
  ])("$title", ({ recorded, is, ships, restores }) => {
    const view = viewWith({
      entries: new Map(is === undefined ? [] : [[path, is]]),
      originals: { ...originals, paths: { [path]: recorded } },
      vendor: new Map(ships === undefined ? [] : [[path, ships]]),
    });
    const plan = planImageContent(view, emptyNodeConfig);
    expect(plan.steps).toEqual(restores === undefined ? [] : [{ do: "restoreEntries", paths: [path] }]);
    if (restores !== undefined) expect(plan.originals.paths[path]).toEqual(restores);
  });
});

test("a payload manages the units that it masks [machine-image-plan-2]", () => {
  const target = targetOfPayload({
    v: 1,
    entries: [
      { path: "/etc/systemd/system/a.service", kind: "link", target: "/dev/null" },
      { path: "/etc/systemd/system/b.service", kind: "link", target: "/etc/b" },
    ],
    units: [],
    accounts: [],
  });
  expect([masks(target, "a.service"), masks(target, "b.service")]).toEqual([true, false]);
  expect([...managedUnits(target, findUnitIn(target, new Map()))]).toEqual(["a.service"]);
});
