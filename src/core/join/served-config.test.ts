import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import { MachineConfig } from "../../api/kinds/machine-config.ts";
import { annotations, hostPaths } from "../../api/names.ts";
import { type ServedVersion, servedVersions } from "../../ignition/convert-ignition.ts";
import { decodeContents, encodeDataUrl, textOf } from "../../ignition/data-url.ts";
import { readIgnition } from "../../ignition/parse-ignition.ts";
import type { File, IgnitionConfig } from "../../ignition/types.ts";
import { desiredImageOf } from "../machine/image-target.ts";
import { type ServedInputs, composeServed, inIgnitionVersion, servedConfig } from "./served-config.ts";

const name = "rendered-worker-0123456789abcdef0123456789abcdef";
const image = { image: `registry.example.com/os@sha256:${"a".repeat(64)}`, content: "full" } as const;
const preBuilt = `registry.example.com/os@sha256:${"b".repeat(64)}`;
const base64 = (text: string) => Buffer.from(text).toString("base64");

const rendered = (
  config: object = {},
  { spec = {}, notes = {} }: { readonly spec?: object; readonly notes?: Readonly<Record<string, string>> } = {},
): MachineConfig => ({
  apiVersion: MachineConfig.apiVersion,
  kind: MachineConfig.kind,
  metadata: { name, annotations: notes },
  spec: {
    config: { ignition: { version: "3.5.0" }, ...config },
    kernelArguments: ["quiet"],
    osImageURL: "registry.example.com/os:stock",
    ...spec,
  },
});
const controllerConfig = (kubelet: string, cloud: string | null = null) =>
  ({
    spec: { kubeAPIServerServingCAData: base64(kubelet), cloudProviderCAData: cloud === null ? null : base64(cloud) },
  }) as unknown as ControllerConfig;
const inputs = (more: Partial<ServedInputs> = {}): ServedInputs => ({
  machineConfig: rendered(),
  controllerConfig: controllerConfig("KUBELET CA\n"),
  image: undefined,
  kubeconfig: "kubeconfig: with a token\n",
  registryCertificates: new Map(),
  mode: "cluster",
  ...more,
});

/** An answer, read again as a machine of its version does. */
function served(given: ServedInputs, version: ServedVersion = "3.5.0"): IgnitionConfig {
  const answer = servedConfig(given, version);
  if (answer.verdict !== "served") throw new Error(`${answer.verdict}: ${JSON.stringify(answer)}`);
  return JSON.parse(answer.body) as IgnitionConfig;
}
const fileAt = (config: IgnitionConfig, path: string): File | undefined =>
  config.storage?.files?.find((file) => file.path === path);
function textAt(config: IgnitionConfig, path: string): string | undefined {
  const file = fileAt(config, path);
  const contents = file === undefined ? undefined : decodeContents(file.contents);
  return contents?.verdict === "decoded" ? textOf(contents.bytes) : undefined;
}
const jsonAt = (config: IgnitionConfig, path: string): unknown => JSON.parse(textAt(config, path) ?? "null");
const withFile = (path: string, more: object = {}) =>
  rendered({ storage: { files: [{ path, mode: 0o600, contents: { source: "data:,old" }, ...more }] } });

/** Writing to anything below is an error from then on. */
function frozen<T>(value: T): T {
  if (typeof value === "object" && value !== null && !(value instanceof Map))
    for (const one of Object.values(Object.freeze(value))) frozen(one);
  return value;
}

const small = inputs({
  machineConfig: rendered(
    {
      kernelArguments: { shouldExist: ["nosmt"] },
      passwd: { users: [{ name: "core", sshAuthorizedKeys: ["ssh-ed25519 AAAA a"] }] },
      storage: { files: [{ path: "/etc/motd", mode: 0o644, overwrite: true, contents: { source: "data:,hello%0A" } }] },
      systemd: {
        units: [
          {
            name: "a.service",
            enabled: true,
            contents: "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n",
          },
        ],
      },
    },
    { notes: { [annotations.generatedByController]: "1" } },
  ),
  image,
});

