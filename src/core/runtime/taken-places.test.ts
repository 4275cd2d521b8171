import { gzipSync } from "fflate";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { MachineConfig } from "../../api/kinds/machine-config.ts";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import { labels } from "../../api/names.ts";
import { encodeDataUrl } from "../../ignition/data-url.ts";
import { decideRegistries } from "./decide-registries.ts";
import { takenByPool } from "./registries-base.ts";
import { definesPlaces, takenPlaces } from "./taken-places.ts";

const ofSystems = ["registry.redhat.io", "registry.access.redhat.com"];

const withFiles = (
  name: string,
  texts: readonly string[],
  { isPacked = false, role = "worker" } = {},
): MachineConfig => ({
  apiVersion: MachineConfig.apiVersion,
  kind: "MachineConfig",
  metadata: { name, labels: { [labels.role]: role } },
  spec: {
    config: {
      ignition: { version: "3.4.0" },
      storage: {
        files: texts.map((text, i) => ({
          path: `/etc/containers/registries.d/x${i}.yaml`,
          contents: isPacked
            ? { source: encodeDataUrl(gzipSync(new TextEncoder().encode(text))), compression: "gzip" }
            : { source: encodeDataUrl(text) },
        })),
      },
    },
  },
});

const pool = (name: string, ...roles: readonly string[]): MachineConfigPool => ({
  apiVersion: MachineConfigPool.apiVersion,
  kind: "MachineConfigPool",
  metadata: { name },
  spec: { machineConfigSelector: { matchExpressions: [{ key: labels.role, operator: "In", values: [...roles] }] } },
});
const pools = [pool("master", "master"), pool("worker", "worker"), pool("infra", "worker", "infra")];

const taken = (of: string, configs: readonly MachineConfig[]) => {
  const { places, unread } = takenByPool(of, () => undefined, { pools, configs });
  return { places: [...places].filter((place) => !ofSystems.includes(place)), unread };
};

const places = (...configs: readonly MachineConfig[]) => taken("worker", configs).places;

/** A file of a place, and as many characters of a comment. */
const place = (name: string, comment = 0) => `docker:\n  ${name}:\n    lookaside: https://x\n#${"x".repeat(comment)}\n`;

