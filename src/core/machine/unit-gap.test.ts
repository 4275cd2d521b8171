import { expect, test } from "vitest";
import { utf8ToBytes } from "@noble/hashes/utils.js";
import { alsoShapes, unitsOfShape } from "../../../test/support/also-shapes.ts";
import { countWork } from "../../../test/support/count-work.ts";
import { type NodeConfig, emptyNodeConfig } from "../config/node-config.ts";
import type { OriginalEntry } from "./observed-content.ts";
import { originalUnits, originalsWithLinksOfOs, unitGap } from "./unit-gap.ts";

const at = (path: string) => `/etc/systemd/system/${path}`;
const wants = (name: string) => at(`multi-user.target.wants/${name}`);
const vendor = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n";

test.for<{
  readonly title: string;
  readonly was: string;
  readonly is: string;
  readonly paths?: Readonly<Record<string, OriginalEntry | null>>;
  readonly steps: readonly object[];
}>([
  { title: "enabled, is enabled", was: "enabled", is: "disabled", steps: [{ do: "enableUnit", unit: "a.service" }] },
  {
    title: "disabled, loses its links",
    was: "disabled",
    is: "enabled",
    steps: [{ do: "relinkUnits", units: ["a.service"], remove: [wants("a.service")], make: [] }],
  },
  {
    title: "masked by an administrator, is masked, and loses its links",
    was: "masked",
    is: "enabled",
    paths: { [at("a.service")]: { kind: "link", target: "/dev/null" } },
    steps: [{ do: "relinkUnits", units: ["a.service"], remove: [wants("a.service")], make: [] }],
  },
  {
    title: "masked, which was by a configuration, follows the presets",
    was: "masked",
    is: "enabled",
    paths: { [at("a.service")]: null },
    steps: [
      { do: "relinkUnits", units: ["a.service"], remove: [wants("a.service")], make: [] },
      { do: "presetUnit", unit: "a.service" },
    ],
  },
])("a unit that an earlier release recorded as $title [machine-unit-gap-1]", ({ was, is, paths = {}, steps }) => {
  const { before, after } = unitGap(
    {
      enablement: new Map([["a.service", is]]),
      links: new Map(is === "enabled" ? [[wants("a.service"), "/usr/lib/systemd/system/a.service"]] : []),
      shippedUnits: new Map([["a.service", vendor]]),
      originals: {
        paths,
        enablement: { "a.service": was },
        passwords: {},
        kernelArguments: [],
        ownKernelArguments: [],
      },
      previous: { ...emptyNodeConfig, enablement: new Map([["a.service", { enabled: true, installable: true }]]) },
    },
    emptyNodeConfig,
    new Set(),
  );
  expect([...before, ...after]).toEqual(steps);
});

const wantsOther = at("other.target.wants/a.service");
const ofOs = "/usr/lib/systemd/system/a.service";
const ours = at("a.service");

