import { gzipSync } from "node:zlib";
import { encodeDataUrl } from "../../src/ignition/data-url.ts";

const zeros = gzipSync(new Uint8Array(15 * 1024 * 1024), { level: 9 });

/** Contents of 15 MiB and a few bytes in twenty thousand characters; each number gives others. */
export const heavyContents = (number: number) => ({
  compression: "gzip",
  source: encodeDataUrl(Buffer.concat([zeros, gzipSync(String(number))])),
});
