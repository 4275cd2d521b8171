import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { annotations, labels } from "../../api/names.ts";
import { type RenderInputs, renderPool } from "./render-pool.ts";
import { maxRenderedBytes, mostMerged } from "./too-large-together.ts";
import { inMergeOrder } from "../config/merge-fields.ts";
import { renderedName } from "./rendered-name.ts";
import type { MachineConfigInput } from "../config/validate-machine-config.ts";
import { yamlForHash } from "./yaml-for-hash.ts";

const mc = (
  name: string,
  spec: MachineConfigInput["spec"] = {},
  role = "worker",
  notes?: Record<string, string>,
): MachineConfigInput => ({
  metadata: { name, labels: { [labels.role]: role }, ...(notes === undefined ? {} : { annotations: notes }) },
  spec,
});
const inputs = (
  pool: string,
  members: readonly MachineConfigInput[],
  more: Partial<RenderInputs> = {},
): RenderInputs => ({
  pool: { metadata: { name: pool, uid: "u" } },
  members,
  controllerConfig: { spec: { baseOSContainerImage: "os-image", baseOSExtensionsContainerImage: "ext-image" } },
  ...more,
});
const rendered = (given: RenderInputs) => {
  const result = renderPool(given);
  if (result.verdict === "refused") throw new Error(JSON.stringify(result.refusals));
  return result;
};
const refusals = (given: RenderInputs) => {
  const result = renderPool(given);
  return result.verdict === "refused" ? result.refusals : [];
};
const fileConfig = (path: string, text: string, version = "3.5.0") => ({
  ignition: { version },
  storage: { files: [{ path, mode: 420, contents: { source: `data:,${text}` } }] },
});

