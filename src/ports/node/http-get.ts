import { request } from "node:http";

const bodyLimitBytes = 64 * 1024;

/** The body of a 200 answer from a plain HTTP server on this machine; any other answer rejects. */
export function httpGet(url: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { signal, agent: false }, (incoming) => {
      let body = "";
      incoming.setEncoding("utf8");
      incoming.on("data", (chunk: string) => {
        body += chunk;
        if (body.length > bodyLimitBytes) incoming.destroy(new Error(`more than ${bodyLimitBytes} bytes`));
      });
      incoming.once("error", reject);
      incoming.once("end", () =>
        incoming.statusCode === 200 ? resolve(body) : reject(new Error(`HTTP ${incoming.statusCode ?? 0}`)),
      );
    });
    outgoing.once("error", reject);
    outgoing.end();
  });
}
