import { constants } from "node:fs";
import { open, readlink, realpath } from "node:fs/promises";
import { join } from "node:path";
import { McoError } from "../../api/errors.ts";

/**
 * Contents of a regular file below a folder, of which others may have written everything. The file is opened before it
 * is judged, and no link is followed on the way from the folder to it: the kernel names the file that was opened.
 *
 * @throws McoError `MCO_IMAGE_INVALID` where there is no such file, or one of more bytes.
 */
export async function* readBelow(folder: string, path: string, mostBytes: number): AsyncGenerator<Uint8Array> {
  const refused = (problem: string) =>
    new McoError("MCO_IMAGE_INVALID", { problem: `${path}: ${problem}`, retryable: false });
  const wanted = join(await realpath(folder), path);
  // A pipe is not waited for.
  const file = await open(wanted, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    (error: unknown) => {
      const code = error instanceof Error && "code" in error ? error.code : undefined;
      if (code === "ENOENT" || code === "ENOTDIR") throw refused("it is not there");
      if (code === "ELOOP") throw refused("it is a link");
      if (code === "ENXIO") throw refused("it is no regular file");
      throw error;
    },
  );
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw refused("it is no regular file");
    if ((await readlink(`/proc/self/fd/${file.fd}`)) !== wanted) throw refused("it lies behind a link");
    if (stat.size > mostBytes) throw refused(`it has more than ${mostBytes} bytes`);
    let seen = 0;
    for await (const chunk of file.createReadStream({ autoClose: false })) {
      const bytes = chunk as Uint8Array;
      seen += bytes.length;
      if (seen > mostBytes) throw refused(`it has more than ${mostBytes} bytes`);
      yield bytes;
    }
  } finally {
    await file.close();
  }
}
