/** Methods of lists that go through them, and call a function for each element. */
const visiting = ["map", "flatMap", "filter", "some", "every", "find", "findIndex", "forEach"] as const;
/** Methods that go through a list or text by themselves: they count as all of it. */
const searching = ["includes", "indexOf"] as const;

type Method = (this: unknown, ...given: unknown[]) => unknown;

/**
 * How many elements of lists, Maps and Sets a piece of work visits, compares or copies, and how often it cuts texts: a measure
 * of the work that does not depend on the machine. Loops that count indexes are not counted.
 */
export async function countWork(work: () => unknown): Promise<number> {
  let count = 0;
  const undo: (() => void)[] = [];
  const replace = (prototype: object, name: string | symbol, wrapped: (original: Method) => Method) => {
    const original = (prototype as Record<string | symbol, Method>)[name];
    if (original === undefined) throw new Error(`no method ${String(name)}`);
    const define = (value: Method) =>
      Object.defineProperty(prototype, name, { value, writable: true, configurable: true });
    define(wrapped(original));
    undo.push(() => void define(original));
  };
  for (const name of visiting)
    replace(
      Array.prototype,
      name,
      (original) =>
        function visit(this: unknown, ...[each, ...others]: unknown[]) {
          const counted = (...given: unknown[]) => {
            count += 1;
            return (each as (...all: unknown[]) => unknown)(...given);
          };
          return original.call(this, counted, ...others);
        },
    );
  for (const [prototype, names] of [
    [Array.prototype, searching],
    [String.prototype, ["split"]],
  ] as const)
    for (const name of names)
      replace(
        prototype,
        name,
        (original) =>
          function search(this: unknown, ...given: unknown[]) {
            count += name === "split" ? 1 : (this as { readonly length: number }).length;
            return original.apply(this, given);
          },
      );
  for (const [prototype, names] of [
    [Array.prototype, [Symbol.iterator]],
    [Map.prototype, ["keys", "values", "entries", Symbol.iterator]],
    [Set.prototype, ["values", Symbol.iterator]],
  ] as const)
    for (const name of names)
      replace(
        prototype,
        name,
        (original) =>
          function* each(this: unknown) {
            const all = original.call(this) as Iterator<unknown>;
            for (let next = all.next(); next.done !== true; next = all.next()) {
              count += 1;
              yield next.value;
            }
          },
      );
  try {
    await work();
  } finally {
    for (const each of undo) each();
  }
  return count;
}
