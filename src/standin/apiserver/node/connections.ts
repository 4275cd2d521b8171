import type { Share } from "../schema/contract.ts";
import type { Part } from "../schema/contract.ts";

/** How many connections each kind of client may hold at once. */
export interface ConnectionLimits {
  /** Of clients whom no request on their connection has made known yet. */
  readonly strangers: number;
  readonly ofOneUser: number;
  readonly ofOneNode: number;
  /** Of all users for whom nothing is kept. */
  readonly ofOthers: number;
  readonly ofNodes: number;
}

/** The part of a socket that this needs. */
export interface Connection {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  destroy(): unknown;
  once(event: "close", listener: () => void): unknown;
}

/** A connection by its other end: that of TLS is another object than the one below it. */
const keyOf = ({ remoteAddress, remotePort }: Connection) => `${remoteAddress ?? ""} ${remotePort ?? ""}`;

/**
 * Connections of a listener, of which strangers hold a small share: they need no credentials to open one, and no more to
 * keep it. The oldest one of theirs makes room for the next, because a client with credentials is a stranger only until
 * its first request.
 */
export class Connections {
  readonly #limits: ConnectionLimits;
  /** In the order in which they began. */
  readonly #strangers = new Map<string, Connection>();
  readonly #ofUsers = new Map<string, number>();
  readonly #ofParts: Record<Part, number> = { others: 0, nodes: 0, cluster: 0 };

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** A connection has begun. */
  begins(connection: Connection): void {
    const key = keyOf(connection);
    this.#strangers.set(key, connection);
    connection.once("close", () => {
      if (this.#strangers.get(key) === connection) this.#strangers.delete(key);
    });
    this.#makeRoom();
  }

  /** A request on it was sent by this user. Beyond the share of one user, a connection stays with the strangers. */
  isOf({ of: user, part }: Share, connection: Connection): void {
    const key = keyOf(connection);
    const begun = this.#strangers.get(key);
    const count = this.#ofUsers.get(user) ?? 0;
    const { ofOneUser, ofOneNode, ofOthers, ofNodes } = this.#limits;
    if (begun === undefined || count >= (part === "nodes" ? ofOneNode : ofOneUser)) return;
    if (this.#ofParts[part] >= { others: ofOthers, nodes: ofNodes, cluster: Infinity }[part]) return;
    this.#strangers.delete(key);
    this.#ofUsers.set(user, count + 1);
    this.#ofParts[part] += 1;
    begun.once("close", () => {
      this.#ofParts[part] -= 1;
      const left = (this.#ofUsers.get(user) ?? 1) - 1;
      if (left === 0) this.#ofUsers.delete(user);
      else this.#ofUsers.set(user, left);
    });
  }

  #makeRoom(): void {
    for (const [key, oldest] of this.#strangers) {
      if (this.#strangers.size <= this.#limits.strangers) return;
      this.#strangers.delete(key);
      oldest.destroy();
    }
  }
}
