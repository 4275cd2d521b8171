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
export function extensionOf(path: string): string {
  const dot = path.lastIndexOf(".");
  return dot > path.lastIndexOf("/") ? path.slice(dot) : "";
}

/** The folder that holds `path`, as `dirname` has it. */
export function folderOf(path: string): string {
  return cleanPath(path.slice(0, path.lastIndexOf("/") + 1));
}