test.for<{
  readonly title: string;
  readonly links: Readonly<Record<string, string>>;
  readonly shipped: Readonly<Record<string, string>>;
  /** The file that hid the OS's own goes now. Absent: another image came without it. */
  readonly goes?: true;
  readonly recordedLinks?: Readonly<Record<string, string>>;
  readonly name?: string;
  readonly isAbsent?: true;
  readonly steps: readonly object[];
}>([
  {
    title: "and enables by a link of its own keeps this link, which came back with the image",
    links: { [wants("a.service")]: ofOs },
    shipped: { [wants("a.service")]: ofOs },
    recordedLinks: {},
    steps: [],
  },
  {
    title: "and enables by a link of its own gets this link instead of ours",
    links: { [wants("a.service")]: ours, [wantsOther]: ours },
    shipped: { [wants("a.service")]: ofOs },
    goes: true,
    steps: [
      {
        do: "relinkUnits",
        units: ["a.service"],
        remove: [wants("a.service"), wantsOther],
        make: [{ path: wants("a.service"), target: ofOs }],
      },
    ],
  },
  {
    title: "and enables by a link of its own gets this link back that the MachineConfig took away",
    links: {},
    shipped: { [wants("a.service")]: ofOs },
    recordedLinks: {},
    steps: [
      {
        do: "relinkUnits",
        units: ["a.service"],
        remove: [],
        make: [{ path: wants("a.service"), target: ofOs }],
      },
    ],
  },
  {
    title: "without a link of its own follows its presets",
    links: { [wants("a.service")]: ours },
    shipped: {},
    goes: true,
    recordedLinks: {},
    steps: [
      { do: "relinkUnits", units: ["a.service"], remove: [wants("a.service")], make: [] },
      { do: "presetUnit", unit: "a.service" },
    ],
  },
  {
    title: "as a template leaves instances disabled that it does not enable itself",
    name: "a@x.service",
    links: { [wants("a@x.service")]: at("a@.service") },
    shipped: {},
    goes: true,
    steps: [{ do: "relinkUnits", units: ["a@x.service"], remove: [wants("a@x.service")], make: [] }],
  },
  {
    title: "on another machine, but not here, loses our links",
    isAbsent: true,
    links: { [wants("a.service")]: ours },
    shipped: {},
    goes: true,
    recordedLinks: {},
    steps: [{ do: "relinkUnits", units: ["a.service"], remove: [wants("a.service")], make: [] }],
  },
])(
  "a unit that the OS ships $title, once a MachineConfig that brought its file goes [machine-unit-gap-2]",
  ({ links, shipped, goes, recordedLinks, name = "a.service", isAbsent, steps }) => {
    const file = name === "a.service" ? name : "a@.service";
    const { before, after } = unitGap(
      {
        enablement: new Map([[name, Object.keys(links).length > 0 ? "enabled" : "disabled"]]),
        links: new Map(Object.entries(links)),
        shippedUnits: new Map(isAbsent === true ? [] : [[file, vendor]]),
        shippedLinks: new Map(Object.entries(shipped)),
        originals: {
          paths: { [at(file)]: null },
          enablement: { [name]: "absent" },
          ...(recordedLinks === undefined ? {} : { links: { [name]: recordedLinks } }),
          passwords: {},
          kernelArguments: [],
          ownKernelArguments: [],
        },
        previous: undefined,
      },
      emptyNodeConfig,
      new Set(goes === true ? [at(file)] : []),
    );
    expect([...before, ...after]).toEqual(steps);
  },
);

const owner = { id: 0 };
const file = (path: string, text: string) =>
  [
    path,
    {
      kind: "file",
      contents: utf8ToBytes(text),
      sizeBytes: text.length,
      digest: text,
      mode: 0o644,
      user: owner,
      group: owner,
      origin: { kind: "file" },
    },
  ] as const;

test("units are compared in time in proportion to them and to the files [machine-unit-gap-3]", async () => {
  const configOf = (count: number, drop: string): NodeConfig => ({
    ...emptyNodeConfig,
    enablement: new Map(
      Array.from({ length: count }, (_, i) => [`u${i}.service`, { enabled: true, installable: true }] as const),
    ),
    entries: new Map(
      Array.from({ length: count }, (_, i) => [
        file(at(`u${i}.service`), `${vendor}Also=u${i % 7}.service\n`),
        file(at(`u${i}.service.d/${drop}.conf`), "[Install]\nWantedBy=x.target\n"),
        file(`/etc/app/${i}`, ""),
      ]).flat(),
    ),
  });
  const gapOf = (count: number) => {
    const [previous, target] = [configOf(count, "a"), configOf(count, "b")];
    const names = [...target.enablement.keys()];
    const node = {
      enablement: new Map(names.map((name) => [name, "enabled"])),
      shippedUnits: new Map<string, string>(),
      originals: {
        paths: {},
        enablement: Object.fromEntries(names.map((name) => [name, "absent"])),
        passwords: {},
        kernelArguments: [],
        ownKernelArguments: [],
      },
      previous,
    };
    return () => unitGap(node, target, new Set());
  };
  expect(gapOf(9)().after).toHaveLength(9);
  expect(await countWork(gapOf(160))).toBeLessThan(3 * (await countWork(gapOf(80))));
});

