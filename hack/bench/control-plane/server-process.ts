/**
 * The API server of the control-plane measurement, with its store in memory: `server-process.ts FOLDER`. Prints its
 * URL; each line on standard input is answered with what was asked of it since the last one; ends when its standard
 * input does.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { listen } from "../../../src/standin/apiserver/node/listener.ts";
import { memoryStore } from "../../../src/standin/apiserver/storage/memory-store.ts";
import { pemTokenKeys } from "../../../src/standin/apiserver/node/token-keys.ts";
import { createApiServer } from "../../../src/standin/apiserver/server.ts";
import { roomIn } from "../../../src/standin/apiserver/storage/room.ts";
import { silentLogger } from "../../../src/ports/logger.ts";
import { systemClock, systemRandom } from "../../../src/ports/node/index.ts";
import { type Counts, requestCounter } from "./count-requests.ts";

const [folder = ""] = process.argv.slice(2);
const text = (name: string) => readFileSync(join(folder, name), "utf8");
const server = createApiServer({
  store: memoryStore(),
  clock: systemClock,
  random: systemRandom,
  log: silentLogger,
  tokenKeys: pemTokenKeys(text("tokens.key")),
  // Thousands of machines have more Events than those of one machine may.
  room: roomIn(16 * 1024 * 1024 * 1024),
});
const counter = requestCounter();
const listener = await listen({
  server: {
    async handle(request, peer, signal, caller) {
      const response = await server.handle(request, peer, signal, caller);
      counter.count(request, response.status);
      return response;
    },
    callerOf: (request, peer, signal) => server.callerOf(request, peer, signal),
    close: () => server.close(),
  },
  host: "127.0.0.1",
  port: 0,
  tls: { certificate: text("server.crt"), key: text("server.key") },
  clientCA: text("ca.crt"),
  clock: systemClock,
});
const say = (value: { readonly url: string } | Counts) => process.stdout.write(`${JSON.stringify(value)}\n`);
say({ url: listener.url });
for await (const _ of createInterface(process.stdin)) say(counter.take());
await listener.close();
process.exit(0);
