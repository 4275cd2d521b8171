import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type ConnectionLimits, ConnectionShares } from "../connection-shares.ts";

/** Connections that are being closed, beside those that are held. */
const closingConnections = 64;

/** The same of a connection and of what TLS makes of it. */
const connectionOf = ({ remoteAddress, remotePort, localAddress }: Socket): string =>
  `${remoteAddress ?? ""} ${remotePort ?? 0} ${localAddress ?? ""}`;

/** The connections of a server, and what holds them to their limits. */
export interface SharedConnections {
  readonly sockets: ReadonlySet<Socket>;
  /** A request of a connection begins: it is not closed for others until its answer has ended. */
  requestBegins(incoming: IncomingMessage, outgoing: ServerResponse): void;
}

/** @param onRefused is called for each connection that the server does not take, or gives up for another one. */
export function shareConnections(
  server: Server,
  { sourceOf, ...limits }: ConnectionLimits & { readonly sourceOf: (address: string) => string },
  onRefused: () => void,
): SharedConnections {
  const shares = new ConnectionShares(limits);
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    const connection = connectionOf(socket);
    const close = () => {
      onRefused();
      socket.destroy();
    };
    if (!shares.begins(connection, sourceOf(socket.remoteAddress ?? ""), close)) return close();
    sockets.add(socket);
    socket.once("close", () => {
      sockets.delete(socket);
      shares.ends(connection);
    });
  });
  // A full server decides itself which connections it keeps; those that it gives up are there a moment longer.
  server.maxConnections = limits.connections + closingConnections;
  server.on("drop", onRefused);
  return {
    sockets,
    requestBegins(incoming, outgoing) {
      const connection = connectionOf(incoming.socket);
      shares.requestBegins(connection);
      outgoing.once("close", () => shares.requestEnds(connection));
    },
  };
}
