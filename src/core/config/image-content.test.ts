import { describe, expect, test } from "vitest";
import type { MachineConfig } from "../../api/kinds/machine-config.ts";
import { alsoShapes, unitsOfShape } from "../../../test/support/also-shapes.ts";
import { countWork } from "../../../test/support/count-work.ts";
import { parseIgnition } from "../../ignition/index.ts";
import {
  contentDigest,
  contentProblems,
  deliveryOf,
  layerEntries,
  ownerNamesOf,
  payloadOf,
  printPayload,
  readPayload,
} from "./image-content.ts";
import { type NodeConfig, findUnitIn, managedUnits, nodeConfigOf } from "./node-config.ts";

const root = { users: new Map([["core", 1000]]), groups: new Map([["core", 1000]]) };
const url = (text: string) => `data:,${encodeURIComponent(text)}`;

function configOf(config: object, more: object = {}, name = "rendered-worker-1"): NodeConfig {
  const machineConfig = {
    apiVersion: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfig",
    metadata: { name },
    spec: { config: { ignition: { version: "3.4.0" }, ...config }, ...more },
  } as MachineConfig;
  const parsed = parseIgnition(machineConfig.spec?.config);
  if (parsed.verdict !== "valid") throw new Error(JSON.stringify(parsed));
  const read = nodeConfigOf(machineConfig, parsed.config);
  if (read.verdict === "refused") throw new Error(read.reason);
  return read.config;
}

const unit = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n";
const whole = {
  storage: {
    files: [
      { path: "/etc/b", mode: 0o600, contents: { source: url("b") } },
      { path: "/etc/a", contents: { source: url("a") } },
      { path: "/var/lib/app/x", contents: { source: url("x") } },
      { path: "/etc/kubernetes/kubelet-ca.crt", contents: { source: url("old") } },
    ],
    directories: [{ path: "/etc/own", mode: 0o700 }],
    links: [{ path: "/etc/link", target: "a" }],
  },
  systemd: {
    units: [
      { name: "app.service", enabled: true, contents: unit, dropins: [{ name: "10.conf", contents: "[Service]\n" }] },
      { name: "bad.service", mask: true },
      { name: "crio.service", enabled: true },
    ],
  },
  passwd: { users: [{ name: "core", sshAuthorizedKeys: ["ssh-ed25519 AAAA k"], passwordHash: "$6$x" }] },
};

