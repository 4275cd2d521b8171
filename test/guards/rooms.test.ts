import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { root, sourceFiles } from "./source-files.ts";

/**
 * The rooms of a layer by floor, the lowest first. A room imports rooms of lower floors, and of its own floor as long
 * as the rooms form no circle. Files beside the rooms (`index.ts`, the switchboard of the API server) may import all of
 * them, unless they are named as a floor (`.`).
 */
const layouts: Readonly<Record<string, readonly (readonly string[])[]>> = {
  "src/api": [["."], ["schema"], ["foreign", "kinds", "books"], ["index.ts"]],
  "src/core": [
    ["text", "certificates", "images"],
    ["config"],
    ["machine", "render", "build", "books"],
    ["pool", "kubelet", "runtime"],
    ["join"],
    ["preview"],
    ["operator"],
    ["metrics"],
    ["index.ts"],
  ],
  "src/standin": [["apiserver", "registry"], ["cluster"], ["."]],
  "src/standin/apiserver": [
    ["schema"],
    ["storage"],
    ["http"],
    ["access"],
    ["admission"],
    ["requests"],
    ["."],
    ["node"],
  ],
  "src/standin/apiserver/schema": [["."], ["merge"], ["validation"], ["kinds"]],
};

/** The room of a file: its folder below `base`; `.` for a file directly in `base`. */
function roomOf(base: string, path: string): string {
  const [first = "", ...rest] = path.slice(base.length + 1).split("/");
  if (rest.length > 0) return first;
  return layouts[base]?.flat().includes(first) === true ? first : ".";
}

interface Arrow {
  readonly from: string;
  readonly to: string;
  readonly says: string;
}

function arrowsIn(base: string): readonly Arrow[] {
  return sourceFiles()
    .filter(({ path }) => path.startsWith(`${base}/`))
    .flatMap(({ path, imports }) =>
      imports
        .filter(({ resolved }) => resolved.startsWith(`${base}/`))
        .map(({ resolved }) => ({
          from: roomOf(base, path),
          to: roomOf(base, resolved),
          says: `${path} imports ${resolved}`,
        })),
    )
    .filter(({ from, to }) => from !== to);
}

/** Imports that lead from a room back to itself, on any path. */
function circular(arrows: readonly Arrow[]): readonly Arrow[] {
  const next = new Map<string, Set<string>>();
  for (const { from, to } of arrows) next.set(from, (next.get(from) ?? new Set()).add(to));
  /** Every room that a room leads to; a set grows while it is walked. */
  const reachedFrom = (room: string): ReadonlySet<string> => {
    const reached = new Set(next.get(room));
    for (const one of reached) for (const further of next.get(one) ?? []) reached.add(further);
    return reached;
  };
  const reached = new Map([...next.keys()].map((room) => [room, reachedFrom(room)] as const));
  return arrows.filter(({ from, to }) => reached.get(to)?.has(from));
}

describe.for(Object.entries(layouts))("the rooms of %s", ([base, floors]) => {
  const floorOf = (room: string) => floors.findIndex((rooms) => rooms.includes(room));

  test("are the ones in the table, each with a page that describes it", () => {
    const folders = readdirSync(join(root, base), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
    const rooms = floors.flat().filter((room) => room !== "." && !room.endsWith(".ts"));
    expect(folders.sort()).toEqual(rooms.sort());
    expect(rooms.filter((room) => !existsSync(join(root, base, room, "README.md")))).toEqual([]);
  });

  test("import lower floors only, without cycles between rooms of one floor", () => {
    const arrows = arrowsIn(base);
    expect(arrows.filter(({ from, to }) => floorOf(to) > floorOf(from)).map(({ says }) => says)).toEqual([]);
    expect(circular(arrows).map(({ says }) => says)).toEqual([]);
  });
});

test("the guard finds a cycle of rooms", () => {
  const arrow = (from: string, to: string): Arrow => ({ from, to, says: `${from} ${to}` });
  const planted = [arrow("a", "b"), arrow("b", "c"), arrow("c", "a"), arrow("c", "d")];
  expect(circular(planted).map(({ says }) => says)).toEqual(["a b", "b c", "c a"]);
});

test("a unit test is beside its source: test/ holds only suites that span processes, and their support", () => {
  const folders = readdirSync(join(root, "test"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
  expect(folders.sort()).toEqual([
    "api-suites",
    "attacks",
    "conformance",
    "contract",
    "crash",
    "differential",
    "ecosystem",
    "faults",
    "golden",
    "guards",
    "remedies",
    "scenario",
    "sessions",
    "simulation",
    "support",
    "vectors",
  ]);
});
