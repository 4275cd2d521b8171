/** Ways in which units name each other in `Also=`: which ones unit i of `count` names. */
export const alsoShapes = [
  { title: "a chain", named: (i: number, count: number) => (i + 1 < count ? [i + 1] : []), growth: 2.5 },
  { title: "a ring", named: (i: number, count: number) => [(i + 1) % count], growth: 2.5 },
  {
    title: "units that name all others, whose text grows with the square of their number",
    named: (i: number, count: number) => Array.from({ length: count }, (_, k) => k).filter((k) => k !== i),
    growth: 4.6,
  },
] as const;

/** Enabled units that name each other so. `lines`: what else their [Install] section has. */
export const unitsOfShape = (
  { named }: (typeof alsoShapes)[number],
  count: number,
  lines = (i: number) => `WantedBy=t${i % 5}.target`,
) =>
  Array.from({ length: count }, (_, i) => ({
    name: `u${i}.path`,
    enabled: true,
    contents: `[Install]\n${lines(i)}\nAlso=${named(i, count)
      .map((k) => `u${k}.path`)
      .join(" ")}\n`,
  }));
