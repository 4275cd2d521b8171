import { McoError } from "../../api/errors.ts";
import type { Files } from "../../ports/files.ts";

/**
 * The text of a file in a folder that somebody else may have made, such as a repository that somebody cloned: a link would
 * lead to another file of this machine, or to a device that has no end, and a pipe would be waited for.
 *
 * @returns `undefined` if there is none
 * @throws McoError `MCO_CLUSTER_FILE_UNREADABLE` for what is no regular file, or has more bytes
 */
export async function readClusterFile(
  files: Pick<Files, "readFrom" | "stat">,
  path: string,
  mostBytes: number,
): Promise<string | undefined> {
  const bytes = await files.readFrom(path, 0, mostBytes + 1);
  if (bytes === undefined) {
    if ((await files.stat(path)) === undefined) return undefined;
    throw new McoError("MCO_CLUSTER_FILE_UNREADABLE", { path, problem: "it is no regular file" });
  }
  if (bytes.length > mostBytes)
    throw new McoError("MCO_CLUSTER_FILE_UNREADABLE", { path, problem: `it has more than ${mostBytes} bytes` });
  return new TextDecoder().decode(bytes);
}
