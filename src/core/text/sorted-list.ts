/** Values in an order of their own, found and kept in it by binary search. */
export class SortedList<T> {
  readonly #compare: (a: T, b: T) => number;
  readonly #items: T[] = [];

  /** @param compare a total order: 0 means the very same value. */
  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare;
  }

  get size(): number {
    return this.#items.length;
  }

  [Symbol.iterator](): Iterator<T> {
    return this.#items[Symbol.iterator]();
  }

  add(item: T): void {
    this.#items.splice(this.#place(item), 0, item);
  }

  /** Takes the value out that compares as equal. */
  remove(item: T): void {
    const at = this.#place(item);
    const there = this.#items[at];
    if (there !== undefined && this.#compare(there, item) === 0) this.#items.splice(at, 1);
  }

  /** The values from `from` on, at most `count`. */
  slice(from: number, count: number): readonly T[] {
    return this.#items.slice(from, from + count);
  }

  #place(item: T): number {
    let [low, high] = [0, this.#items.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const there = this.#items[middle];
      if (there !== undefined && this.#compare(there, item) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
