/**
 * The lines of passwd(5), group(5) and shadow(5), as text. This code never parses a password field; it only
 * distinguishes it from a locked one.
 */
export function accountLine(database: string, name: string): readonly string[] | undefined {
  return database
    .split("\n")
    .find((line) => line.startsWith(`${name}:`))
    ?.split(":");
}

/**
 * The hash of a password that permits a login. A field that begins with `!` is locked, whatever follows; `*` and an
 * empty one are no hash (shadow(5), crypt(5)).
 */
export const usableHash = (field: string | undefined): string | undefined =>
  field === undefined || field === "" || field.startsWith("!") || field.startsWith("*") ? undefined : field;

/** A password field that permits no login. */
export const lockedPassword = "!";

/**
 * The shadow database with this password field; all other fields and lines stay as and where they are. A user without a
 * line gets one.
 */
export function withPasswordField(shadow: string, name: string, field: string): string {
  const lines = shadow.split("\n");
  const at = lines.findIndex((line) => line.startsWith(`${name}:`));
  const fields = at === -1 ? [name, "", "", "0", "99999", "7", "", "", ""] : (lines[at] ?? "").split(":");
  fields[1] = field;
  if (at !== -1) lines[at] = fields.join(":");
  else
    lines.splice(
      lines.at(-1) === "" ? lines.length - 1 : lines.length,
      0,
      fields.join(":"),
      ...(lines.at(-1) === "" ? [] : [""]),
    );
  return lines.join("\n");
}

/** Whether a string can be a field of these databases at all. */
export const isField = (text: string): boolean => !/[:\n]/.test(text);
