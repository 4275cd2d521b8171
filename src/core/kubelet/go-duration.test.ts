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
