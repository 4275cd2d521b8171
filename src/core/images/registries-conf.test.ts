import { describe, expect, test } from "vitest";
import { parseImageReference, printImageReference } from "./image-reference.ts";
import { parseRegistriesConf, pullSources } from "./registries-conf.ts";

const hex = "a".repeat(64);

/** `host/path` of each place, `!` after those that are insecure. */
function sources(conf: string | undefined, image: string): readonly string[] | string {
  const reading = parseImageReference(image);
  if (reading.verdict === "refused") throw new Error(reading.problem);
  const parsed = conf === undefined ? undefined : parseRegistriesConf(conf);
  if (conf !== undefined && parsed === undefined) throw new Error("the file cannot be read");
  const result = pullSources(parsed, reading.reference);
  return result.verdict === "refused"
    ? result.problem
    : result.sources.map(({ reference, insecure }) => `${printImageReference(reference)}${insecure ? "!" : ""}`);
}

const mirrored = `
[[registry]]
prefix = "quay.io/os"
location = "quay.io/os"
[[registry.mirror]]
location = "mirror.local:5000/copies/os"
insecure = true
[[registry.mirror]]
location = "second.local"
pull-from-mirror = "digest-only"
[[registry.mirror]]
location = "third.local"
pull-from-mirror = "tag-only"
`;

describe("pullSources", () => {
  test.for([
    {
      title: "without a file an image is where its name says",
      conf: undefined,
      image: "quay.io/os/a:1",
      wanted: ["quay.io/os/a:1"],
    },
    {
      title: "mirrors come in their order, then the source",
      conf: mirrored,
      image: `quay.io/os/a@sha256:${hex}`,
      wanted: [
        `mirror.local:5000/copies/os/a@sha256:${hex}!`,
        `second.local/a@sha256:${hex}`,
        `quay.io/os/a@sha256:${hex}`,
      ],
    },
    {
      title: "a tag asks only mirrors that answer for tags",
      conf: mirrored,
      image: "quay.io/os/a:1",
      wanted: ["mirror.local:5000/copies/os/a:1!", "third.local/a:1", "quay.io/os/a:1"],
    },
    {
      title: "a prefix ends at a border of the name",
      conf: mirrored,
      image: "quay.io/osx/a:1",
      wanted: ["quay.io/osx/a:1"],
    },
    {
      title: "mirrors by digest only are not asked for tags",
      conf: `[[registry]]\nlocation = "a.io"\nmirror-by-digest-only = true\n[[registry.mirror]]\nlocation = "b.io"\n`,
      image: "a.io/x:1",
      wanted: ["a.io/x:1"],
    },
    {
      title: "the longest prefix wins",
      conf: `[[registry]]\nprefix = "a.io"\nlocation = "b.io"\n[[registry]]\nprefix = "a.io/x"\nlocation = "c.io/y"\n`,
      image: "a.io/x/z:1",
      wanted: ["c.io/y/z:1"],
    },
    {
      title: "a wildcard replaces the host, whatever its port",
      conf: `[[registry]]\nprefix = "*.a.io"\nlocation = "c.io/y"\n`,
      image: "sub.a.io:5000/z:1",
      wanted: ["c.io/y/z:1"],
    },
    {
      title: "a wildcard without a location changes nothing",
      conf: `[[registry]]\nprefix = "*.a.io"\ninsecure = true\n`,
      image: "sub.a.io/z:1",
      wanted: ["sub.a.io/z:1!"],
    },
    {
      title: "a wildcard does not mean the domain itself",
      conf: `[[registry]]\nprefix = "*.a.io"\nlocation = "c.io"\n`,
      image: "a.io/z:1",
      wanted: ["a.io/z:1"],
    },
    {
      title: "a short name has been completed before",
      conf: `[[registry]]\nprefix = "docker.io/library"\nlocation = "c.io/hub"\n`,
      image: "busybox",
      wanted: ["c.io/hub/busybox:latest"],
    },
    {
      title: "a blocked registry gives nothing",
      conf: `[[registry]]\nlocation = "a.io"\nblocked = true\n`,
      image: "a.io/x:1",
      wanted: "registries.conf blocks a.io",
    },
    {
      // Seen with skopeo 1.9.3: `test/differential/readers/registries.test.ts` asks it.
      title: "the mirrors of a blocked source are asked, and only they [core-registries-conf-1]",
      conf: `[[registry]]\nlocation = "a.io"\nblocked = true\n[[registry.mirror]]\nlocation = "b.io"\n`,
      image: "a.io/x:1",
      wanted: ["b.io/x:1"],
    },
    {
      title: "a blocked mirror is left out [core-registries-conf-2]",
      conf: `[[registry]]\nlocation = "a.io"\n[[registry.mirror]]\nlocation = "b.io"\n[[registry]]\nlocation = "b.io"\nblocked = true\n`,
      image: "a.io/x:1",
      wanted: ["a.io/x:1"],
    },
    {
      title: "a location that is no host is refused, and never taken for one of docker.io",
      conf: `[[registry]]\nprefix = "a.io"\nlocation = "nowhere"\n`,
      image: "a.io/x:1",
      wanted: "registries.conf moves a.io to nowhere, which makes no reference",
    },
  ])("$title", ({ conf, image, wanted }) => {
    expect(sources(conf, image)).toEqual(wanted);
  });

  test("a file that is no registries.conf has no meaning", () => {
    expect(parseRegistriesConf("[[registry]]\nlocation = 5\n")).toBeUndefined();
    expect(parseRegistriesConf("nonsense")).toBeUndefined();
    expect(parseRegistriesConf("registry = 5\n")).toBeUndefined();
    expect(parseRegistriesConf('[[registry]]\nlocation = "a"\n[[registry.mirror]]\nlocation = true\n')).toBeUndefined();
    expect(parseRegistriesConf("unqualified-search-registries = [1]\n")).toBeUndefined();
    expect(parseRegistriesConf('[[registry]]\nlocation = "a"\nlocation = "b"\n')).toBeUndefined();
  });
});

test("names count without regard to case, as for container engines; two spellings of one are unreadable", () => {
  const conf = parseRegistriesConf('[[Registry]]\nLocation = "a.io"\nBLOCKED = true\n');
  expect(conf?.registries.get("a.io")?.blocked).toBe(true);
  expect(parseRegistriesConf('[[registry]]\nlocation = "a.io"\nblocked = false\nBlocked = true\n')).toBeUndefined();
});
