/** How many requests may wait for those before them on their connection. */
export interface PipelineLimits {
  readonly ofOneConnection: number;
  readonly ofAll: number;
}

/** No client library of Kubernetes sends a request before it has the answer to the one before it on the connection. */
export const pipelineLimits: PipelineLimits = { ofOneConnection: 32, ofAll: 1_000 };

/** The part of a socket that this needs. */
interface Connection {
  readonly destroyed: boolean;
  destroy(): unknown;
  once(event: "close", listener: () => void): unknown;
}

/** The part of an answer that this needs. */
interface Answer {
  once(event: "close", listener: () => void): unknown;
}

interface Request {
  readonly answer: Answer;
  readonly serve: () => void;
}

/** The requests of one connection. */
interface Line {
  isBusy: boolean;
  readonly waiting: Request[];
}

/**
 * Requests that clients send one behind the other on a connection (RFC 9112 §9.3.2). Node.js reads them as fast as they come,
 * and keeps each until it is answered: one connection would fill the memory.
 */
export class Pipelines {
  readonly #limits: PipelineLimits;
  readonly #lines = new WeakMap<Connection, Line>();
  #waiting = 0;

  constructor(limits: PipelineLimits) {
    this.#limits = limits;
  }

  /** Serves a request once the answers before it are out. A connection on which too many wait ends. */
  add(connection: Connection, request: Request): void {
    if (connection.destroyed) return;
    const line = this.#lineOf(connection);
    if (!line.isBusy) {
      this.#serve(connection, line, request);
      return;
    }
    if (line.waiting.length >= this.#limits.ofOneConnection || this.#waiting >= this.#limits.ofAll) {
      connection.destroy();
      return;
    }
    line.waiting.push(request);
    this.#waiting += 1;
  }

  #lineOf(connection: Connection): Line {
    const known = this.#lines.get(connection);
    if (known !== undefined) return known;
    const line: Line = { isBusy: false, waiting: [] };
    this.#lines.set(connection, line);
    connection.once("close", () => {
      this.#waiting -= line.waiting.length;
      line.waiting.length = 0;
    });
    return line;
  }

  #serve(connection: Connection, line: Line, { answer, serve }: Request): void {
    line.isBusy = true;
    answer.once("close", () => {
      line.isBusy = false;
      if (connection.destroyed) return;
      const next = line.waiting.shift();
      if (next === undefined) return;
      this.#waiting -= 1;
      this.#serve(connection, line, next);
    });
    serve();
  }
}
