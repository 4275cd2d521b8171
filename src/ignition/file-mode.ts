const octal = (mode: number) => `0${mode.toString(8)}`;

/** The digits that people give to owner, group and others. */
const usualDigits = [0, 4, 5, 6, 7];

/**
 * What a mode was probably meant to be: its decimal digits as octal ones, where these are a mode that people give. JSON
 * and YAML take 644 for a decimal number, which is 01204 in octal.
 */
function octalMeant(mode: number): number | undefined {
  const digits = /^[4-7][0-7][0-7]$/.test(String(mode)) ? Array.from(String(mode), Number) : [];
  const isUsual =
    digits.length === 3 &&
    digits.every((digit, i) => usualDigits.includes(digit) && (digit & ~(digits[i - 1] ?? 7)) === 0);
  return isUsual ? Number.parseInt(digits.join(""), 8) : undefined;
}

/** Why a mode is probably not the one that its author meant, and what to write; `undefined`: it probably is. */
export function decimalMode(mode: number): { readonly reason: string; readonly remedy: string } | undefined {
  const meant = octalMeant(mode);
  if (meant === undefined) return undefined;
  return {
    reason: `${mode} is a decimal number, ${octal(mode)} in octal`,
    remedy: `write ${octal(meant)} if octal was meant, which is ${meant} in decimal`,
  };
}