describe("takenPlaces", () => {
  test.for([
    { path: "/etc/containers/registries.d/x.yaml", target: "/etc/x/x.yaml", is: "unread" },
    { path: "/etc/containers/registries.d/x.yaml", target: "../../x/x.yaml", is: "unread" },
    { path: "/etc/containers/registries.d", target: "/etc/x", is: "unread" },
    { path: "/etc/containers", target: "/etc/x", is: "unread" },
    // It brings no place.
    { path: "/etc/containers/registries.d/x.yaml", target: "/dev/null", is: "none" },
    { path: "/etc/containers/registries.d/README", target: "/etc/x/x.yaml", is: "none" },
    { path: "/etc/contain", target: "/etc/x", is: "none" },
  ])("a link at $path to $target counts as $is [runtime-taken-places-links-1]", ({ path, target, is }) => {
    const linked = withFiles("50-links", []);
    const { config } = linked.spec as { config: { storage: Record<string, unknown> } };
    config.storage = {
      files: [{ path: "/etc/x/x.yaml", contents: { source: encodeDataUrl(place("a.example.com")) } }],
      links: [{ path, target, overwrite: true }],
    };
    expect(definesPlaces(linked)).toBe(is === "unread");
    expect(taken("worker", [linked])).toEqual({
      places: [],
      unread:
        is === "none"
          ? []
          : [
              {
                config: "50-links",
                reason: `${path} is a link, which is not followed`,
                remedy: "write the file itself there instead of a link",
              },
            ],
    });
  });

  test.for(["Links", "LINKS", "lin\u212As"])(
    "also of a key that Ignition reads as links: %s [runtime-taken-places-links-2]",
    (key) => {
      const linked = withFiles("50-links", []);
      const { config } = linked.spec as { config: { storage: Record<string, unknown> } };
      config.storage = { [key]: [{ path: "/etc/containers/registries.d", target: "/etc/x" }] };
      expect(definesPlaces(linked)).toBe(true);
    },
  );

  test("the places of files of registries.d are taken, compressed or not [runtime-taken-places-1]", () => {
    const configs = [
      withFiles("99-a", [place("a.example.com"), "docker: {b.example.com/ns: {}}"]),
      withFiles("99-b", [place("c.example.com")], { isPacked: true }),
      withFiles("99-c", ["", "# none", "docker:", "Docker: {e: {}}", "default-docker: {lookaside: https://x}"]),
    ];
    expect(places(...configs)).toEqual(["c.example.com", "e", "a.example.com", "b.example.com/ns"]);
    expect(takenPlaces({ pools, configs, labels: { [labels.role]: "worker" } })).toEqual({
      places: new Set([...ofSystems, ...places(...configs)]),
      unread: [],
    });
    expect(configs.map(definesPlaces)).toEqual([true, true, true]);
    expect([definesPlaces(withFiles("99-d", [])), definesPlaces(undefined)]).toEqual([false, false]);
  });

  test("a MachineConfig is read once, whichever pool asks, and however often [runtime-taken-places-2]", () => {
    let reads = 0;
    const { spec, ...rest } = withFiles("99-a", [place("a.example.com")]);
    const config: MachineConfig = {
      ...rest,
      get spec() {
        reads += 1;
        return spec;
      },
    };
    expect(places(config)).toEqual(["a.example.com"]);
    const first = reads;
    expect([definesPlaces(config), ...places(config), ...places(config)]).toEqual([
      true,
      "a.example.com",
      "a.example.com",
    ]);
    expect(reads).toBe(first);
  });

  test("no contents are decoded to tell whether a MachineConfig may define places [runtime-taken-places-9]", () => {
    const decoded = vi.spyOn(TextDecoder.prototype, "decode");
    onTestFinished(() => decoded.mockRestore());
    const configs = [true, false].map((isPacked) => withFiles("99-a", [place("a.example.com")], { isPacked }));
    expect(configs.map(definesPlaces)).toEqual([true, true]);
    expect(decoded).not.toHaveBeenCalled();
    expect(places(...configs)).toEqual(["a.example.com"]);
    expect(decoded).toHaveBeenCalledTimes(2);
  });

  test("files of keys are read in time in proportion to them [runtime-taken-places-3]", () => {
    const keys = `{${Array.from({ length: 7000 }, (_, i) => (i + 36 ** 3).toString(36)).join(",")}}`.slice(0, 32_000);
    const configs = Array.from({ length: 22 }, (_, i) =>
      withFiles(`99-${i}`, [`${keys.slice(0, keys.lastIndexOf(","))}}`]),
    );
    const before = process.cpuUsage();
    expect(places(...configs)).toEqual([]);
    expect(process.cpuUsage(before).user).toBeLessThan(3_000_000);
  });

  test("of one MachineConfig 32 Ki characters are read, of a pool 128 Ki, small ones first, and the others are named [runtime-taken-places-4]", () => {
    const full = Array.from({ length: 5 }, (_, i) => withFiles(`00-${i}`, [place(`full-${i}`, 32_720)]));
    const small = withFiles("99-small", [place("small"), place("large", 40_000), place("behind")]);
    const found = taken("worker", [...full, small]);
    expect(found.places).toEqual(["small", "behind", "full-0", "full-1", "full-2"]);
    expect(found.unread.map(({ config }) => config)).toEqual(["99-small", "00-3", "00-4"]);
    expect(found.unread.map(({ reason }) => reason)).toEqual([
      expect.stringContaining("/etc/containers/registries.d/x1.yaml: with those before it, it has more than 32768"),
      ...Array.from({ length: 2 }, () => expect.stringContaining("6 MachineConfigs") as string),
    ]);
  });

  test.for([
    { text: "docker: [", says: "it is no plain YAML" },
    { text: "docker: *x", says: "it is no plain YAML" },
    { text: "docker: {d: {}, d: {}}", says: "it is no plain YAML" },
    { text: "docker: text", says: "docker is no object" },
    { text: "docker: [a]", says: "docker is no object" },
    { text: "- docker", says: "it is no object" },
  ])(
    "the file $text may define any place, and its MachineConfig is named [runtime-taken-places-5]",
    ({ text, says }) => {
      const { unread } = taken("worker", [withFiles("99-a", [place("a.example.com"), text])]);
      expect(unread).toEqual([
        {
          config: "99-a",
          reason: expect.stringContaining("/etc/containers/registries.d/x1.yaml: ") as string,
          remedy: expect.stringContaining("plain YAML") as string,
        },
      ]);
      expect(unread[0]?.reason).toContain(says);
    },
  );

  test("a file that is elsewhere, or whose contents are not text, may define any place [runtime-taken-places-6]", () => {
    const sources = ["https://example.com/x.yaml", "data:;base64,/w==", undefined];
    const unread = sources.map((source) => {
      const file = { path: "/etc/containers/registries.d/x.yaml", contents: source === undefined ? {} : { source } };
      const config: MachineConfig = {
        ...withFiles("99-a", []),
        spec: { config: { ignition: { version: "3.4.0" }, storage: { files: [file] } } },
      };
      return taken("worker", [config]).unread.length;
    });
    expect(unread).toEqual([1, 1, 0]);
  });

  test("a pool's places are those of MachineConfigs on machines that get its registries [runtime-taken-places-7]", () => {
    const configs = [
      withFiles("99-worker", [place("of-worker")]),
      withFiles("99-master", [place("of-master")], { role: "master" }),
      withFiles("99-infra", [place("of-infra"), "docker: ["], { role: "infra" }),
      withFiles("99-nobody", [place("of-nobody"), "docker: ["], { role: "nobody" }),
    ];
    expect(taken("master", configs)).toEqual({ places: ["of-master"], unread: [] });
    // The pool infra takes the MachineConfigs of worker over, and so the registries.
    expect(taken("worker", configs)).toMatchObject({
      places: ["of-worker", "of-infra"],
      unread: [{ config: "99-infra" }],
    });
  });

  test("while files of a pool are not read, policies of namespaces alone are left out, and say which MachineConfig it is [runtime-taken-places-8]", () => {
    const rightful = withFiles("50-signatures", [place("quay.corp.example", 2000)]);
    const policy = (kind: "ImagePolicy" | "ClusterImagePolicy", scope: string, namespace?: string) => ({
      apiVersion: "config.openshift.io/v1",
      kind,
      metadata: { name: "p", ...(namespace === undefined ? {} : { namespace }) },
      spec: {
        scopes: [scope],
        policy: { rootOfTrust: { policyType: "PublicKey" as const, publicKey: { keyData: "QUJD" } } },
      },
    });
    const decide = (others: readonly MachineConfig[]) =>
      decideRegistries({
        pool: "worker",
        present: undefined,
        owner: rightful,
        generatorVersion: "",
        base: {
          registries: "",
          policy: "{}",
          taken: takenByPool("worker", () => undefined, { pools, configs: [rightful, ...others] }),
        },
        objects: {
          image: undefined,
          digestMirrorSets: [],
          contentSourcePolicies: [],
          tagMirrorSets: [],
          clusterImagePolicies: [policy("ClusterImagePolicy", "of-cluster.example")],
          imagePolicies: [
            policy("ImagePolicy", "quay.corp.example", "eve"),
            policy("ImagePolicy", "quay.io/team", "ann"),
          ],
          releaseImage: undefined,
        },
      });
    const leftOut = (others: readonly MachineConfig[]) => {
      const decision = decide(others);
      return decision.do === "write" ? decision.leftOut.map(({ object }) => object) : decision;
    };
    const crowd = (role: string) =>
      Array.from({ length: 70 }, (_, i) => withFiles(`99-${role}-${i}`, [place(`h${i}`, 1880)], { role }));
    expect(leftOut([])).toEqual(["ImagePolicy/eve/p"]);
    expect(leftOut(crowd("master"))).toEqual(["ImagePolicy/eve/p"]);
    expect(leftOut(crowd("infra"))).toEqual(["ImagePolicy/ann/p", "ImagePolicy/eve/p"]);
    const decision = decide(crowd("infra"));
    if (decision.do !== "write") throw new Error("policies of namespaces hold up those of the cluster");
    expect(decision.leftOut[0]).toMatchObject({
      path: "spec.scopes",
      reason: expect.stringContaining("50-signatures (with the smaller ones of 71 MachineConfigs") as string,
      remedy: expect.stringContaining("correct MachineConfig 99-infra-68: ") as string,
    });
    const text = JSON.stringify(decision.config);
    expect([text.includes("of-cluster.example"), text.includes("quay.corp.example")]).toEqual([true, false]);
  });
});
