import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { encodeDataUrl } from "../../ignition/data-url.ts";
import { mostStoredTextBytes } from "../../ignition/held-contents.ts";
import { wholeFileText } from "./config-file.ts";

const withText = (text: string) => ({
  spec: {
    config: {
      ignition: { version: "3.4.0" },
      storage: {
        files: [{ path: "/etc/a", contents: { source: encodeDataUrl(gzipSync(text)), compression: "gzip" } }],
      },
    },
  },
});

test("a text that is to be written again is read up to what an object holds [render-config-file-1]", () => {
  const read = (bytes: number) => wholeFileText(withText("a".repeat(bytes)), "/etc/a")?.length;
  expect([read(mostStoredTextBytes), read(mostStoredTextBytes + 1)]).toEqual([mostStoredTextBytes, undefined]);
});