describe("what a machine is served", () => {
  test.for(servedVersions)("in %s is as written down [join-served-config-9]", async (version) => {
    const answer = servedConfig(small, version);
    expect(answer.verdict).toBe("served");
    await expect(
      `${JSON.stringify(answer.verdict === "served" ? JSON.parse(answer.body) : answer, undefined, 2)}\n`,
    ).toMatchFileSnapshot(`../../../test/golden/served-config/${version}.json`);
  });

  test("contains its config, and the files that the machine needs: secrets readable by root only [join-served-config-6]", () => {
    const config = served(small);
    const modes = Object.fromEntries((config.storage?.files ?? []).map(({ path, mode }) => [path, mode]));
    expect(modes).toEqual({
      "/etc/motd": 0o644,
      [hostPaths.kubeletCa]: 0o644,
      [hostPaths.nodeAnnotations]: 0o644,
      [hostPaths.kubeconfig]: 0o600,
      [hostPaths.servedConfig]: 0o600,
      [hostPaths.encapsulated]: 0o600,
    });
    expect(config.systemd?.units?.map((unit) => unit.name)).toEqual(["a.service"]);
    expect(textAt(config, hostPaths.kubeconfig)).toBe("kubeconfig: with a token\n");
    expect(textAt(config, hostPaths.kubeletCa)).toBe("KUBELET CA\n");
  });

  test("is counted in bytes, not in characters", () => {
    const answer = servedConfig(
      inputs({
        machineConfig: rendered({
          systemd: { units: [{ name: "a.service", contents: "# ü\n[Service]\nExecStart=/bin/true\n" }] },
        }),
      }),
      "3.5.0",
    );
    expect(answer.verdict === "served" ? answer.sizeBytes : 0).toBe(
      answer.verdict === "served" ? Buffer.byteLength(answer.body) : -1,
    );
  });

  test("contains the annotations with the machine's configuration [join-served-config-7]", () => {
    const notes = jsonAt(served(inputs()), hostPaths.nodeAnnotations);
    expect(notes).toEqual({
      [annotations.currentConfig]: name,
      [annotations.desiredConfig]: name,
      [annotations.firstPivotConfig]: name,
      [annotations.state]: "Done",
    });
    expect(desiredImageOf(notes as Record<string, string>)).toEqual({ verdict: "none" });
  });

  test("holds the whole MachineConfig, and one for the first boot without what Ignition does [join-served-config-8]", () => {
    for (const version of servedVersions) {
      const config = served(
        inputs({
          machineConfig: rendered(
            { systemd: { units: [{ name: "a.service" }] } },
            { spec: { extensions: ["usbguard"] } },
          ),
        }),
        version,
      );
      const spec = {
        kernelArguments: ["quiet"],
        osImageURL: "registry.example.com/os:stock",
        extensions: ["usbguard"],
      };
      expect(jsonAt(config, hostPaths.servedConfig)).toMatchObject({
        kind: "MachineConfig",
        metadata: { name },
        spec: { ...spec, config: { ignition: { version: "3.5.0" }, systemd: { units: [{ name: "a.service" }] } } },
      });
      expect(jsonAt(config, hostPaths.encapsulated)).toMatchObject({
        kind: "MachineConfig",
        metadata: { name },
        spec: { ...spec, config: { ignition: { version } } },
      });
      expect((jsonAt(config, hostPaths.encapsulated) as MachineConfig).spec?.config).not.toHaveProperty("systemd");
    }
  });

  test("knows nothing of who wrote which field", () => {
    const machineConfig = { ...rendered(), metadata: { name, managedFields: [{ manager: "m" }] } } as MachineConfig;
    expect(jsonAt(served(inputs({ machineConfig })), hostPaths.servedConfig)).toMatchObject({ metadata: { name } });
    expect(textAt(served(inputs({ machineConfig })), hostPaths.servedConfig)).not.toContain("managedFields");
  });

  test("is the same for equal inputs, and nothing of them is changed [join-served-config-4]", () => {
    const given = frozen({ ...small, registryCertificates: new Map([["r.example.com:5000", "PEM"]]) });
    for (const version of servedVersions) {
      const first = servedConfig(given, version);
      const composed = composeServed(given);
      expect(servedConfig(given, version)).toEqual(first);
      // Once composed it serves all versions, in any order.
      if (composed.verdict === "composed")
        for (const again of [version, "2.2.0", version] as const) inIgnitionVersion(frozen(composed), again);
      expect(composed.verdict === "composed" ? inIgnitionVersion(composed, version) : composed).toEqual(first);
    }
  });

  test("needs no Ignition part of the MachineConfig", () => {
    for (const config of [undefined, null])
      expect(
        fileAt(
          served(inputs({ machineConfig: { ...rendered(), spec: { config } } as unknown as MachineConfig })),
          hostPaths.kubeconfig,
        ),
      ).toBeDefined();
  });

  describe("where the config has a path already", () => {
    const stale = {
      contents: {
        compression: "gzip",
        source: "data:;base64,H4sIAAAAAAAAA0sEAEO+t+gBAAAA",
        verification: { hash: `sha512-${"0".repeat(128)}` },
      },
      append: [{ source: "data:,x" }],
      user: { id: 7 },
    };
    const paths = [
      hostPaths.kubeletCa,
      hostPaths.cloudCa,
      hostPaths.nodeAnnotations,
      hostPaths.kubeconfig,
      hostPaths.servedConfig,
      hostPaths.encapsulated,
    ];

    test.for(paths)("%s is replaced as a whole [join-served-config-10]", (path) => {
      const ca = controllerConfig("KUBELET CA\n", "CLOUD CA\n");
      const [fresh, over] = [
        served(inputs({ controllerConfig: ca })),
        served(inputs({ controllerConfig: ca, machineConfig: withFile(path, stale) })),
      ];
      if (path === hostPaths.servedConfig || path === hostPaths.encapsulated)
        expect(jsonAt(over, path)).toMatchObject({ metadata: { name } });
      else expect(fileAt(over, path)).toEqual(fileAt(fresh, path));
      expect(over.storage?.files?.filter((file) => file.path === path)).toHaveLength(1);
    });

    test.for(["directories", "links"] as const)("one of the %s there makes room [join-served-config-11]", (kind) => {
      const config = served(
        inputs({
          machineConfig: rendered({
            storage: { [kind]: [{ path: hostPaths.kubeconfig, ...(kind === "links" ? { target: "/x" } : {}) }] },
          }),
        }),
      );
      expect(config.storage).not.toHaveProperty(kind);
      expect(textAt(config, hostPaths.kubeconfig)).toContain("token");
    });

    test("absent authorities leave it unchanged [join-served-config-12]", () => {
      const config = served(
        inputs({ controllerConfig: controllerConfig("", ""), machineConfig: withFile(hostPaths.kubeletCa) }),
      );
      expect(textAt(config, hostPaths.kubeletCa)).toBe("old");
      expect(fileAt(config, hostPaths.cloudCa)).toBeUndefined();
    });

    test.for([
      {
        what: "a file below one of them",
        storage: { files: [{ path: `${hostPaths.kubeconfig}/a`, contents: { source: "data:,a" } }] },
      },
      { what: "a link above one of them", storage: { links: [{ path: "/etc/kubernetes", target: "/x" }] } },
    ])("$what can be on no machine, and is refused [join-served-config-13]", ({ storage }) => {
      expect(servedConfig(inputs({ machineConfig: rendered({ storage }) }), "3.5.0")).toMatchObject({
        verdict: "invalid",
        problems: expect.arrayContaining([
          expect.objectContaining({
            path: "storage.files[0]",
            reason: expect.stringContaining("lies below") as unknown,
          }),
        ]) as unknown,
      });
    });

    const anyStorage = fc
      .uniqueArray(
        fc.record({
          path: fc.constantFrom(...paths, "/etc/a", "/etc/b", "/opt/c", "/opt/d"),
          kind: fc.constantFrom("files", "directories", "links"),
          text: fc.string(),
        }),
        { selector: ({ path }) => path },
      )
      .map((nodes) => ({
        files: nodes.flatMap(({ path, kind, text }) =>
          kind === "files" ? [{ path, contents: { source: encodeDataUrl(text) } }] : [],
        ),
        directories: nodes.flatMap(({ path, kind }) => (kind === "directories" ? [{ path, mode: 0o755 }] : [])),
        links: nodes.flatMap(({ path, kind }) => (kind === "links" ? [{ path, target: "/t" }] : [])),
      }));

    test("whatever it has: every path is there once, and nothing else of it is lost [join-served-config-14]", () => {
      fc.assert(
        fc.property(anyStorage, fc.constantFrom(...servedVersions), fc.boolean(), (storage, version, hasImage) => {
          const config = served(
            inputs({
              controllerConfig: controllerConfig("A", "B"),
              machineConfig: rendered({ storage }),
              image: hasImage ? image : undefined,
            }),
            version,
          );
          const all = [
            ...(config.storage?.files ?? []),
            ...(config.storage?.directories ?? []),
            ...(config.storage?.links ?? []),
          ].map(({ path }) => path);
          expect(all.toSorted()).toEqual(
            [
              ...new Set([
                ...paths,
                ...storage.files.map(({ path }) => path),
                ...storage.directories.map(({ path }) => path),
                ...storage.links.map(({ path }) => path),
              ]),
            ].sort(),
          );
          if (version !== "2.2.0") expect(readIgnition(config)).toMatchObject({ verdict: "valid", version });
          for (const { path, contents } of storage.files)
            if (!paths.includes(path as never)) expect(fileAt(config, path)?.contents).toEqual(contents);
        }),
      );
    });
  });

  describe("with an image", () => {
    test("the machine boots it at once, and knows its content [join-served-config-1]", () => {
      const config = served(inputs({ image }));
      for (const path of [hostPaths.servedConfig, hostPaths.encapsulated])
        expect(jsonAt(config, path)).toMatchObject({ spec: { osImageURL: image.image } });
      const notes = jsonAt(config, hostPaths.nodeAnnotations) as Readonly<Record<string, string>>;
      expect(desiredImageOf(notes)).toEqual({ verdict: "image", pair: image });
      for (const key of [
        annotations.currentImage,
        annotations.currentOSImage,
        annotations.desiredImage,
        annotations.desiredOSImage,
      ])
        expect(notes[key]).toBe(image.image);
    });

    test.for([
      { what: "wins over the one that was built", given: { image }, desiredImage: preBuilt },
      { what: "counts where nothing is built", given: {}, desiredImage: preBuilt },
      {
        what: "counts before there is a cluster, where nothing else does",
        given: { image, mode: "bootstrap" },
        desiredImage: preBuilt,
      },
    ] as const)("one that came with the installation $what [join-served-config-2]", ({ given, desiredImage }) => {
      const notes = jsonAt(
        served(inputs({ ...given, machineConfig: rendered({}, { notes: { [annotations.preBuiltImage]: preBuilt } }) })),
        hostPaths.nodeAnnotations,
      );
      expect(desiredImageOf(notes as Record<string, string>)).toEqual({
        verdict: "image",
        pair: { image: desiredImage, content: "os-only" },
      });
    });

    test("one that came with the installation and has no digest is none [join-served-config-3]", () => {
      const notes = jsonAt(
        served(
          inputs({
            machineConfig: rendered({}, { notes: { [annotations.preBuiltImage]: "registry.example.com/os:latest" } }),
          }),
        ),
        hostPaths.nodeAnnotations,
      );
      expect(desiredImageOf(notes as Record<string, string>)).toEqual({ verdict: "none" });
    });
  });

  describe("before there is a cluster", () => {
    test("holds the certificates of registries, and no image that was built [join-served-config-15]", () => {
      const config = served(
        inputs({ mode: "bootstrap", image, registryCertificates: new Map([["r.example.com:5000", "PEM\n"]]) }),
      );
      expect(fileAt(config, "/etc/docker/certs.d/r.example.com:5000/ca.crt")?.mode).toBe(0o644);
      expect(textAt(config, "/etc/docker/certs.d/r.example.com:5000/ca.crt")).toBe("PEM\n");
      expect(jsonAt(config, hostPaths.servedConfig)).toMatchObject({
        spec: { osImageURL: "registry.example.com/os:stock" },
      });
      expect(desiredImageOf(jsonAt(config, hostPaths.nodeAnnotations) as Record<string, string>)).toEqual({
        verdict: "none",
      });
    });

    test.for(["", "..", "../../x", "a/b"])("a registry called %j is none", (host) => {
      expect(
        servedConfig(inputs({ mode: "bootstrap", registryCertificates: new Map([[host, "PEM"]]) }), "3.5.0"),
      ).toMatchObject({ verdict: "invalid", problems: [{ path: "registryCertificates" }] });
    });
  });

  describe("kernel arguments of the Ignition part", () => {
    const machineConfig = frozen(rendered({ kernelArguments: { shouldExist: ["nosmt", "quiet"] } }));
    const told = (config: IgnitionConfig) =>
      [hostPaths.servedConfig, hostPaths.encapsulated].map(
        (path) => (jsonAt(config, path) as MachineConfig).spec?.kernelArguments,
      );

    test.for(["3.3.0", "3.4.0", "3.5.0"] as const)("are Ignition's to set in %s", (version) => {
      const config = served(inputs({ machineConfig }), version);
      expect(config.kernelArguments).toEqual({ shouldExist: ["nosmt", "quiet"] });
      expect(told(config)).toEqual([["quiet"], ["quiet"]]);
    });

    test.for(["2.2.0", "3.1.0", "3.2.0"] as const)(
      "are the first boot's to set in %s, each once, however often it is asked for [join-served-config-5]",
      (version) => {
        for (let turn = 0; turn < 3; turn += 1) {
          const config = served(inputs({ machineConfig }), version);
          expect(config.kernelArguments).toBeUndefined();
          expect(told(config)).toEqual([
            ["quiet", "nosmt"],
            ["quiet", "nosmt"],
          ]);
        }
      },
    );

    test("are moved in bounded time, however many there are [join-served-config-17]", () => {
      const words = (prefix: string) => Array.from({ length: 100_000 }, (_, index) => `${prefix}${index}`);
      const many = rendered({ kernelArguments: { shouldExist: words("a") } });
      const config = served(
        inputs({ machineConfig: { ...many, spec: { ...many.spec, kernelArguments: words("b") } } }),
        "3.2.0",
      );
      expect(told(config).map((list) => list?.length)).toEqual([200_000, 200_000]);
    });

    test("that should not be there cannot be said below 3.3", () => {
      const given = inputs({
        machineConfig: rendered({ kernelArguments: { shouldExist: ["a"], shouldNotExist: ["b"] } }),
      });
      for (const version of ["2.2.0", "3.1.0", "3.2.0"] as const)
        expect(servedConfig(given, version)).toEqual({
          verdict: "cannotSay",
          losses: [
            { path: "kernelArguments.shouldNotExist", reason: expect.any(String) as unknown, lowestVersion: "3.3.0" },
          ],
        });
      expect(served(given, "3.3.0").kernelArguments).toEqual({ shouldExist: ["a"], shouldNotExist: ["b"] });
    });
  });

  test("names what a version cannot say, and the lowest that can [join-served-config-16]", () => {
    const given = inputs({
      machineConfig: rendered({
        storage: {
          luks: [{ name: "a", device: "/dev/a", cex: { enabled: true } }],
          files: [{ path: "/b", mode: 0o4755, contents: { source: "data:,b" } }],
        },
      }),
    });
    const answer = servedConfig(given, "3.2.0");
    expect(
      answer.verdict === "cannotSay"
        ? answer.losses.map(({ path, lowestVersion }) => `${path} ${lowestVersion}`)
        : answer,
    ).toEqual(["storage.luks[0].cex 3.5.0", "storage.files[0].mode 3.4.0"]);
  });

  test("is nothing where the MachineConfig cannot be read, and says where", () => {
    expect(
      servedConfig(inputs({ machineConfig: rendered({ storage: { files: [{ path: "a" }] } }) }), "3.5.0"),
    ).toMatchObject({ verdict: "invalid", problems: [{ path: "spec.config.storage.files[0].path" }] });
    expect(
      servedConfig(
        inputs({
          controllerConfig: {
            spec: { kubeAPIServerServingCAData: "%%%", cloudProviderCAData: null },
          } as unknown as ControllerConfig,
        }),
        "3.5.0",
      ),
    ).toMatchObject({ verdict: "invalid", problems: [{ path: "storage.files[0].contents.source" }] });
  });
});
