import { expect, test } from "vitest";
import { annotations } from "../api/names.ts";
import type { Originals } from "../core/machine/observed-content.ts";
import { MachineHarness, images } from "../../test/support/machine-harness.ts";

const unitsAt = "/usr/lib/systemd/system";
const wants = (unit: string) => `/etc/systemd/system/sockets.target.wants/${unit}`;
const socket = "[Socket]\nListenStream=/run/x\n[Install]\nWantedBy=sockets.target\n";
const link = (unit: string) => ({ kind: "link", target: `${unitsAt}/${unit}` }) as const;

/** An OS that enables one socket by a link, one by its presets, and a third one not at all. */
const os = {
  etc: { ...images["os@sha256:1"].etc, [wants("linked.socket")]: link("linked.socket") },
  usr: {
    ...images["os@sha256:1"].usr,
    [`${unitsAt}/a.service`]:
      "[Service]\nExecStart=/bin/a\n[Install]\nWantedBy=multi-user.target\nAlso=linked.socket preset.socket off.socket\n",
    [`${unitsAt}/linked.socket`]: socket,
    [`${unitsAt}/preset.socket`]: socket,
    [`${unitsAt}/off.socket`]: socket,
    "/usr/lib/systemd/system-preset/90-os.preset": "enable preset.socket\ndisable *\n",
  },
};
const sockets = ["linked.socket", "preset.socket", "off.socket"];

/** Of an earlier release whose `Also=` enabled the sockets. */
interface Earlier {
  readonly title: string;
  /** What it recorded beside the service: of a socket that a next release recorded, none of the links. */
  readonly recorded: readonly string[];
  readonly isUpdatedBefore: boolean;
}

test.for<Earlier>([
  { title: "alone is recorded", recorded: [], isUpdatedBefore: true },
  { title: "is recorded, and the sockets as if they had been disabled", recorded: sockets, isUpdatedBefore: true },
  { title: "is recorded so, and goes at once", recorded: sockets, isUpdatedBefore: false },
])(
  "a socket that a service of an earlier release enabled, too, is as the OS has it once the service's MachineConfig goes: the service $title [daemon-earlier-units-1]",
  async ({ recorded, isUpdatedBefore }) => {
    const { signal } = new AbortController();
    const harness = await MachineHarness.make({ images: { ...images, "os@sha256:1": os } });
    await harness.updatedTo("rendered-1", {});
    const enabled = async () => {
      const states = await harness.host.units.state(sockets, signal);
      return sockets.filter((name) => states.get(name)?.enablement === "enabled");
    };
    const change = async (name: string, content: Parameters<typeof harness.config>[1]) => {
      await harness.config(name, content);
      await harness.annotate({ [annotations.desiredConfig]: name });
      await harness.untilDone(name);
    };
    await harness.host.units.preset("preset.socket", signal);
    expect(await enabled()).toEqual(["linked.socket", "preset.socket"]);
    await change("rendered-2", { units: [{ name: "a.service", enabled: true }] });
    expect(await enabled()).toEqual(sockets);
    // As the earlier releases recorded it: the service without links.
    const { links: _links, ...originals } = (await harness.ledgerDocument<Originals>("originals.json")) as Originals;
    const earlier = {
      ...originals,
      enablement: {
        "a.service": originals.enablement["a.service"],
        ...Object.fromEntries(recorded.map((name) => [name, "disabled"])),
      },
      ...(recorded.length === 0 ? {} : { links: Object.fromEntries(recorded.map((name) => [name, {}])) }),
    };
    harness.kill();
    await harness.host.ledger.write("originals.json", JSON.stringify(earlier), signal);
    harness.start();
    if (isUpdatedBefore) {
      await change("rendered-3", { units: [{ name: "a.service", enabled: true }], files: { "/etc/x": "x" } });
      expect(await enabled()).toEqual(sockets);
    }
    await change("rendered-4", {});
    expect(await enabled()).toEqual(["linked.socket", "preset.socket"]);
    expect((await harness.host.units.state(["a.service"], signal)).get("a.service")?.enablement).toBe("disabled");
  },
);
