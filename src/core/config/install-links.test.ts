import { expect, test } from "vitest";
import { countWork } from "../../../test/support/count-work.ts";
import { type FindUnit, enablingOf, isInstallable, unitFolder } from "./install-links.ts";
import { readInstallSection } from "./install-section.ts";

const at = (name: string) => `${unitFolder}/${name}`;
const units =
  (texts: Readonly<Record<string, string>>): FindUnit =>
  (name) => {
    const text = texts[name];
    return text === undefined ? undefined : { path: at(name), texts: [text] };
  };
const linksOf = (name: string, texts: Readonly<Record<string, string>>) =>
  enablingOf(name, units(texts)).links.map(({ path, target }) => [path.slice(unitFolder.length + 1), target]);
const install = (lines: string) => `[Service]\nExecStart=/bin/true\n[Install]\n${lines}\n`;

test.for([
  {
    title: "a template by its default instance",
    name: "probe@.service",
    texts: { "probe@.service": install("WantedBy=m.target\nDefaultInstance=a") },
    links: [["m.target.wants/probe@a.service", at("probe@.service")]],
  },
  {
    title: "an instance by its own name, whatever the default is",
    name: "probe@eth0.service",
    texts: { "probe@.service": install("WantedBy=m.target t@%i.target\nDefaultInstance=a") },
    links: [
      ["m.target.wants/probe@eth0.service", at("probe@.service")],
      ["t@eth0.target.wants/probe@eth0.service", at("probe@.service")],
    ],
  },
  {
    title: "a template without an instance only where the other unit has one",
    name: "plain@.service",
    texts: { "plain@.service": install("WantedBy=m.target x@.target") },
    links: [["x@.target.wants/plain@.service", at("plain@.service")]],
  },
  {
    title: "a list that goes on after a backslash, and past a comment",
    name: "main.service",
    texts: { "main.service": install("WantedBy=a.target \\\n# no\n  b.target") },
    links: [
      ["a.target.wants/main.service", at("main.service")],
      ["b.target.wants/main.service", at("main.service")],
    ],
  },
  {
    title: "the units that it names, too",
    name: "main.service",
    texts: {
      "main.service": install("Also=helper.socket gone.service\nAlias=other.service"),
      "helper.socket": "[Install]\nWantedBy=sockets.target\nAlso=main.service",
    },
    links: [
      ["other.service", at("main.service")],
      ["sockets.target.wants/helper.socket", at("helper.socket")],
    ],
  },
  {
    title: "nothing of a list that an empty assignment cleared",
    name: "reset.service",
    texts: { "reset.service": install("WantedBy=old.target\nWantedBy=\nWantedBy=new.target") },
    links: [["new.target.wants/reset.service", at("reset.service")]],
  },
])("enabling links $title [install-links-2]", ({ name, texts, links }) => {
  expect(linksOf(name, texts as Readonly<Record<string, string>>)).toEqual(links);
});

test("what systemctl refuses is a problem [install-links-3]", () => {
  const problemsOf = (name: string, texts: Readonly<Record<string, string>>) => enablingOf(name, units(texts)).problems;
  expect(problemsOf("plain@.service", { "plain@.service": install("WantedBy=m.target") })).toEqual([
    "plain@.service: WantedBy=m.target needs an instance: the template has no DefaultInstance",
  ]);
  expect(problemsOf("a.service", {})).toEqual(["a.service does not exist"]);
  expect(problemsOf("a.service", { "a.service": install("Alias=b.socket") })).toEqual([
    "a.service: Alias=b.socket cannot be a name of it",
  ]);
});

test("no link leaves the folder of units [install-links-1]", () => {
  const text = "[Install]\nAlias=../../cron.d/x /etc/passwd .. .\nWantedBy=../../../tmp/a\nRequiredBy=a/b";
  expect(linksOf("x.service", { "x.service": text })).toEqual([]);
});

const mebibyte = 1 << 20;
const times = (text: string, count: number) => text.repeat(count);

test.for([
  { title: "lines of WantedBy", line: "WantedBy=a.path\n", links: 1 },
  { title: "lines of Alias", line: "Alias=a.service\n", links: 1 },
  { title: "lines of Also", line: "Also=a.socket\n", links: 0 },
  { title: "lines of DefaultInstance", line: "DefaultInstance=a\n", links: 0 },
  { title: "lines that clear a list", line: "RequiredBy=\n", links: 0 },
  { title: "lines that go on", line: "\\\n", links: 0 },
  { title: "comments in a line that goes on", line: "# b\n", before: "WantedBy=a.path \\\n", links: 1 },
  { title: "words of WantedBy", line: "a.path ", before: "WantedBy=", links: 1 },
  { title: "words of Also", line: "a.socket ", before: "Also=", links: 0 },
  { title: "words of Also in a line each", line: "a.socket \\\n", before: "Also=", links: 0 },
])("a unit of a mebibyte is read in time in proportion to it: $title [install-links-5]", async (each) => {
  const { line, before = "", links } = each;
  const of = (count: number) => `[Install]\n${before}${times(line, count)}`;
  const whole = of(Math.floor(mebibyte / line.length));
  const enabling = enablingOf("x.service", units({ "x.service": whole }));
  expect([enabling.links.length, new Set(enabling.also).size]).toEqual([links, line.includes("socket") ? 1 : 0]);
  expect(isInstallable("x.service", [whole])).toBe(links > 0 || line.includes("socket"));
  const work = (count: number) => {
    const text = of(count);
    return countWork(() => enablingOf("x.service", units({ "x.service": text })));
  };
  expect(await work(4000)).toBeLessThan(2.5 * (await work(2000)) + 1000);
});

test("a line of Also may name any number of units, and each unit is read once [install-links-6]", async () => {
  const names = Array.from({ length: 130_000 }, (_, i) => `u${i}.socket`);
  expect(readInstallSection([`[Install]\nAlso=${names.join(" ")}`]).also).toEqual(names);
  const work = (count: number) => {
    const text = install(`Also=${names.slice(0, count).join(" ")}`);
    return countWork(() => enablingOf("x.service", units({ "x.service": text })));
  };
  expect(await work(4000)).toBeLessThan(2.5 * (await work(2000)) + 1000);
  let reads = 0;
  const find: FindUnit = (name) => {
    reads += 1;
    return { path: at(name), texts: [install("WantedBy=m.target\nAlso=a.service b.service")] };
  };
  for (const name of ["a.service", "b.service", "a.service"]) expect(enablingOf(name, find).links).toHaveLength(2);
  expect(reads).toBe(2);
});