describe("renderPool", () => {
  test.for([
    {
      title: "one empty member",
      pool: "worker",
      members: [mc("00-worker")],
      name: "rendered-worker-6fcec65d16054cd82c3d6de009064cb3",
    },
    {
      title: "two members that write one file",
      pool: "worker",
      members: [
        mc("00-worker", {
          config: {
            ignition: { version: "3.2.0" },
            storage: { files: [{ path: "/etc/a", mode: 420, contents: { source: "data:,a%20b" } }] },
            systemd: { units: [{ name: "x.service", enabled: true, contents: "[Unit]\nDescription=x\n" }] },
          },
        }),
        mc("99-worker-z", {
          kernelArguments: ["quiet", "yes", "a=1"],
          fips: true,
          extensions: ["usbguard"],
          config: {
            ignition: { version: "3.5.0" },
            storage: {
              files: [{ path: "/etc/a", overwrite: false, contents: { source: "data:,c", compression: "gzip" } }],
            },
          },
        }),
      ],
      name: "rendered-worker-68adbe4ff94e98c88c7ebf2317f5a6ab",
    },
    {
      title: "a custom pool whose own configs come after all of worker's",
      pool: "infra",
      members: [
        mc("01-infra", { osImageURL: "i-image", kernelArguments: ["i"] }, "infra"),
        mc("00-worker", { osImageURL: "template-image" }, "worker", { [annotations.generatedByController]: "g" }),
        mc("99-worker-a", { osImageURL: "w-image", kernelArguments: ["w"] }),
      ],
      name: "rendered-infra-c753b8ff378f63c2639d529a75927714",
    },
  ])("the name of $title is the reference's", ({ pool, members, name }) => {
    expect(rendered(inputs(pool, members)).config.metadata.name).toBe(name);
  });

  test("worker's members come first, then the others, each by the bytes of their names [render-pool-3]", () => {
    const members = [mc("b", {}, "infra"), mc("z"), mc("a", {}, "infra"), mc("\uffff"), mc("😀"), mc("A")];
    expect(inMergeOrder(members).map(({ metadata }) => metadata.name)).toEqual(["A", "z", "\uffff", "😀", "a", "b"]);
  });

  test("lists are strung together, an explicit default kernel resets nothing, FIPS stays on [render-pool-4]", () => {
    const { spec } = rendered(
      inputs("worker", [
        mc("a", { kernelArguments: ["x"], kernelType: "realtime", fips: true }),
        mc("b", { kernelArguments: ["x", "y"], kernelType: "default", fips: false }),
      ]),
    ).config;
    expect(spec).toMatchObject({
      kernelArguments: ["x", "x", "y"],
      kernelType: "realtime",
      fips: true,
      osImageURL: "os-image",
      extensions: [],
    });
  });

  test("an image of a person's member replaces the cluster's, one of a generated member does not [render-pool-5]", () => {
    const generated = { [annotations.generatedByController]: "g" };
    expect(rendered(inputs("worker", [mc("a", { osImageURL: "x" }, "worker", generated)])).config.spec.osImageURL).toBe(
      "os-image",
    );
    const { config, warnings } = rendered(inputs("worker", [mc("a", { osImageURL: "x:tag" })]));
    expect(config.metadata.annotations).toMatchObject({ [annotations.osImageURLOverridden]: "true" });
    expect(warnings.map(({ code }) => code)).toEqual(["ImageOverridden", "Finding"]);
  });

  test.for([
    ["no member", [], {}, { code: "NoMembers" }],
    [
      "a member with an invalid config",
      [mc("a", { config: { ignition: { version: "3.5.0" }, storage: { files: [{ path: "x" }] } } })],
      {},
      { code: "InvalidMember", member: "a", path: "spec.config.storage.files[0].path" },
    ],
    [
      "an unknown kernel type",
      [mc("a", { kernelType: "slow" })],
      {},
      { code: "InvalidMember", path: "spec.kernelType" },
    ],
    [
      "an unknown extension beside a config",
      [mc("a", { extensions: ["vim"], config: fileConfig("/a", "") })],
      {},
      { code: "InvalidMember", path: "spec.extensions[0]" },
    ],
    ["a member without labels", [{ metadata: { name: "a" }, spec: {} }], {}, { code: "UnlabelledMember", member: "a" }],
    [
      "kernel-devel with another kernel",
      [mc("a", { extensions: ["kernel-devel"], kernelType: "realtime" })],
      {},
      { code: "KernelDevel", member: "a" },
    ],
    [
      "a member of an older generator",
      [mc("a", {}, "worker", { [annotations.generatedByController]: "old" })],
      { generatorVersion: "new" },
      { code: "OutdatedMember", member: "a" },
    ],
    [
      "a text that cannot be hashed",
      [mc("a"), mc("b", { kernelArguments: ["\u007f"] })],
      {},
      { code: "Unhashable", member: "b" },
    ],
    [
      "an image beside an OS stream",
      [mc("a", { osImageURL: "x" })],
      {
        pool: { metadata: { name: "worker" }, spec: { osImageStream: { name: "rhel-10" } } },
        stream: { osImage: "s", extensionsImage: "e" },
      },
      { code: "StreamAndImage", member: "a" },
    ],
    [
      "more than the store takes",
      [mc("a", { config: fileConfig("/a", "x".repeat(maxRenderedBytes)) })],
      {},
      { code: "TooLarge", member: "a" },
    ],
  ] as const)("%s is refused [render-pool-1]", ([, members, more, refusal]) => {
    expect(refusals(inputs("worker", members, more as Partial<RenderInputs>))).toMatchObject([refusal]);
  });

  test("members that are too large together are refused before they are merged [render-pool-8]", () => {
    const many = (letter: string) =>
      Array.from({ length: 20_000 }, (_, i) => ({ path: `/etc/${letter}/f${i}`, contents: { source: "data:,a" } }));
    const large = Array.from({ length: 25 }, (_, k) =>
      mc(`50-${k}`, { config: { ignition: { version: "3.4.0" }, storage: { files: many(`k${k}`) } } }),
    );
    const larger = mc("40-x", { config: fileConfig("/a", "x".repeat(maxRenderedBytes)) });
    const began = process.cpuUsage();
    const [refusal, ...others] = refusals(inputs("worker", [mc("a"), ...large, larger]));
    expect(process.cpuUsage(began).user / 1e6).toBeLessThan(1);
    expect(others).toEqual([]);
    expect(refusal).toMatchObject({ code: "TooLarge", member: "40-x" });
    expect(refusal?.reason).toMatch(
      /^the MachineConfigs of the pool have \d{8} characters of JSON together, of which 6291456 are merged, and the API server's store takes 1572864 bytes of the rendered config: the largest are 40-x with \d{7}, 50-\d+ with \d{7}, 50-\d+ with \d{7}$/,
    );
  });

  test("members that replace each other's files may have more together than the store takes [render-pool-9]", () => {
    const text = "x".repeat(1_400_000);
    const members = ["a", "b", "c", "d"].map((name) => mc(name, { config: fileConfig("/a", `${name}${text}`) }));
    const total = members.reduce((sum, member) => sum + JSON.stringify(member.spec).length, 0);
    expect(total).toBeGreaterThan(mostMerged * 0.85);
    expect(total).toBeLessThan(mostMerged);
    const { storage } = rendered(inputs("worker", members)).config.spec.config as {
      readonly storage: { readonly files: readonly { readonly contents: { readonly source: string } }[] };
    };
    expect(storage.files.map(({ contents: { source } }) => source.slice(0, 8))).toEqual(["data:,dx"]);
  });

  test("unknown fields that nest without end are neither rendered nor walked", () => {
    let deep: Record<string, unknown> = {};
    for (let i = 0; i < 200_000; i++) deep = { deep };
    const nested = { ...fileConfig("/a", "x"), deep };
    expect(rendered(inputs("worker", [mc("a", { config: nested })])).config.metadata.name).toBe(
      rendered(inputs("worker", [mc("a", { config: fileConfig("/a", "x") })])).config.metadata.name,
    );
    expect(refusals(inputs("worker", [mc("a", { config: nested, kernelArguments: ["\u007f"] })]))).toMatchObject([
      { code: "Unhashable", member: "a" },
    ]);
  });

  test("an unknown extension without a config renders, and is a warning [render-pool-2]", () => {
    const { warnings } = rendered(inputs("worker", [mc("a", { extensions: ["vim"] })]));
    expect(warnings).toMatchObject([{ code: "Finding", path: "spec.extensions[0]" }]);
  });

  test("members that replace each other's contents are warned of, with both names", () => {
    const { origins, warnings } = rendered(
      inputs("worker", [
        mc("a", { config: fileConfig("/etc/x", "1") }),
        mc("b", { config: fileConfig("/etc/x", "2") }),
      ]),
    );
    expect(warnings).toMatchObject([
      { code: "Conflict", member: "b", reason: "b replaces the contents that a gives /etc/x" },
    ]);
    expect(origins).toMatchObject([{ kind: "file", name: "/etc/x", from: "b", fields: { contents: "b" } }]);
  });

  test("the input order of members makes no difference [render-pool-6]", () => {
    const members = ["a", "b", "c", "d"].map((name, i) =>
      mc(
        name,
        { kernelArguments: [name], config: fileConfig(`/etc/${i % 2}`, name) },
        i % 2 === 0 ? "worker" : "infra",
      ),
    );
    const { name } = rendered(inputs("infra", members)).config.metadata;
    fc.assert(
      fc.property(fc.shuffledSubarray(members, { minLength: members.length }), (shuffled) => {
        expect(rendered(inputs("infra", shuffled)).config.metadata.name).toBe(name);
      }),
    );
  });

  test("a rendered config renders to itself", () => {
    const first = rendered(
      inputs("worker", [
        mc("a", { kernelArguments: ["x"], config: fileConfig("/etc/x", "1", "3.1.0") }),
        mc("b", { config: fileConfig("/etc/y", "2") }),
      ]),
    ).config;
    expect(rendered(inputs("worker", [mc(first.metadata.name, first.spec)])).config.metadata.name).toBe(
      first.metadata.name,
    );
  });
});

