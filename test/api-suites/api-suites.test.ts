import { inProcessTarget } from "../contract/in-process-target.ts";
import { apiSuites } from "./api-suites.ts";

apiSuites("the embedded API server", () =>
  Promise.resolve({ target: inProcessTarget(), close: () => Promise.resolve() }),
);
