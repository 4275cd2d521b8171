import { everyEvenScenario, testEffects } from "./run-effects.ts";
import { scenarios } from "./scenarios.ts";
import { inMemory } from "./subjects.ts";

testEffects(
  "crash at every effect, even scenarios",
  scenarios.filter((_, index) => index % (everyEvenScenario ? 2 : 8) === 0),
  () => inMemory,
);
