/** Where a command prints, and what that output can show. */
export interface Io {
  out(text: string): void;
  err(text: string): void;
  /** Of a terminal; elsewhere `undefined`. */
  readonly screen: { readonly columns: number; readonly rows: number; readonly colours: boolean } | undefined;
}

/** Standard output and error of this process. `NO_COLOR` is honoured: https://no-color.org */
export function processIo(): Io {
  const { isTTY, columns, rows } = process.stdout;
  return {
    out: (text) => process.stdout.write(text),
    err: (text) => process.stderr.write(text),
    screen: isTTY ? { columns, rows, colours: process.env["NO_COLOR"] === undefined } : undefined,
  };
}
