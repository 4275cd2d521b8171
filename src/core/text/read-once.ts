/**
 * A reader of objects that remembers its result for each, as long as the object exists. Objects of the API are never changed in
 * place: a changed one is another object. The results must not be changed either.
 */
export function readOncePerObject<O extends object, T>(read: (object: O) => T): (object: O) => T {
  const known = new WeakMap<O, { readonly result: T }>();
  return (object) => {
    const before = known.get(object);
    if (before !== undefined) return before.result;
    const result = read(object);
    known.set(object, { result });
    return result;
  };
}

/** Texts that are remembered of each reader: those of a few pools. */
const mostTexts = 16;

/**
 * A reader of texts that remembers what it made of the last ones: the same base file is read for each pool, each object that
 * is laid over it, and each pass. What it returns must not be changed.
 */
export function readOnce<T>(read: (text: string) => T): (text: string) => T {
  const known = new Map<string, { readonly value: T }>();
  return (text) => {
    const found = known.get(text) ?? { value: read(text) };
    known.delete(text);
    known.set(text, found);
    for (const oldest of known.keys()) {
      if (known.size <= mostTexts) break;
      known.delete(oldest);
    }
    return found.value;
  };
}
