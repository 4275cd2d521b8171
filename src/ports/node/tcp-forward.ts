import { type AddressInfo, type Socket, connect, createServer } from "node:net";
import { isLoopback } from "./https-listener.ts";
import type { Forward } from "../forward.ts";

/** Connect timeout: a machine of this cluster accepts a connection at once. */
const connectMs = 2000;

/** TCP forwarding over Node.js. */
export const forward: Forward = async ({ host, port, to, before, log }, signal) => {
  if (!isLoopback(host)) throw new Error(`refusing to listen on ${host}: not a loopback address`);
  const open = new Set<Socket>();
  let turn = 0;
  const keep = (socket: Socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    // The "close" handler covers errors.
    socket.on("error", () => socket.destroy());
    return socket;
  };
  const server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, (client) => {
    keep(client);
    turn += 1;
    const lead = (tries: number): void => {
      const targets = to();
      const target = targets[(turn + tries) % Math.max(1, targets.length)];
      if (target === undefined || tries >= targets.length) {
        log.debug({ targets: targets.length }, "no target accepts the connection");
        client.destroy();
        return;
      }
      const upstream = keep(
        connect({
          ...target,
          allowHalfOpen: true,
          ...(client.remoteAddress === undefined ? {} : { localAddress: client.remoteAddress }),
        }),
      );
      upstream.setTimeout(connectMs, () => upstream.destroy());
      let taken = false;
      upstream.once("connect", () => {
        taken = true;
        upstream.setTimeout(0);
        client.pipe(upstream);
        upstream.pipe(client);
      });
      upstream.once("close", () => {
        if (taken) client.destroy();
        else if (!client.destroyed) lead(tries + 1);
      });
      client.once("close", () => upstream.destroy());
    };
    if (before === undefined) lead(0);
    else
      before().then(
        () => {
          if (!client.destroyed) lead(0);
        },
        (error: unknown) => {
          log.warn({ error }, "a connection is closed: its destination does not start");
          client.destroy();
        },
      );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  signal.addEventListener(
    "abort",
    () => {
      server.close();
      for (const socket of open) socket.destroy();
    },
    { once: true },
  );
  return { port: (server.address() as AddressInfo).port };
};