test.for(alsoShapes)(
  "units that name each other in Also= are compared and linked in time in proportion to their text: $title [machine-unit-gap-4]",
  async (shape) => {
    const configOf = (count: number, folder: string): NodeConfig => {
      const units = unitsOfShape(shape, count, (i) => `WantedBy=${folder}${i % 5}.target`);
      return {
        ...emptyNodeConfig,
        enablement: new Map(units.map(({ name }) => [name, { enabled: true, installable: true }])),
        entries: new Map(units.map(({ name, contents }) => file(at(name), contents))),
      };
    };
    const gapOf = (count: number, links: "recorded" | "not recorded") => {
      const [previous, target] = [configOf(count, "a"), configOf(count, "b")];
      const names = [...target.enablement.keys()];
      const node = {
        enablement: new Map(names.map((name) => [name, "enabled"])),
        links: new Map(names.map((name, i) => [at(`a${i % 5}.target.wants/${name}`), at(name)])),
        shippedUnits: new Map<string, string>(),
        originals: {
          paths: Object.fromEntries(names.map((name) => [at(name), null])),
          enablement: Object.fromEntries(names.map((name) => [name, "absent"])),
          ...(links === "recorded" ? { links: Object.fromEntries(names.map((name) => [name, {}])) } : {}),
          passwords: {},
          kernelArguments: [],
          ownKernelArguments: [],
        },
        previous,
      };
      return () => {
        const gap = unitGap(node, target, new Set(target.entries.keys()));
        const original = originalUnits(node);
        for (let i = 0; i < count; i += 1) original(`more${i}.path`);
        return gap;
      };
    };
    const { before, after } = gapOf(9, "recorded")();
    expect(before).toMatchObject([{ do: "relinkUnits", make: [] }]);
    expect([before.flatMap((step) => ("remove" in step ? step.remove : [])).length, after.length]).toEqual([9, 9]);
    for (const links of ["recorded", "not recorded"] as const)
      expect(await countWork(gapOf(80, links))).toBeLessThan(shape.growth * (await countWork(gapOf(40, links))));
  },
);

const socketLink = at("sockets.target.wants/a.socket");
const otherLink = at("other.target.wants/a.socket");
const socketOfOs = "/usr/lib/systemd/system/a.socket";
const socketText = "[Socket]\nListenStream=/run/a\n[Install]\nWantedBy=sockets.target\n";
const onlySocket = { [socketLink]: socketOfOs };

test.for<{
  readonly title: string;
  readonly links: Readonly<Record<string, string>>;
  /** What the OS ships. */
  readonly shipped?: Readonly<Record<string, string>>;
  /** The configuration has the socket's file. */
  readonly brings?: true;
  readonly recorded?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly original: object;
}>([
  { title: "no original one; presets decide", links: onlySocket, original: { enablement: "unknown" } },
  {
    title: "no original one, beside one that is",
    links: { ...onlySocket, [otherLink]: socketOfOs },
    original: { enablement: "enabled", links: { [otherLink]: socketOfOs } },
  },
  {
    title: "the OS's own where it ships this link",
    links: onlySocket,
    shipped: onlySocket,
    original: { enablement: "enabled", links: onlySocket },
  },
  {
    title: "ours where the OS ships another link of that name",
    links: onlySocket,
    shipped: { [socketLink]: "/usr/lib/systemd/system/b.socket" },
    original: { enablement: "unknown" },
  },
  {
    title: "ours where it leads to a file of the configuration, which an image of ours ships",
    links: { [socketLink]: at("a.socket") },
    shipped: { [socketLink]: at("a.socket") },
    brings: true,
    original: { enablement: "unknown" },
  },
  {
    title: "an original one once this release records the links of units",
    links: onlySocket,
    recorded: { "a.service": {} },
    original: { enablement: "enabled", links: onlySocket },
  },
])("a link that Also= of an earlier release may have made is $title [machine-unit-gap-5]", (each) => {
  const { links, shipped = {}, brings, recorded, original } = each;
  const node = {
    enablement: new Map([["a.socket", "enabled"]]),
    links: new Map(Object.entries(links)),
    shippedUnits: new Map([
      ["a.service", `${vendor}Also=a.socket\n`],
      ["a.socket", socketText],
    ]),
    shippedLinks: new Map(Object.entries(shipped)),
    originals: {
      paths: {},
      enablement: { "a.service": "disabled" },
      ...(recorded === undefined ? {} : { links: recorded }),
      passwords: {},
      kernelArguments: [],
      ownKernelArguments: [],
    },
    previous: {
      ...emptyNodeConfig,
      enablement: new Map([["a.service", { enabled: true, installable: true }]]),
      entries: new Map(brings === true ? [file(at("a.socket"), socketText)] : []),
    },
  };
  expect(originalUnits(node)("a.socket")).toEqual(original);
});

