/**
 * The shortest equivalent path: resolves `.` and `..` where possible, no doubled or trailing slash; "." for an empty
 * path.
 */
export function cleanPath(path: string): string {
  const rooted = path.startsWith("/");
  const kept: string[] = [];
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") kept.push(part);
    else if (kept.length > 0 && kept.at(-1) !== "..") kept.pop();
    else if (!rooted) kept.push("..");
  }
  const joined = kept.join("/");
  return rooted ? `/${joined}` : joined === "" ? "." : joined;
}

/** Joins the non-empty parts and cleans the result; "" for none. */
export function joinPath(...parts: readonly string[]): string {
  const present = parts.filter((part) => part !== "");
  return present.length === 0 ? "" : cleanPath(present.join("/"));
}

/** The extension with its dot, "" for none: what follows the last dot of the last part. */
export function fileExtension(path: string): string {
  const dot = path.lastIndexOf(".");
  return dot > path.lastIndexOf("/") ? path.slice(dot) : "";
}

/** The folder that holds `path`, as `dirname` has it. */
export function folderOf(path: string): string {
  return cleanPath(path.slice(0, path.lastIndexOf("/") + 1));
}

/** Every folder above a clean path, the nearest first, without the root. */
export function foldersAbove(path: string): readonly string[] {
  const folders: string[] = [];
  for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) folders.push(path.slice(0, end));
  return folders;
}

/**
 * Finds the prefix that a path begins with, in time that grows with the logarithm of their number: configurations may
 * hold ten thousands of paths.
 *
 * @returns the shortest of the prefixes; `undefined`: the path begins with none of them.
 */
export function prefixFinder(prefixes: readonly string[]): (path: string) => string | undefined {
  // Of prefixes that begin with another one, only the other is kept. What then sorts last before a path is the only
  // one that the path may begin with.
  const kept: string[] = [];
  for (const prefix of prefixes.toSorted(byCodeUnits)) {
    const last = kept.at(-1);
    if (last === undefined || !prefix.startsWith(last)) kept.push(prefix);
  }
  return (path) => {
    let from = 0;
    let to = kept.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      if (byCodeUnits(kept[middle] ?? "", path) <= 0) from = middle + 1;
      else to = middle;
    }
    const found = kept[from - 1];
    return found !== undefined && path.startsWith(found) ? found : undefined;
  };
}

const byCodeUnits = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
