import { testEffects } from "./run-effects.ts";
import { scenarios } from "./scenarios.ts";
import { inMemory } from "./subjects.ts";

testEffects(
  "crash at every effect, odd scenarios",
  scenarios.filter((_, index) => index % 2 === 1),
  () => inMemory,
);
