import * as fs from "node:fs/promises";
import { type Stats, constants } from "node:fs";
import { McoError } from "../../api/errors.ts";

/** The largest file of a machine that is read: many times what a MachineConfig can hold. */
export const mostFileBytes = 64 * 1024 * 1024;

/** The largest text that this program can hold: no earlier release wrote a larger one. */
export const mostTextBytes = 512 * 1024 * 1024 - 24;

/**
 * A regular file, read from the descriptor that was checked: concurrent changes of the name have no effect. Does not
 * wait for a pipe, and stops at `most` bytes, also of a file that grows. Fails with `ELOOP` for a link unless `links` says
 * "follow".
 *
 * @param name the path in errors, where `path` is one of a descriptor.
 */
export async function readRegular(
  path: string,
  {
    links = "refuse",
    name = path,
    most = mostFileBytes,
  }: { readonly links?: "refuse" | "follow"; readonly name?: string; readonly most?: number } = {},
): Promise<{ readonly contents: Uint8Array; readonly stat: Stats }> {
  const handle = await fs.open(
    path,
    constants.O_RDONLY | constants.O_NONBLOCK | (links === "refuse" ? constants.O_NOFOLLOW : 0),
  );
  try {
    const stat = await handle.stat();
    if (!stat.isFile()) throw new McoError("MCO_HOST_NO_FILE", { path: name });
    let buffer = Buffer.allocUnsafe(Math.min(stat.size, most) + 1);
    let length = 0;
    for (;;) {
      if (stat.size > most || length > most) throw new McoError("MCO_HOST_FILE_TOO_LARGE", { path: name, most });
      if (length === buffer.length) buffer = Buffer.concat([buffer], Math.min(2 * length + 4_096, most + 1));
      const { bytesRead } = await handle.read(buffer, length, buffer.length - length);
      if (bytesRead === 0) return { contents: buffer.subarray(0, length), stat };
      length += bytesRead;
    }
  } finally {
    await handle.close();
  }
}
