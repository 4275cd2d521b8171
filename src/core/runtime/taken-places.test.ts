import { gzipSync } from "fflate";
import { describe, expect, test } from "vitest";
import { MachineConfig } from "../../api/kinds/machine-config.ts";
import { encodeDataUrl } from "../../ignition/data-url.ts";
import { definesPlaces, takenPlaces } from "./taken-places.ts";

const ofSystems = ["registry.redhat.io", "registry.access.redhat.com"];

const withFiles = (name: string, texts: readonly string[], isPacked = false): MachineConfig => ({
  apiVersion: MachineConfig.apiVersion,
  kind: "MachineConfig",
  metadata: { name },
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

const places = (...configs: readonly MachineConfig[]) =>
  [...takenPlaces(configs)].filter((place) => !ofSystems.includes(place));

/** A file of a place, and as many characters of a comment. */
const place = (name: string, comment = 0) => `docker:\n  ${name}:\n    lookaside: https://x\n#${"x".repeat(comment)}\n`;

describe("takenPlaces", () => {
  test("the places of files of registries.d are taken, compressed or not [runtime-taken-places-1]", () => {
    const configs = [
      withFiles("99-a", [place("a.example.com"), "docker: {b.example.com/ns: {}}"]),
      withFiles("99-b", [place("c.example.com")], true),
      withFiles("99-c", ["docker: [", "docker: *x", "docker: text", "", "docker: {d: {}, d: {}}"]),
    ];
    expect(places(...configs)).toEqual(["c.example.com", "a.example.com", "b.example.com/ns"]);
    expect(takenPlaces(configs)).toEqual(new Set([...ofSystems, ...places(...configs)]));
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

  test("files of keys are read in time in proportion to them [runtime-taken-places-3]", () => {
    const keys = `{${Array.from({ length: 7000 }, (_, i) => (i + 36 ** 3).toString(36)).join(",")}}`.slice(0, 32_000);
    const configs = Array.from({ length: 22 }, (_, i) =>
      withFiles(`99-${i}`, [`${keys.slice(0, keys.lastIndexOf(","))}}`]),
    );
    const before = process.cpuUsage();
    expect(places(...configs)).toEqual([]);
    expect(process.cpuUsage(before).user).toBeLessThan(3_000_000);
  });

  test("of one MachineConfig 32 Ki characters are read, of all 128 Ki, and small ones first [runtime-taken-places-4]", () => {
    const full = Array.from({ length: 5 }, (_, i) => withFiles(`00-${i}`, [place(`full-${i}`, 32_720)]));
    const small = withFiles("99-small", [place("small"), place("large", 40_000), place("behind")]);
    expect(places(...full, small)).toEqual(["small", "behind", "full-0", "full-1", "full-2"]);
  });
});
