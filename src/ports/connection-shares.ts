/** How many connections a listener holds, and of one source. */
export interface ConnectionLimits {
  readonly connections: number;
  readonly connectionsOfOneSource: number;
}

interface Held {
  readonly connection: string;
  readonly source: string;
  /** Requests of it that are being answered: it is closed for no other one. */
  requests: number;
  close(): void;
}

interface Source {
  held: number;
  /** Connections without a request, the oldest first. */
  readonly idle: Set<Held>;
}

/**
 * Shares the connections of a listener among those who want them. Nobody is known before a request, so that a full
 * listener closes a connection without one for a source that has fewer: some sources that hold all connections keep no
 * other one out.
 */
export class ConnectionShares {
  readonly #limits: ConnectionLimits;
  /** By what tells a connection from the others. */
  readonly #held = new Map<string, Held>();
  readonly #sources = new Map<string, Source>();

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#held.size;
  }

  /**
   * @param close ends the connection; `ends` is called then, or was.
   * @returns whether the listener keeps the connection.
   */
  begins(connection: string, source: string, close: () => void): boolean {
    const { held } = this.#sources.get(source) ?? { held: 0 };
    if (held >= this.#limits.connectionsOfOneSource) return false;
    if (this.#held.size >= this.#limits.connections && !this.#makesRoom(held)) return false;
    const one: Held = { connection, source, requests: 0, close };
    const of = this.#sources.get(source) ?? { held: 0, idle: new Set() };
    of.held += 1;
    of.idle.add(one);
    this.#sources.set(source, of);
    this.#held.set(connection, one);
    return true;
  }

  ends(connection: string): void {
    const one = this.#held.get(connection);
    const of = one === undefined ? undefined : this.#sources.get(one.source);
    if (one === undefined || of === undefined) return;
    this.#held.delete(connection);
    of.held -= 1;
    of.idle.delete(one);
    if (of.held === 0) this.#sources.delete(one.source);
  }

  requestBegins(connection: string): void {
    const one = this.#held.get(connection);
    if (one === undefined) return;
    one.requests += 1;
    this.#sources.get(one.source)?.idle.delete(one);
  }

  requestEnds(connection: string): void {
    const one = this.#held.get(connection);
    if (one === undefined) return;
    one.requests -= 1;
    if (one.requests === 0) this.#sources.get(one.source)?.idle.add(one);
  }

  /** Closes a connection of the source with the most, for one of a source that has `held`. */
  #makesRoom(held: number): boolean {
    let most: Source | undefined;
    for (const source of this.#sources.values())
      if (source.idle.size > 0 && source.held > (most?.held ?? held + 1)) most = source;
    const oldest = most?.idle.values().next().value;
    if (oldest === undefined) return false;
    this.ends(oldest.connection);
    oldest.close();
    return true;
  }
}
