/** What the common failures of reading a file mean to a person. */
const meanings: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file or folder",
  ENOTDIR: "a part of its path is a file, not a folder",
  EISDIR: "it is a folder",
  EACCES: "you may not read it",
  EPERM: "you may not read it",
  ELOOP: "its links lead in a circle",
  ENAMETOOLONG: "its name is too long",
};

/** Why a file or folder could not be read, in words: `there is no such file or folder`. */
export function whyUnread(error: unknown): string {
  const { code = "" } = error instanceof Error ? (error as NodeJS.ErrnoException) : {};
  const meaning = Object.hasOwn(meanings, code) ? meanings[code] : undefined;
  return meaning ?? `it cannot be read: ${error instanceof Error ? error.message : String(error)}`;
}
