/** A line of a preset file: which units it enables or disables. */
interface PresetLine {
  /** Lines that come first count. */
  readonly at: number;
  readonly pattern: string;
  readonly enables: boolean;
}

/** What preset files say, by what their lines name. */
export interface UnitPresets {
  /** The first line of each name that is no pattern. */
  readonly names: ReadonlyMap<string, PresetLine>;
  /** Lines with a pattern, in their order. */
  readonly patterns: readonly PresetLine[];
}

/** Reads the contents of preset files, in the order in which they count. */
export function readPresets(contents: readonly string[]): UnitPresets {
  const names = new Map<string, PresetLine>();
  const patterns: PresetLine[] = [];
  let at = 0;
  for (const text of contents)
    for (const each of text.split("\n")) {
      const [verb = "", pattern = ""] = each.trim().split(/\s+/);
      if (verb !== "enable" && verb !== "disable") continue;
      const line = { at, pattern, enables: verb === "enable" };
      at += 1;
      if (/[*?]/.test(pattern)) patterns.push(line);
      else if (!names.has(pattern)) names.set(pattern, line);
    }
  return { names, patterns };
}

/** What the first line that speaks of the unit says; without one it is enabled (systemd.preset(5)). */
export function isPresetEnabled({ names, patterns }: UnitPresets, name: string): boolean {
  const line = names.get(name);
  const like = patterns.find(({ at, pattern }) => (line !== undefined && at > line.at) || isLike(pattern, name));
  const first = like === undefined || (line !== undefined && line.at < like.at) ? line : like;
  return first?.enables ?? true;
}

/**
 * Whether a name is like a pattern of glob(7) with `*` and `?`. Each part between two stars counts where it is found first,
 * so that the time is in proportion to both lengths, and patterns that need more characters are not looked at.
 */
function isLike(pattern: string, name: string): boolean {
  const [first = "", ...parts] = pattern.split(/\*+/);
  const last = parts.pop();
  const needed = first.length + parts.reduce((sum, part) => sum + part.length, 0) + (last?.length ?? 0);
  if (needed > name.length || !isPartAt(first, name, 0)) return false;
  if (last === undefined) return first.length === name.length;
  const end = name.length - last.length;
  let at = first.length;
  for (const part of parts) {
    while (at + part.length <= end && !isPartAt(part, name, at)) at += 1;
    at += part.length;
  }
  return at <= end && isPartAt(last, name, end);
}

function isPartAt(part: string, name: string, at: number): boolean {
  for (let index = 0; index < part.length; index += 1)
    if (part[index] !== "?" && part[index] !== name[at + index]) return false;
  return true;
}
