import fc from "fast-check";
import { expect, test } from "vitest";
import { OrderedHeap } from "./ordered-heap.ts";

test("a heap has the least of its items first, whatever is put in, moved and removed [ordered-heap-1]", () => {
  const step = fc.record({ does: fc.constantFrom("put", "remove", "take"), id: fc.nat(15), rank: fc.nat(50) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const items = Array.from({ length: 16 }, (_, id) => ({ id, rank: 0 }));
      const heap = new OrderedHeap<(typeof items)[number]>((one, other) => one.rank < other.rank);
      const model = new Set<(typeof items)[number]>();
      const least = () => Math.min(...[...model].map(({ rank }) => rank));
      for (const { does, id, rank } of steps) {
        const item = items[id];
        if (item === undefined) continue;
        if (does === "put") {
          item.rank = rank;
          heap.put(item);
          model.add(item);
        } else if (does === "remove") {
          heap.remove(item);
          model.delete(item);
        } else if (model.size > 0) {
          expect(heap.first?.rank).toBe(least());
          const taken = heap.take();
          expect(taken !== undefined && model.delete(taken)).toBe(true);
        }
        expect(heap.size).toBe(model.size);
      }
      const left = Array.from({ length: model.size }, () => heap.take()?.rank);
      expect(left).toEqual([...model].map((each) => each.rank).sort((a, b) => a - b));
      expect(heap.take()).toBeUndefined();
    }),
  );
});
