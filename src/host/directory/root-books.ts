import { pushAll } from "../../api/schema/push-all.ts";
import { greatestOf } from "../../api/schema/extremes.ts";
import * as fs from "node:fs/promises";
import { dirname, join } from "node:path";
import { hostPaths } from "../../api/names.ts";
import type { BookLines, HostBooks } from "../host.ts";
import type { Disk } from "./disk.ts";
import { absentIsDone, ensureFolder, statIfThere } from "./durable-writes.ts";

/** A file that grows beyond this is put aside and another one begun. */
const fileBytes = 4 * 1024 * 1024;
/** All files together: four full ones. */
const allBytes = 4 * fileBytes;
/** However small they are: machines that boot again and again. */
const mostFiles = 32;
/** Of each file so much is read back, of so many files: more lines than a journal object holds. */
const readBytes = 256 * 1024;
const readFiles = 8;

/** `journal-<boot>.jsonl`; one that was put aside has a number behind the boot. Boot ids are uuids, and hold no dot. */
const namePattern = /^journal-([A-Za-z0-9_-]+)(?:\.(\d+))?\.jsonl$/;

interface BookFile {
  readonly path: string;
  readonly boot: string;
  /** The current file of a boot comes after those that were put aside. */
  readonly order: number;
  readonly modifiedMs: number;
  readonly sizeBytes: number;
}

/** Journal lines in files of the daemon's own folder. */
export function rootBooks(locate: (path: string) => Promise<string>, disk: Disk): HostBooks {
  let last: Promise<unknown> = Promise.resolve();
  /** The file that this process writes to, as it left it. */
  let open: { readonly path: string; readonly sizeBytes: number } | undefined;
  let folderIsDurable = false;

  const folderPath = () => locate(hostPaths.books);

  async function files(): Promise<readonly BookFile[]> {
    const folder = await folderPath();
    const found: BookFile[] = [];
    for (const name of (await fs.readdir(folder).catch(absentIsDone)) ?? []) {
      const [, boot, number] = namePattern.exec(name) ?? [];
      const stat = boot === undefined ? undefined : await statIfThere(join(folder, name));
      if (boot !== undefined && stat?.isFile() === true)
        found.push({
          path: join(folder, name),
          boot,
          order: number === undefined ? Number.MAX_SAFE_INTEGER : Number(number),
          modifiedMs: stat.mtimeMs,
          sizeBytes: stat.size,
        });
    }
    // Names decide where times are the same, so that one disk is always read in one way.
    return found.sort((a, b) =>
      a.boot === b.boot ? a.order - b.order : a.modifiedMs - b.modifiedMs || (a.boot < b.boot ? -1 : 1),
    );
  }

  async function makeRoom(current: string): Promise<void> {
    const all = await files();
    let bytes = all.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    let left = all.length;
    for (const file of all) {
      // The one that was just begun will grow.
      if (bytes <= allBytes - fileBytes && left <= mostFiles) return;
      if (file.path === current) continue;
      await disk.unlink(file.path).catch(absentIsDone);
      bytes -= file.sizeBytes;
      left -= 1;
    }
  }

  async function lastByte(path: string, sizeBytes: number): Promise<string> {
    const handle = await fs.open(path, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW);
    try {
      const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, sizeBytes - 1);
      return buffer.toString("latin1");
    } finally {
      await handle.close();
    }
  }

  async function append(boot: string, lines: readonly string[], durable: boolean): Promise<void> {
    const folder = await folderPath();
    const path = join(folder, `journal-${boot}.jsonl`);
    await ensureFolder(disk, folder, 0o700);
    let text = lines.map((line) => `${line}\n`).join("");
    if (open?.path !== path) {
      open = undefined;
      const stat = await statIfThere(path);
      if (stat !== undefined) {
        open = { path, sizeBytes: stat.size };
        // The last writer may have been cut off in the middle of a line.
        if (stat.size > 0 && (await lastByte(path, stat.size)) !== "\n") text = `\n${text}`;
      }
    }
    if (open !== undefined && open.sizeBytes > 0 && open.sizeBytes + text.length > fileBytes) {
      const aside =
        1 +
        greatestOf(
          (await files())
            .filter((file) => file.boot === boot && file.order !== Number.MAX_SAFE_INTEGER)
            .map(({ order }) => order),
          0,
        );
      await disk.rename(path, join(folder, `journal-${boot}.${aside}.jsonl`));
      open = undefined;
    }
    const contents = new TextEncoder().encode(text);
    const current = open;
    // The result of a failed append is unknown: the next one checks.
    open = undefined;
    if (current === undefined) {
      await disk.create(path, contents);
      await makeRoom(path);
    } else await disk.append(path, contents);
    if (durable) {
      await disk.sync(path);
      if (current === undefined || !folderIsDurable) {
        // Who made the folders may have been killed before they were flushed.
        for (let above = folder, level = 0; level < 4; above = dirname(above), level += 1) await disk.sync(above);
        folderIsDurable = true;
      }
    } else if (current === undefined) folderIsDurable = false;
    open = { path, sizeBytes: (current?.sizeBytes ?? 0) + contents.length };
  }

  return {
    append(boot, lines, { durable }, signal) {
      // One after the other: they share a file.
      const turn = last.then(async () => {
        signal.throwIfAborted();
        if (lines.length > 0) await append(boot.replaceAll(/[^A-Za-z0-9_-]/g, "_"), lines, durable);
      });
      last = turn.catch(() => undefined);
      return turn;
    },
    async read() {
      const found: { boot: string; lines: string[] }[] = [];
      for (const { path, boot, sizeBytes } of (await files()).slice(-readFiles)) {
        const from = Math.max(0, sizeBytes - readBytes);
        const lines = (await tail(path, from)).split("\n");
        // What was read from the middle of a file begins in the middle of a line.
        if (from > 0) lines.shift();
        const same = found.at(-1);
        const whole = lines.filter((line) => line !== "");
        if (same?.boot === boot) pushAll(same.lines, whole);
        else found.push({ boot, lines: whole });
      }
      return found satisfies BookLines[];
    },
  };
}

async function tail(path: string, from: number): Promise<string> {
  const handle = await fs.open(path, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW);
  try {
    const { size } = await handle.stat();
    const buffer = Buffer.alloc(Math.max(0, size - from));
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, from);
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await handle.close();
  }
}
