/**
 * The other process of the TLS measurement: `serve.ts apiserver|echo FOLDER`. Prints its URL, ends when its standard
 * input does.
 */
import { readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { serveApiServer } from "../../src/standin/apiserver/node/serve.ts";
import { silentLogger } from "../../src/ports/logger.ts";
import { systemClock, systemRandom } from "../../src/ports/node/index.ts";

const [what, folder = ""] = process.argv.slice(2);
const text = (name: string) => readFileSync(join(folder, name), "utf8");
const stopping = new AbortController();
process.stdin.resume().once("end", () => {
  stopping.abort();
  setTimeout(() => process.exit(0), 500).unref();
});

if (what === "apiserver") {
  const running = await serveApiServer({
    file: join(folder, "store.db"),
    host: "127.0.0.1",
    port: 0,
    tls: { certificate: text("server.crt"), key: text("server.key") },
    clusterCA: text("ca.crt"),
    tokenKey: text("tokens.key"),
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    signal: stopping.signal,
  });
  process.stdout.write(`${running.url}\n`);
} else {
  // Same shapes as the API server's, and no work: a body comes back, /list is a fixed body, a write goes to all of
  // /watch.
  const list = text("list.json");
  const watchers = new Set<ServerResponse>();
  const server = createServer(
    { cert: text("server.crt"), key: text("server.key"), ca: text("ca.crt"), requestCert: true },
    (request, response) => {
      if (request.url === "/watch") {
        response.writeHead(200, { "content-type": "application/json" }).flushHeaders();
        watchers.add(response);
        response.once("close", () => watchers.delete(response));
        return;
      }
      if (request.method === "GET") {
        response.writeHead(200, { "content-type": "application/json" }).end(list);
        return;
      }
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const body = Buffer.concat(chunks);
        response.writeHead(request.method === "PUT" ? 200 : 201, { "content-type": "application/json" }).end(body);
        const line = `{"type":"ADDED","object":${body.toString("utf8")}}\n`;
        for (const watcher of watchers) watcher.write(line);
      });
    },
  );
  server.listen(0, "127.0.0.1", () =>
    process.stdout.write(`https://127.0.0.1:${(server.address() as AddressInfo).port}\n`),
  );
  stopping.signal.addEventListener("abort", () => {
    for (const watcher of watchers) watcher.destroy();
    server.close();
  });
}
