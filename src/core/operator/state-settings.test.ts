import { expect, test } from "vitest";
import { defaultRetention } from "../books/book-retention.ts";
import { stateSettings } from "./state-settings.ts";

const on = { nodes: true, pools: true, builds: true, health: true };

test("without settings everything is on, with the retention that is documented [operator-state-settings-1]", () => {
  expect(stateSettings(undefined)).toEqual({ mode: "on", children: on, retention: defaultRetention, problems: [] });
  expect(defaultRetention).toEqual({
    cluster: { chapters: 100, days: 365 },
    pool: { chapters: 30, days: 180, daysAfterEnd: 30 },
    node: { chapters: 5, days: 180, daysAfterEnd: 7 },
    build: { chapters: 10, days: 90, daysAfterEnd: 30 },
  });
});

test("modes, children and retention are switched by themselves [operator-state-settings-2]", () => {
  const settings = stateSettings({
    mode: "off",
    "children.builds": "off",
    "children.nodes": "on",
    "retention.node.chapters": "50",
    "retention.pool.days": "7",
    "retention.build.days-after-end": "0",
  });
  expect(settings).toMatchObject({ mode: "off", children: { ...on, builds: false }, problems: [] });
  expect(settings.retention).toEqual({
    ...defaultRetention,
    node: { ...defaultRetention.node, chapters: 50 },
    pool: { ...defaultRetention.pool, days: 7 },
    build: { ...defaultRetention.build, daysAfterEnd: 0 },
  });
});

test.for([
  ["mode", "maybe", "it takes on, off or bootstrap"],
  ["children.nodes", "yes", "it takes on or off"],
  ["children.shelves", "on", "there is no such setting"],
  ["retention.node.chapters", "-1", "it takes a number from 0 to 100000"],
  ["retention.node.chapters", "many", "it takes a number from 0 to 100000"],
  ["retention.cluster.days-after-end", "1", "there is no such setting"],
  ["retention.nodes.days", "1", "there is no such setting"],
] as const)("%s: %s is told of, and the default stands [operator-state-settings-3]", ([key, value, says]) => {
  const settings = stateSettings({ [key]: value });
  expect(settings).toMatchObject({ mode: "on", children: on, retention: defaultRetention });
  expect(settings.problems).toHaveLength(1);
  expect(settings.problems[0]).toContain(key);
  expect(settings.problems[0]).toContain(says);
});
