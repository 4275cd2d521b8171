import { expect, test } from "vitest";
import { emptyNodeConfig } from "../config/node-config.ts";
import type { OriginalEntry } from "./observed-content.ts";
import { unitGap } from "./unit-gap.ts";

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
