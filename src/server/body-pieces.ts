import { promisify } from "node:util";
import { constants, crc32, deflateRaw } from "node:zlib";

/** A body that is kept once and sent with a text of its own to each client. */
export interface Pieces {
  /** Bytes that are kept. */
  readonly size: number;
  readonly bodyWith: (text: string | undefined) => readonly Uint8Array[];
}

const deflate = promisify(deflateRaw);

/** RFC 1952, 2.3: deflated, without a name and a time, by an unknown system. */
const gzipHead = Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255);

/** What stands before and after a text that is in the body once. @throws Error if it is not. */
function around(body: Buffer, text: string): readonly [Buffer, Buffer] {
  const at = body.indexOf(text);
  if (at < 0 || body.includes(text, at + 1)) throw new Error("the place of a credential is not in the answer once");
  return [body.subarray(0, at), body.subarray(at + text.length)];
}

export const withoutText = (body: Buffer, text: string): Buffer<ArrayBuffer> => Buffer.concat(around(body, text));

/** @param placeholder the text that each client's own replaces; absent: there is none. */
export function plainPieces(body: Buffer, placeholder: string | undefined): Pieces {
  if (placeholder === undefined) return { size: body.length, bodyWith: () => [body] };
  const [before, after] = around(body, placeholder);
  return { size: body.length, bodyWith: (text = placeholder) => [before, Buffer.from(text), after] };
}

/**
 * The same as one gzip member. What stands before and after the text is compressed once: a full flush ends the first part on a
 * byte, with nothing that later parts refer to (zlib manual, Z_FULL_FLUSH), so that the parts can be put together.
 */
export async function packedPieces(body: Buffer, placeholder: string | undefined): Promise<Pieces> {
  const [before, after] = placeholder === undefined ? [body.subarray(0, 0), body] : around(body, placeholder);
  const [head, tail] = await Promise.all([
    deflate(before, { finishFlush: constants.Z_FULL_FLUSH }),
    deflate(after, { level: constants.Z_DEFAULT_COMPRESSION }),
  ]);
  const checked = crc32(before);
  return {
    size: head.length + tail.length,
    bodyWith(text = placeholder ?? "") {
      const own = Buffer.from(text);
      const end = Buffer.alloc(8);
      end.writeUInt32LE(crc32(after, crc32(own, checked)));
      end.writeUInt32LE((before.length + own.length + after.length) % 2 ** 32, 4);
      return [gzipHead, head, storedBlock(own), tail, end];
    },
  };
}

/** Bytes as blocks that are not compressed, which end on a byte (RFC 1951, 3.2.4). */
function storedBlock(bytes: Buffer): Buffer {
  const most = 0xff_ff;
  const blocks: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += most) {
    const part = bytes.subarray(at, at + most);
    const head = Buffer.alloc(5);
    head.writeUInt16LE(part.length, 1);
    head.writeUInt16LE(~part.length & most, 3);
    blocks.push(head, part);
  }
  return Buffer.concat(blocks);
}
