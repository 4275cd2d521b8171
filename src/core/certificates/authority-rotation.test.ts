import { describe, expect, test } from "vitest";
import { authorityStep, bundleOf, validityOfPem } from "./authority-rotation.ts";

const day = 86_400_000;
const lives = (from: number, until: number) => ({ from: from * day, until: until * day });

describe("an authority", () => {
  test.for([
    { title: "is made where there is none", current: undefined, next: undefined, day: 0, step: "make" },
    { title: "is kept while it is young", current: lives(0, 100), next: undefined, day: 49, step: "keep" },
    {
      title: "gets a successor in the middle of its life",
      current: lives(0, 100),
      next: undefined,
      day: 50,
      step: "prepare",
    },
    {
      title: "signs on while its successor becomes known",
      current: lives(0, 100),
      next: lives(50, 150),
      day: 74,
      step: "keep",
    },
    {
      title: "gives way when its successor is known",
      current: lives(0, 100),
      next: lives(50, 150),
      day: 75,
      step: "switch",
    },
    {
      title: "is not followed by a successor that came late before there was time to learn of it",
      current: lives(0, 100),
      next: lives(80, 180),
      day: 89,
      step: "keep",
    },
    {
      title: "is followed by a successor that came late in the middle of what is left",
      current: lives(0, 100),
      next: lives(80, 180),
      day: 90,
      step: "switch",
    },
    {
      title: "that has ended gives way to a successor that is good",
      current: lives(0, 100),
      next: lives(50, 150),
      day: 120,
      step: "switch",
    },
    {
      title: "that expired without a successor is issued again",
      current: lives(0, 100),
      next: undefined,
      day: 120,
      step: "make",
    },
    {
      title: "is issued again if both have expired",
      current: lives(0, 100),
      next: lives(0, 110),
      day: 120,
      step: "make",
    },
    {
      title: "gets another successor for one that has ended",
      current: lives(0, 100),
      next: lives(0, 60),
      day: 70,
      step: "prepare",
    },
    { title: "that is not good yet is none", current: lives(10, 100), next: undefined, day: 5, step: "make" },
  ] as const)("$title [certificates-authority-rotation-1]", ({ current, next, day: at, step }) => {
    expect(authorityStep({ current, next }, at * day)).toBe(step);
  });

  test("that cannot be read has no validity, and is in no bundle [certificates-authority-rotation-2]", () => {
    expect(validityOfPem(undefined)).toBeUndefined();
    expect(validityOfPem("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")).toBeUndefined();
    expect(bundleOf(["nothing", undefined], 0)).toBe("");
  });
});
