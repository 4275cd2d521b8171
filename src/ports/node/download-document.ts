import { request as plain } from "node:http";
import { request as secure } from "node:https";
import { rootCertificates } from "node:tls";
import type { Downloaded, Downloader } from "../download.ts";
import { headerLines } from "./header-lines.ts";

/** Downloads documents over Node.js; each on its own connection. */
export const downloadDocument: Downloader = (
  { url, headers, authorities, onlyAuthorities = false, headersTimeoutMs, maxBytes },
  signal,
) =>
  new Promise<Downloaded>((resolve, reject) => {
    const isSecure = url.startsWith("https:");
    const options = { method: "GET", headers: { ...headers }, agent: false, signal } as const;
    const outgoing = isSecure
      ? secure(url, {
          ...options,
          ca: [...(onlyAuthorities ? [] : rootCertificates), ...authorities],
          minVersion: "TLSv1.2",
        })
      : plain(url, options);
    const impatience = setTimeout(
      () => outgoing.destroy(new Error(`no answer within ${headersTimeoutMs} ms`)),
      headersTimeoutMs,
    );
    outgoing.once("error", (error) => {
      clearTimeout(impatience);
      reject(error);
    });
    outgoing.once("response", (incoming) => {
      clearTimeout(impatience);
      const chunks: Buffer[] = [];
      let size = 0;
      incoming.on("data", (chunk: Buffer) => {
        size += chunk.length;
        if (size > maxBytes) incoming.destroy(new Error(`more than ${maxBytes} bytes`));
        else chunks.push(chunk);
      });
      incoming.once("error", reject);
      incoming.once("aborted", () => reject(new Error("the answer was cut off")));
      incoming.once("end", () => {
        const named = headerLines(incoming.headers);
        resolve({ status: incoming.statusCode ?? 0, headers: named, body: Buffer.concat(chunks) });
      });
    });
    outgoing.end();
  });