describe("what an image holds of a configuration", () => {
  test("its layer has files, links, units with their enablement, the payload and the unit machine-config-settle, by path", () => {
    const entries = layerEntries(configOf(whole), root);
    expect(entries.map(({ path }) => path)).toEqual([
      "/etc/a",
      "/etc/b",
      "/etc/link",
      "/etc/own",
      "/etc/systemd/system/app.service",
      "/etc/systemd/system/app.service.d/10.conf",
      "/etc/systemd/system/bad.service",
      "/etc/systemd/system/multi-user.target.wants/app.service",
      "/usr/lib/machine-config/content.json",
      "/usr/lib/systemd/system/machine-config-settle.service",
      "/usr/lib/systemd/system/multi-user.target.wants/machine-config-settle.service",
    ]);
    expect(entries.find(({ path }) => path === "/etc/systemd/system/bad.service")).toMatchObject({
      kind: "link",
      target: "/dev/null",
    });
    expect(entries.find(({ path }) => path === "/usr/lib/machine-config/content.json")).toMatchObject({
      mode: 0o600,
      uid: 0,
      gid: 0,
    });
  });

  test("its layer has the links that systemctl makes of its units [content-image-units-1]", () => {
    const install = (lines: string) => `[Service]\nExecStart=/bin/true\n[Install]\n${lines}\n`;
    const units = [
      { name: "probe@.service", enabled: true, contents: install("WantedBy=multi-user.target\nDefaultInstance=a") },
      { name: "probe@eth0.service", enabled: true },
      { name: "plain@.service", enabled: true, contents: install("WantedBy=multi-user.target") },
      {
        name: "main.service",
        enabled: true,
        contents: install("WantedBy=a.target \\\n  b.target\nAlso=helper.socket off.socket"),
      },
      { name: "helper.socket", contents: "[Socket]\nListenStream=/run/h\n[Install]\nWantedBy=sockets.target\n" },
      {
        name: "off.socket",
        enabled: false,
        contents: "[Socket]\nListenStream=/run/o\n[Install]\nWantedBy=sockets.target\n",
      },
      {
        name: "reset.service",
        enabled: true,
        contents: install("WantedBy=old.target\nWantedBy=\nWantedBy=new.target"),
      },
      { name: "masked@.service", mask: true },
      { name: "masked@a.service", enabled: true },
    ];
    const links = layerEntries(configOf({ systemd: { units } }), root).flatMap((entry) =>
      entry.kind === "link" && entry.path.startsWith("/etc/")
        ? [`${entry.path.slice(20)} ${entry.target.slice(20)}`]
        : [],
    );
    expect(links).toEqual([
      "a.target.wants/main.service main.service",
      "b.target.wants/main.service main.service",
      "masked@.service ",
      "multi-user.target.wants/probe@a.service probe@.service",
      "multi-user.target.wants/probe@eth0.service probe@.service",
      "new.target.wants/reset.service reset.service",
      "sockets.target.wants/helper.socket helper.socket",
    ]);
  });

  test("its payload is complete: every managed path with its bytes, units and accounts; daemon-managed files only if absent", () => {
    const payload = payloadOf(configOf(whole), root);
    expect(payload.entries.map(({ path }) => path)).toEqual([
      "/etc/a",
      "/etc/b",
      "/etc/kubernetes/kubelet-ca.crt",
      "/etc/systemd/system/app.service",
      "/etc/systemd/system/app.service.d/10.conf",
      "/etc/systemd/system/bad.service",
      "/home/core/.ssh/authorized_keys.d/ignition",
      "/var/lib/app/x",
    ]);
    expect(
      payload.entries.filter((entry) => entry.kind === "file" && entry.ifAbsent === true).map(({ path }) => path),
    ).toEqual(["/etc/kubernetes/kubelet-ca.crt"]);
    expect(payload.entries.find(({ path }) => path.startsWith("/home"))).toMatchObject({
      uid: 1000,
      gid: 1000,
      mode: 0o600,
      folder: { mode: 0o700, uid: 1000, gid: 1000 },
    });
    expect(payload.units).toEqual([
      { name: "app.service", enabled: true },
      { name: "crio.service", enabled: true },
    ]);
    expect(payload.accounts).toEqual([{ user: "core", passwordHash: "$6$x" }]);
    expect(readPayload(printPayload(payload))).toEqual(payload);
  });

  test("it is the same for configurations that differ in spelling, order, name, kernel arguments, OS image, and what the daemon keeps by itself [config-image-content-1]", () => {
    const digest = contentDigest(configOf(whole));
    const files = [...whole.storage.files]
      .reverse()
      .map((file) =>
        file.path === "/etc/a"
          ? { ...file, contents: { source: `data:;base64,${btoa("a")}` } }
          : file.path.endsWith(".crt")
            ? { ...file, contents: { source: url("new") } }
            : file,
      );
    expect(
      contentDigest(
        configOf(
          { ...whole, storage: { ...whole.storage, files } },
          { kernelArguments: ["quiet"], osImageURL: "x@sha256:1" },
          "rendered-worker-2",
        ),
      ),
    ).toBe(digest);
  });

  test.for([
    {
      what: "bytes",
      with: {
        storage: {
          ...whole.storage,
          files: whole.storage.files.map((file) => ({ ...file, contents: { source: url("other") } })),
        },
      },
    },
    {
      what: "a mode",
      with: { storage: { ...whole.storage, files: whole.storage.files.map((file) => ({ ...file, mode: 0o640 })) } },
    },
    {
      what: "a unit's enablement",
      with: { systemd: { units: whole.systemd.units.map((each) => ({ ...each, enabled: false })) } },
    },
    { what: "an account", with: { passwd: { users: [{ name: "core", passwordHash: "$6$y" }] } } },
    { what: "a link", with: { storage: { ...whole.storage, links: [{ path: "/etc/link", target: "b" }] } } },
  ])("it is another with another $what", ({ with: other }) => {
    expect(contentDigest(configOf({ ...whole, ...other }))).not.toBe(contentDigest(configOf(whole)));
  });

  test("what no image can bring is a problem with its path, and so is an owner that the base does not know", () => {
    const config = configOf({
      storage: {
        files: [
          { path: "/boot/x", contents: { source: url("") } },
          { path: "/run/y", contents: { source: url("") } },
          { path: "/etc/z", user: { name: "app" }, contents: { source: url("") } },
        ],
      },
    });
    expect(contentProblems(config, root).map(({ code, path }) => `${code} ${path}`)).toEqual([
      "PathNotBakeable /boot/x",
      "PathNotBakeable /run/y",
      "OwnerUnknown /etc/z",
    ]);
    expect(contentProblems(config).map(({ code }) => code)).toEqual(["PathNotBakeable", "PathNotBakeable"]);
    expect(ownerNamesOf(config)).toEqual({ users: ["app"], groups: [] });
    expect(() => payloadOf(config, root)).toThrow(/app/);
  });

  test("where a path is delivered", () => {
    const of = (delivery: string, paths: readonly string[]) =>
      expect(paths.map((path) => `${path} ${deliveryOf(path)}`)).toEqual(paths.map((path) => `${path} ${delivery}`));
    of("image", ["/etc/x", "/usr/lib/x", "/etcetera".replace("etera", "/y")]);
    of("settle", ["/var/x", "/home/core/x", "/root/x", "/opt/x", "/usr/local/bin/x", "/srv/x", "/mnt/x"]);
    of("ifAbsent", [
      "/etc/kubernetes/kubelet-ca.crt",
      "/etc/docker/certs.d/r/ca.crt",
      "/var/lib/kubelet/config.json",
      "/etc/mco/internal-registry-pull-secret.json",
      "/etc/kubernetes/kubeconfig",
    ]);
    of("never", ["/boot/x", "/efi/x", "/proc/x", "/sys/x", "/dev/x", "/run/x", "/etcetera", "/x"]);
  });

  test.for([
    "{",
    "[]",
    '{"v":2}',
    '{"v":1}',
    '{"v":1,"entries":[{"path":"x"}],"units":[],"accounts":[]}',
    '{"v":1,"entries":[],"units":[{}],"accounts":[]}',
  ])("a payload that cannot be read says why: %s", (text) => {
    expect(readPayload(text)).toHaveProperty("problem");
  });
});

test.for(alsoShapes)(
  "units that name each other in Also= are read and packed in time in proportion to their text: $title [image-content-also-1]",
  async (shape) => {
    const systemd = (count: number) => ({ systemd: { units: unitsOfShape(shape, count) } });
    const config = configOf(systemd(9));
    expect(managedUnits(config, findUnitIn(config, new Map())).size).toBe(9);
    const links = layerEntries(config, root).filter(({ kind, path }) => kind === "link" && path.includes(".wants/u"));
    expect(links.map(({ path }) => path.slice(path.lastIndexOf("/") + 1))).toHaveLength(9);
    const work = (count: number) => {
      const units = systemd(count);
      return countWork(() => {
        const read = configOf(units);
        managedUnits(read, findUnitIn(read, new Map()));
        layerEntries(read, root);
      });
    };
    expect(await work(80)).toBeLessThan(shape.growth * (await work(40)));
  },
);
