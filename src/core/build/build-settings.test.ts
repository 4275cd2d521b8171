import { describe, expect, test } from "vitest";
import { annotations } from "../../api/names.ts";
import { attemptLimits, buildSettings, defaultBuildSettings, maxRetriesOf } from "./build-settings.ts";

const where = "ConfigMap on-cluster-build-config";

test("without the ConfigMap, or with nothing in it, every setting has its default", () => {
  expect(buildSettings(undefined)).toEqual({
    defaultOptIn: false,
    maxRetries: 5,
    optOutGraceMs: 60_000,
    limits: { seconds: 3600, pushSeconds: 600, cpu: "500m", memory: "1Gi", storage: "20Gi" },
    isolation: "userNamespace",
    registryPorts: [443, 5000],
    keptBuilds: { succeeded: 3, failed: 3 },
    pruneDryRun: false,
    problems: [],
  });
  expect(buildSettings({})).toEqual(defaultBuildSettings);
  expect(buildSettings({ optOutGraceSeconds: " ", maxBuildRetries: "", buildCpu: "" })).toEqual(defaultBuildSettings);
});

/**
 * The builder used to take 60 s for "100000", the node controller 100,000 s, and the config server never read the
 * ConfigMap: a machine that joined was served without an image that machines of its pool still kept. Now all of them
 * have the value of this table.
 */
describe("the grace of an opt-out", () => {
  test.for([
    { title: "is what the ConfigMap says", text: "5", seconds: 5 },
    { title: "may have space around it", text: " 120 ", seconds: 120 },
    { title: "may be none at all", text: "0", seconds: 0 },
    { title: "may be a day", text: "86400", seconds: 86_400 },
    { title: "is a day for anything longer", text: "86401", seconds: 86_400, is: "not a whole number from 0 to 86400" },
    { title: "is a day for six digits", text: "100000", seconds: 86_400, is: "not a whole number from 0 to 86400" },
    {
      title: "is a day for endless digits",
      text: "9".repeat(30),
      seconds: 86_400,
      is: "not a whole number from 0 to 86400",
    },
    { title: "is a minute for words", text: "soon", seconds: 60, is: "not a whole number from 0 to 86400" },
    { title: "is a minute for less than nothing", text: "-5", seconds: 60, is: "not a whole number from 0 to 86400" },
  ])("$title: $text", ({ text, seconds, is }) => {
    const { optOutGraceMs, problems } = buildSettings({ optOutGraceSeconds: text });
    expect(optOutGraceMs).toBe(seconds * 1000);
    expect(problems).toEqual(
      is === undefined
        ? []
        : [
            {
              code: "BuildSettingInvalid",
              severity: "warning",
              message: `${where}: optOutGraceSeconds "${text}" is ${is}: ${seconds} counts`,
            },
          ],
    );
  });
});

describe("a value that cannot count has its default, and is reported", () => {
  test.for([
    { key: "maxBuildRetries", text: "21", is: "not a whole number from 0 to 20: 5 counts" },
    { key: "buildTimeoutSeconds", text: "5", is: "not a whole number from 10 to 99999: 3600 counts" },
    { key: "keepSucceededBuilds", text: "-1", is: "not a whole number from 0 to 999: 3 counts" },
    { key: "keepFailedBuilds", text: "many", is: "not a whole number from 0 to 999: 3 counts" },
    { key: "buildCpu", text: "lots", is: "not a quantity: 500m counts" },
    { key: "registryPorts", text: "443,", is: "not a list of ports: 443,5000 counts" },
    { key: "registryPorts", text: "65536", is: "not a list of ports: 443,5000 counts" },
    { key: "buildMemory", text: "1.5 Gi", is: "not a quantity: 1Gi counts" },
    { key: "buildStorage", text: "-1Gi", is: "not a quantity: 20Gi counts" },
    { key: "defaultOptIn", text: "yes", is: "neither true nor false: false counts" },
    {
      key: "buildIsolation",
      text: "privileged",
      is: "neither userNamespace nor hostUsers: userNamespace counts",
    },
    { key: "pruneDryRun", text: "1", is: "neither true nor false: false counts" },
  ])("$key: $text", ({ key, text, is }) => {
    const { problems, ...settings } = buildSettings({ [key]: text });
    expect({ ...settings, problems: [] }).toEqual(defaultBuildSettings);
    expect(problems.map(({ message }) => message)).toEqual([`${where}: ${key} ${JSON.stringify(text)} is ${is}`]);
  });
});

test("switches are on for true, however it is written", () => {
  expect(buildSettings({ defaultOptIn: " True ", pruneDryRun: "true" })).toMatchObject({
    defaultOptIn: true,
    pruneDryRun: true,
    problems: [],
  });
});

test("the limit of retries: the MachineOSConfig's, else the cluster's; what is no number from 0 to 20 says nothing", () => {
  const config = (text: string) => ({
    metadata: { name: "worker", annotations: { [annotations.maxBuildRetries]: text } },
  });
  const two = buildSettings({ maxBuildRetries: "2" });
  expect(maxRetriesOf(undefined, two)).toBe(2);
  expect(maxRetriesOf({ metadata: { name: "worker" } }, two)).toBe(2);
  expect(maxRetriesOf(config("0"), two)).toBe(0);
  for (const text of ["21", "-1", "x", ""]) expect(maxRetriesOf(config(text), defaultBuildSettings)).toBe(5);
});

test("limits of a build are the ConfigMap's where they are limits; after too little memory it is doubled", () => {
  expect(attemptLimits(defaultBuildSettings, { doubled: false })).toEqual(defaultBuildSettings.limits);
  const settings = buildSettings({
    buildTimeoutSeconds: "120",
    buildCpu: "2",
    buildMemory: "1.5Gi",
    buildStorage: "lots",
  });
  expect(attemptLimits(settings, { doubled: true })).toEqual({
    seconds: 120,
    pushSeconds: 120,
    cpu: "2",
    memory: "3Gi",
    storage: "20Gi",
  });
});

test("how many builds are kept is the ConfigMap's, where it is a number", () => {
  expect(buildSettings({ keepSucceededBuilds: "7", keepFailedBuilds: "-1" }).keptBuilds).toEqual({
    succeeded: 7,
    failed: 3,
  });
});
