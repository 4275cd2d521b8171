import fc from "fast-check";
import { expect, test } from "vitest";
import { prefixFinder } from "./clean-path.ts";
import { judgeIgnition } from "./parse-ignition.ts";

test("the finder of prefixes finds the shortest one, as a comparison with each does [ignition-clean-path-1]", () => {
  const text = fc.string({ unit: fc.constantFrom("/", "a", "b"), maxLength: 6 });
  fc.assert(
    fc.property(fc.array(text), text, (prefixes, path) => {
      const shortest = prefixes.filter((one) => path.startsWith(one)).toSorted((a, b) => a.length - b.length)[0];
      expect(prefixFinder(prefixes)(path)).toBe(shortest);
    }),
  );
});

const many = <T>(count: number, make: (index: number) => T) => Array.from({ length: count }, (_, index) => make(index));

test.each([
  {
    title: "links",
    storage: { links: many(30_000, (i) => ({ path: `/etc/${i}`, target: `/etc/${i + 1}` })) },
  },
  {
    title: "hard links and folders",
    storage: {
      links: many(15_000, (i) => ({ path: `/a/${i}`, target: `/b/${i}`, hard: true })),
      directories: many(15_000, (i) => ({ path: `/c/${i}` })),
    },
  },
  {
    title: "file systems and disks",
    storage: {
      filesystems: many(15_000, (i) => ({ device: `/a/${i}`, path: `/m/${i}`, format: "ext4" })),
      disks: many(15_000, (i) => ({ device: `/b/${i}`, wipeTable: true })),
    },
  },
  {
    title: "partitions",
    storage: {
      disks: [
        {
          device: "/dev/a",
          partitions: many(30_000, (i) => ({ number: i + 1, label: `p${i}`, startMiB: i + 1, sizeMiB: 1 })),
        },
      ],
    },
  },
])("a configuration with ten thousands of $title is judged in time [attack-configs-3]", ({ storage }) => {
  const began = process.cpuUsage();
  judgeIgnition({ ignition: { version: "3.4.0" }, storage });
  expect(process.cpuUsage(began).user / 1e6).toBeLessThan(3);
});

test("a disk with more partitions than Linux knows is refused [ignition-validate-partitions-1]", () => {
  const judged = (count: number) =>
    judgeIgnition({
      ignition: { version: "3.4.0" },
      storage: { disks: [{ device: "/dev/a", partitions: many(count, (i) => ({ number: i + 1 })) }] },
    });
  expect(judged(256)).toEqual([]);
  expect(judged(257)).toMatchObject([
    { severity: "error", path: "storage.disks[0].partitions", reason: "are 257; a disk has at most 256" },
  ]);
});
