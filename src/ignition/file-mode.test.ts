import { describe, expect, test } from "vitest";
import { decimalMode } from "./file-mode.ts";

describe("a mode whose decimal digits are an octal mode", () => {
  test.for([
    [644, "644 is a decimal number, 01204 in octal", "write 0644 if octal was meant, which is 420 in decimal"],
    [600, "600 is a decimal number, 01130 in octal", "write 0600 if octal was meant, which is 384 in decimal"],
    [755, "755 is a decimal number, 01363 in octal", "write 0755 if octal was meant, which is 493 in decimal"],
    [400, "400 is a decimal number, 0620 in octal", "write 0400 if octal was meant, which is 256 in decimal"],
    [440, "440 is a decimal number, 0670 in octal", "write 0440 if octal was meant, which is 288 in decimal"],
  ] as const)("%i is probably meant in octal [file-mode-1]", ([mode, reason, remedy]) => {
    expect(decimalMode(mode)).toEqual({ reason, remedy });
  });

  test("no mode that people give in octal is taken for a decimal one, but 0764 [file-mode-2]", () => {
    const digits = [0, 4, 5, 6, 7];
    const modes = [4, 5, 6, 7].flatMap((owner) =>
      digits.flatMap((group) =>
        digits.flatMap((others) =>
          (group & ~owner) === 0 && (others & ~group) === 0 ? [owner * 64 + group * 8 + others] : [],
        ),
      ),
    );
    expect(modes).toContain(0o644);
    expect(modes.filter((mode) => decimalMode(mode) !== undefined)).toEqual([0o764]);
  });
});
