import { expect, test } from "vitest";
import { gzipSync } from "node:zlib";
import { encodeDataUrl } from "../../ignition/data-url.ts";
import { alsoShapes, unitsOfShape } from "../../../test/support/also-shapes.ts";
import { countWork } from "../../../test/support/count-work.ts";
import { validateMachineConfig } from "./validate-machine-config.ts";

const install = (lines: string) => `[Service]\nExecStart=/bin/true\n[Install]\n${lines}\n`;
const findings = (units: readonly object[]) =>
  validateMachineConfig(
    { metadata: { name: "50-units" }, spec: { config: { ignition: { version: "3.4.0" }, systemd: { units } } } },
    { role: "worker" },
  ).map(({ severity, path, reason }) => `${severity} ${path} ${reason}`);

test("a unit that systemctl cannot enable is a warning [validate-units-1]", () => {
  const template = (lines: string) => ({ name: "p@.service", enabled: true, contents: install(lines) });
  expect(findings([template("WantedBy=m.target")])).toEqual([
    "warning spec.config.systemd.units[0].enabled systemctl cannot: p@.service: WantedBy=m.target needs an instance: the template has no DefaultInstance",
  ]);
  expect(findings([template("WantedBy=m.target\nDefaultInstance=a")])).toEqual([]);
  expect(findings([{ ...template("WantedBy=m.target"), enabled: false }])).toEqual([]);
  // The machine may have these units.
  expect(
    findings([
      { name: "vendors.service", enabled: true },
      { name: "vendors@a.service", enabled: true },
      { name: "a.service", enabled: true, contents: install("WantedBy=m.target\nAlso=vendors.socket") },
    ]),
  ).toEqual([]);
});

test("an instance of a masked template is masked, whatever its own entry says [validate-units-2]", () => {
  const masked = { name: "p@.service", mask: true };
  const stays = (field: string) =>
    `warning spec.config.systemd.units[1].${field} p@a.service stays masked: it has no contents of its own, and its template p@.service is masked`;
  expect(findings([masked, { name: "p@a.service", enabled: true }])).toEqual([stays("enabled")]);
  expect(findings([masked, { name: "p@a.service", mask: false }])).toEqual([stays("mask")]);
  expect(findings([masked, { name: "p@a.service", enabled: false }])).toEqual([]);
  const own = { name: "p@a.service", enabled: true, contents: install("WantedBy=m.target") };
  expect(findings([masked, own])).toEqual([]);
});

test("units are judged in time in proportion to their number [validate-units-3]", async () => {
  const unitsOf = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ name: `u${i}.service`, enabled: true, contents: install("Alias=a") }));
  expect(findings(unitsOf(2))).toHaveLength(2);
  const work = (count: number) => {
    const units = unitsOf(count);
    return countWork(() => findings(units));
  };
  expect(await work(400)).toBeLessThan(3 * (await work(200)));
});

test.for(alsoShapes)(
  "units that name each other in Also= are judged in time in proportion to their text: $title [validate-units-4]",
  async (shape) => {
    const work = (count: number) => {
      const units = unitsOfShape(shape, count);
      return countWork(() => expect(findings(units)).toEqual([]));
    };
    expect(await work(80)).toBeLessThan(shape.growth * (await work(40)));
  },
);

test("what is wrong with a unit is one finding, whichever units name it in Also= [validate-units-5]", () => {
  const named = (i: number) => `warning spec.config.systemd.units[${i}].enabled systemctl cannot: `;
  const cannot = (name: string) => `${name}: Alias=x.socket cannot be a name of it`;
  const unit = (name: string, lines: string, enabled = false) => ({ name, enabled, contents: install(lines) });
  // Its own, where it is enabled itself.
  const own = unit("b.service", "Alias=x.socket", true);
  const units = [unit("a.service", "Also=b.service", true), unit("c.service", "Also=b.service", true), own];
  expect(findings(units)).toEqual([named(2) + cannot("b.service")]);
  // Otherwise that of the first unit which leads to it.
  const other = unit("b.service", "Alias=x.socket");
  expect(findings([...units.slice(0, 2), other])).toEqual([named(0) + cannot("b.service")]);
});

