/**
 * Items of which the least comes first; items, distinct ones, are put in, taken out and moved in logarithmic time. An item's
 * rank must not change while it is in the heap, except by `put`.
 */
export class OrderedHeap<T> {
  readonly #isBefore: (one: T, other: T) => boolean;
  readonly #items: T[] = [];
  readonly #places = new Map<T, number>();

  constructor(isBefore: (one: T, other: T) => boolean) {
    this.#isBefore = isBefore;
  }

  get size(): number {
    return this.#items.length;
  }

  has(item: T): boolean {
    return this.#places.has(item);
  }

  /** The least item; `undefined`: there is none. */
  get first(): T | undefined {
    return this.#items[0];
  }

  /** Puts an item in, or to its place after its rank has changed. */
  put(item: T): void {
    const place = this.#places.get(item) ?? this.#items.length;
    this.#set(place, item);
    this.#sink(this.#rise(place));
  }

  /** Takes an item out. */
  remove(item: T): void {
    const place = this.#places.get(item);
    const last = place === undefined ? undefined : this.#items.pop();
    if (place === undefined || last === undefined) return;
    this.#places.delete(item);
    if (place === this.#items.length) return;
    this.#set(place, last);
    this.#sink(this.#rise(place));
  }

  /** Takes the least item out. */
  take(): T | undefined {
    const { first } = this;
    if (first !== undefined) this.remove(first);
    return first;
  }

  #set(place: number, item: T): void {
    this.#items[place] = item;
    this.#places.set(item, place);
  }

  /** Exchanges two items. @returns whether there are both, and the one at `lower` stood before the one at `upper`. */
  #lift(lower: number, upper: number): boolean {
    const below = this.#items[lower];
    const above = this.#items[upper];
    if (below === undefined || above === undefined || !this.#isBefore(below, above)) return false;
    this.#set(lower, above);
    this.#set(upper, below);
    return true;
  }

  #rise(from: number): number {
    let place = from;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!this.#lift(place, parent)) break;
      place = parent;
    }
    return place;
  }

  #sink(from: number): void {
    for (let place = from; ;) {
      const [left, right] = [2 * place + 1, 2 * place + 2];
      const leftItem = this.#items[left];
      const rightItem = this.#items[right];
      if (leftItem === undefined) return;
      const child = rightItem !== undefined && this.#isBefore(rightItem, leftItem) ? right : left;
      if (!this.#lift(child, place)) return;
      place = child;
    }
  }
}
