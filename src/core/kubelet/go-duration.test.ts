import { expect, test } from "vitest";
import { goDurationText, parseGoDuration } from "./go-duration.ts";

// What time.ParseDuration and Duration.String of Go 1.24 answer.
test.for([
  ["0", "0s"],
  ["1h30m", "1h30m0s"],
  ["1.5h", "1h30m0s"],
  ["90s", "1m30s"],
  ["-0.5s", "-500ms"],
  ["3600s", "1h0m0s"],
  ["100us", "100µs"],
  ["1µs", "1µs"],
  ["1.0000000001s", "1s"],
  [".5m", "30s"],
  [`${"0".repeat(30)}1s`, "1s"],
  ["2562047h47m16.854775807s", "2562047h47m16.854775807s"],
] as const)("%s is the duration %s [kubelet-go-duration-1]", ([text, printed]) => {
  expect(goDurationText(parseGoDuration(text) ?? -1n)).toBe(printed);
});

test.for(["", "1", "1d", "s", "1h 2m", "-", ".s", "9999999h", "1e3s", "99999999999999999999ns"])(
  "%j is no duration [kubelet-go-duration-2]",
  (text) => {
    expect(parseGoDuration(text)).toBeUndefined();
  },
);

test("a number of a million digits is refused in little time [kubelet-go-duration-3]", () => {
  expect(parseGoDuration(`${"9".repeat(1_000_000)}s`)).toBeUndefined();
});

// What Go 1.24 answers: what is behind the dot has the precision of a float64, and is cut off.
test.for([
  ["-9223372036854775808ns", "-9223372036854775808"],
  ["9007199254740993ns", "9007199254740993"],
  ["0.9223372036854775808h", "3320413933267"],
  ["1.99999999999999999999999s", "2000000000"],
  [`0.${"0".repeat(400)}1h`, "0"],
  ["9007199254740991ns1ns9007199254740991ns", "18014398509481983"],
  ["9223372036854775808ns", undefined],
  ["9223372036854775807ns0.9ns", "9223372036854775807"],
  ["9223372036854775807ns1ns", undefined],
] as const)("%s has %s nanoseconds [kubelet-go-duration-4]", ([text, nanoseconds]) => {
  expect(parseGoDuration(text)?.toString()).toBe(nanoseconds);
});

test("a duration of a million parts is read in little time [kubelet-go-duration-5]", () => {
  const text = "1s".repeat(780_000);
  const times = Array.from({ length: 3 }, () => {
    const began = process.cpuUsage();
    expect(parseGoDuration(text)).toBe(780_000_000_000_000n);
    return process.cpuUsage(began).user / 1000;
  });
  expect(Math.min(...times)).toBeLessThan(60);
});