const instances = (count: number, template: object) => [
  { name: "p@.service", ...template },
  ...Array.from({ length: count }, (_, i) => ({ name: `p@${i}.service`, enabled: true })),
];
const times = <T>(count: number, make: (i: number) => T): readonly T[] =>
  Array.from({ length: count }, (_, i) => make(i));

test.for<[title: string, template: (size: number) => object]>([
  ["text", (size) => ({ contents: `${install("WantedBy=m.target")}${times(size, (i) => `# ${i}\n`).join("")}` })],
  ["words in [Install]", (size) => ({ contents: install(times(size, (i) => `Also=%i-${i}.path`).join("\n")) })],
  [
    "drop-ins",
    (size) => ({
      contents: install("WantedBy=m.target"),
      dropins: times(size, (i) => ({ name: `${i}.conf`, contents: "" })),
    }),
  ],
])(
  "a template and its instances are judged in time in proportion to both: %s [validate-units-6]",
  async ([, template]) => {
    const work = (size: number) => {
      const units = instances(size, template(size));
      return countWork(() => findings(units));
    };
    expect(await work(400)).toBeLessThan(2.5 * (await work(200)));
  },
);

test("an instance that has too much of its template is not enabled, and a warning says so [validate-units-7]", () => {
  const wants = (count: number) => times(count, (i) => `t${i}.target`).join(" ");
  const few = { contents: install(`WantedBy=${wants(63)}`) };
  const many = { contents: install(`WantedBy=${wants(64)}`) };
  expect(findings(instances(1, few))).toEqual([]);
  expect(findings(instances(1, many))).toEqual([
    "warning spec.config.systemd.units[1].enabled no machine enables it: p@0.service, an instance, has more than 64 drop-ins, or lines and words in [Install] sections, with those of its template",
  ]);
  // A unit that is none counts for itself.
  expect(findings([{ name: "p.service", enabled: true, ...many }])).toEqual([]);
});

test("a config with more findings than a call takes arguments is judged, with each of them [validate-machine-config-1]", () => {
  const sshAuthorizedKeys = Array.from({ length: 150_000 }, (_, i) => `\n${i.toString(36)}`);
  const config = { ignition: { version: "3.4.0" }, passwd: { users: [{ name: "core", sshAuthorizedKeys }] } };
  const problems = validateMachineConfig({ metadata: { name: "99-x" }, spec: { config } }, { role: "worker" });
  expect(problems).toHaveLength(150_000);
  expect(problems.at(-1)).toMatchObject({
    severity: "warning",
    path: "spec.config.passwd.users[0].sshAuthorizedKeys[149999]",
  });
});

test.for([
  { path: "/etc/kubernetes/kubelet.conf", length: 300_000, isTold: true },
  { path: "/etc/kubernetes/kubelet.conf", length: 200_000, isTold: false },
  { path: "/etc/crio/crio.conf.d/99-a", length: 300_000, isTold: true },
  { path: "/etc/containers/registries.conf", length: 300_000, isTold: false },
  { path: "/etc/containers/registries.conf", length: 2_000_000, isTold: true },
  { path: "/etc/a.conf", length: 2_000_000, isTold: false },
])(
  "a file $path of $length characters: is it told that nobody parses it? $isTold [validate-machine-config-2]",
  ({ path, length, isTold }) => {
    const contents = { compression: "gzip", source: encodeDataUrl(gzipSync("#".repeat(length))) };
    const problems = validateMachineConfig(
      {
        metadata: { name: "50-a" },
        spec: { config: { ignition: { version: "3.4.0" }, storage: { files: [{ path, contents }] } } },
      },
      { role: "worker" },
    );
    expect(problems.filter(({ reason }) => /has more than \d+ characters/.test(reason))).toHaveLength(isTold ? 1 : 0);
  },
);
