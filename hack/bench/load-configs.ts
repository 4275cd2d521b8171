/**
 * The clients of the config server's measurement: so many connections, each of which asks again as soon as it has its
 * answer, for so many milliseconds after everybody has had one. Bodies are counted and dropped.
 */
import { type TLSSocket, connect } from "node:tls";
import { readFileSync } from "node:fs";
import { summary } from "./statistics.ts";

interface Load {
  readonly port: number;
  readonly ca: string;
  readonly clients: number;
  readonly gzip: boolean;
  readonly milliseconds: number;
}

const load = JSON.parse(readFileSync(0, "utf8")) as Load;
const request = Buffer.from(
  `GET /config/worker HTTP/1.1\r\nhost: bench\r\naccept: application/vnd.coreos.ignition+json;version=3.5.0, */*;q=0.1\r\n${load.gzip ? "accept-encoding: gzip\r\n" : ""}\r\n`,
);

let warm = 0;
let measuring = false;
let stopped = false;
let bytes = 0;
const took: number[] = [];
let began = 0;
const sockets: TLSSocket[] = [];
const everybody = Promise.withResolvers<void>();

for (let client = 0; client < load.clients; client += 1) {
  const socket = connect({ host: "127.0.0.1", port: load.port, ca: load.ca });
  sockets.push(socket);
  let left = -1;
  let head = "";
  let from = 0;
  let isFirst = true;
  const ask = () => {
    left = -1;
    head = "";
    from = performance.now();
    socket.write(request);
  };
  socket.once("secureConnect", ask);
  socket.on("error", (error) => {
    if (!stopped) throw error;
  });
  socket.on("data", (chunk: Buffer) => {
    let rest = chunk.length;
    if (left < 0) {
      head += chunk.toString("latin1");
      const end = head.indexOf("\r\n\r\n");
      if (end < 0) return;
      if (!head.startsWith("HTTP/1.1 200")) throw new Error(head.slice(0, end));
      left = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1]);
      bytes = left;
      rest = head.length - end - 4;
      head = "";
    }
    left -= rest;
    if (left > 0 || stopped) return;
    if (isFirst) {
      isFirst = false;
      warm += 1;
      if (warm === load.clients) everybody.resolve();
    } else if (measuring) took.push(performance.now() - from);
    ask();
  });
}
await everybody.promise;
process.send?.({ is: "warm" });
// The server's processor time is read in between.
await new Promise((resolve) => process.once("message", resolve));
measuring = true;
began = performance.now();
await new Promise((resolve) => setTimeout(resolve, load.milliseconds));
measuring = false;
const seconds = (performance.now() - began) / 1000;
process.send?.({
  is: "done",
  answersPerSecond: took.length / seconds,
  answers: took.length,
  milliseconds: summary(took),
  p99: took.toSorted((a, b) => a - b)[Math.min(took.length - 1, Math.ceil(took.length * 0.99) - 1)] ?? Number.NaN,
  bytes,
});
stopped = true;
for (const socket of sockets) socket.destroy();
process.disconnect?.();
