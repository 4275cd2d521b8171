import type { StoreKey } from "./store.ts";

/** Characters of objects that are stored; all of them are in memory too. */
export interface RoomLimits {
  /** Objects of one resource in one namespace. */
  readonly resourceCharacters: number;
  /** All objects of one namespace: twice and more what nodes, which write pods and events anywhere, can fill. */
  readonly namespaceCharacters: number;
}

export const defaultRoom: RoomLimits = {
  resourceCharacters: 64 * 1024 * 1024,
  namespaceCharacters: 192 * 1024 * 1024,
};

/** Of resources without namespace, those whose objects somebody with few rights can create in any number. */
const openResources = new Set(["certificatesigningrequests.certificates.k8s.io"]);

/** Counts what is stored, so that nobody who may write in one namespace fills the memory of the server. */
export class Room {
  readonly #limits: RoomLimits;
  readonly #characters = new Map<string, number>();

  constructor(limits: RoomLimits) {
    this.#limits = limits;
  }

  /**
   * Whether an object may become so much longer; one that shrinks always may.
   *
   * @param share of the limits: 1 is all of them.
   */
  has(key: StoreKey, more: number, share: number): boolean {
    const { resourceCharacters, namespaceCharacters } = this.#limits;
    if (more <= 0 || (key.namespace === "" && !openResources.has(key.resource))) return true;
    if (this.#of(resourceOf(key)) + more > resourceCharacters * share) return false;
    return key.namespace === "" || this.#of(key.namespace) + more <= namespaceCharacters * share;
  }

  /** @param more below zero for an object that shrinks, or goes. */
  add(key: StoreKey, more: number): void {
    for (const counter of [resourceOf(key), key.namespace]) {
      const sum = this.#of(counter) + more;
      if (sum === 0) this.#characters.delete(counter);
      else this.#characters.set(counter, sum);
    }
  }

  #of(counter: string): number {
    return this.#characters.get(counter) ?? 0;
  }
}

/** Never the name of a namespace. */
const resourceOf = ({ resource, namespace }: StoreKey): string => `${resource}/${namespace}`;