test.for<{
  readonly title: string;
  readonly was?: string;
  readonly recorded: Readonly<Record<string, string>>;
  /** What the OS ships. */
  readonly shipped: Readonly<Record<string, string>>;
  /** The links of the service that enables the socket are recorded. */
  readonly knows?: "the service";
  readonly isAbsent?: true;
  readonly original: { readonly enablement: string; readonly links?: Readonly<Record<string, string>> };
}>([
  {
    title: "left out the OS's link is as the OS has it",
    recorded: {},
    shipped: onlySocket,
    original: { enablement: "enabled", links: onlySocket },
  },
  {
    title: "left out the OS's link, and not another one, has both",
    was: "enabled",
    recorded: { [otherLink]: socketOfOs },
    shipped: onlySocket,
    original: { enablement: "enabled", links: { ...onlySocket, [otherLink]: socketOfOs } },
  },
  {
    title: "left out the only link follows its presets",
    recorded: {},
    shipped: {},
    original: { enablement: "unknown" },
  },
  {
    title: "left out a link beside one that it recorded keeps that one",
    was: "enabled",
    recorded: { [otherLink]: socketOfOs },
    shipped: {},
    original: { enablement: "enabled", links: { [otherLink]: socketOfOs } },
  },
  {
    title: "recorded as masked stays so",
    was: "masked",
    recorded: {},
    shipped: onlySocket,
    original: { enablement: "masked", links: {} },
  },
  {
    title: "recorded as disabled, and the OS does not ship, stays so",
    recorded: {},
    shipped: {},
    isAbsent: true,
    original: { enablement: "disabled", links: {} },
  },
  {
    title: "recorded as disabled when it recorded the links of the service, too, stays so",
    recorded: {},
    shipped: onlySocket,
    knows: "the service",
    original: { enablement: "disabled", links: {} },
  },
])(
  "a socket that Also= of an enabled service names and that an earlier release $title [machine-unit-gap-6]",
  (each) => {
    const { was = "disabled", recorded, shipped, knows, isAbsent, original } = each;
    const { enablement, links } = originalsWithLinksOfOs({
      shippedUnits: new Map([
        ["a.service", `${vendor}Also=a.socket\n`],
        ...(isAbsent === true ? [] : [["a.socket", socketText] as const]),
      ]),
      shippedLinks: new Map(Object.entries(shipped)),
      originals: {
        paths: {},
        enablement: { "a.service": "disabled", "a.socket": was },
        links: { "a.socket": recorded, ...(knows === undefined ? {} : { "a.service": {} }) },
        passwords: {},
        kernelArguments: [],
        ownKernelArguments: [],
      },
      previous: {
        ...emptyNodeConfig,
        enablement: new Map([["a.service", { enabled: true, installable: true }]]),
        entries: new Map(isAbsent === true ? [file(at("a.socket"), socketText)] : []),
      },
    });
    expect({ enablement: enablement["a.socket"], links: links?.["a.socket"] }).toEqual(original);
    expect(enablement["a.service"]).toBe("disabled");
  },
);
