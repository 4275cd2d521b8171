import { expect, test } from "vitest";
import { ignitionVersionOf, isOldIgnition } from "./boot-program.ts";

test.for<[string | undefined, string | undefined]>([
  [undefined, undefined],
  ["", undefined],
  ["Ignition/2.15.0", "2.15"],
  ["Ignition/v2.14.0-3-gabcdef", "2.14"],
  ["Ignition/0.35.1", "0.35"],
  ["Ignition/2.9", "2.9"],
  ["Ignition/2.1234", undefined],
  ["Ignition/", undefined],
  ["curl/8.0 Ignition/2.15.0", undefined],
  [`Ignition/2.15.0${"x".repeat(60)}`, undefined],
])("%s comes from Ignition %s [join-boot-program-1]", ([userAgent, version]) => {
  expect(ignitionVersionOf(userAgent)).toBe(version);
});

test("Ignition is old before it reads configurations of 3.4 [join-boot-program-2]", () => {
  expect(["0.35", "1.99", "2.9", "2.14"].map(isOldIgnition)).toEqual([true, true, true, true]);
  expect(["2.15", "2.20", "3.0", "10.1"].map(isOldIgnition)).toEqual([false, false, false, false]);
});