describe("yamlForHash", () => {
  const yaml = (value: unknown) => {
    const result = yamlForHash(value);
    return result.verdict === "emitted" ? result.text : result.verdict;
  };

  test.for([
    ["plain", "plain\n"],
    ["", '""\n'],
    ["yes", '"yes"\n'],
    ["Null", '"Null"\n'],
    ["1_000", '"1_000"\n'],
    ["0x1F", '"0x1F"\n'],
    ["08", '"08"\n'],
    ["1e3", '"1e3"\n'],
    [".5", '".5"\n'],
    ["1.2.3", "1.2.3\n"],
    ["2001-01-01", '"2001-01-01"\n'],
    ["2001-13-01", "2001-13-01\n"],
    ["12:30:45", '"12:30:45"\n'],
    ["- a", "'- a'\n"],
    ["a: b", "'a: b'\n"],
    ["a #b", "'a #b'\n"],
    ["a#b", "a#b\n"],
    ["it's", "it's\n"],
    ["'a", "'''a'\n"],
    [" a", "' a'\n"],
    ["a\tb", '"a\\tb"\n'],
    ["a\nb", "|-\n  a\n  b\n"],
    ["a\n", "|\n  a\n"],
    ["a\n\n", "|+\n  a\n\n"],
    ["\na", "|2-\n\n  a\n"],
    ["a \nb", '"a \\nb"\n'],
    ["😀", '"\\U0001F600"\n'],
    ["a\u0085b", "a b\n"],
    ["a \u0085\u0085 b", "|-\n  a\n  b\n"],
    ["é\u00a0", "é\u00a0\n"],
    ["\ufeffa", '"\\uFEFF\\x61"\n'],
    ["\u007f", "refused"],
    ["\u0085--- a", "refused"],
    ["\u0085---a", "' ---a'\n"],
  ] as const)("%j is written as %j", ([value, text]) => {
    expect(yaml(value)).toBe(text);
  });

  test("nesting: lists in maps are not indented, lists in lists are, empty ones stay on the line", () => {
    expect(yaml({ b: [{ d: 1, c: [] }, [1, [2]]], a: { x: {} }, s: null, t: true })).toBe(
      "a:\n  x: {}\nb:\n- c: []\n  d: 1\n- - 1\n  - - 2\ns: null\nt: true\n",
    );
  });

  test("long texts are folded at single spaces", () => {
    const words = "word ".repeat(30).trim();
    expect(yaml({ key: words })).toBe(`key: ${"word ".repeat(15)}word\n  ${"word ".repeat(14).trim()}\n`);
  });

  test("the order of fields makes no difference, and the text is stable", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.string()), (record) => {
        const reversed = Object.fromEntries(Object.entries(record).toReversed());
        expect(yaml(reversed)).toBe(yaml(record));
      }),
      // Keys that the library puts in a circle.
      { examples: [[{ "1A": "", "2 ": "", "10 ": "" }], [{ "1A": "", "10": "", "2 ": "" }]] },
    );
  });

  test("different texts never give the same name [render-pool-7]", () => {
    const nameOf = (text: string) =>
      renderedName("p", {
        osImageURL: text,
        baseOSExtensionsContainerImage: "",
        config: {},
        kernelArguments: [],
        extensions: [],
        fips: false,
        kernelType: "default",
      });
    fc.assert(
      fc.property(fc.string(), fc.string(), (a, b) => {
        fc.pre(a !== b);
        expect(nameOf(a)).not.toEqual(nameOf(b));
      }),
    );
  });

  test("a text of megabytes of digits costs no more than reading it", () => {
    expect(yaml("9".repeat(2_000_000)).startsWith("9")).toBe(true);
    expect(yaml(`0b${"1".repeat(2_000_000)}`).startsWith("0b")).toBe(true);
  });
});
