import { contractSuite } from "./contract-suite.ts";
import { inProcessTarget, rootCertificates } from "./in-process-target.ts";
import { runControllersBeside } from "../support/controllers-beside.ts";

contractSuite("the API server in one process, on the memory store", "embedded", async () => {
  const target = inProcessTarget();
  const stopControllers = runControllersBeside(target.server, rootCertificates);
  return {
    target,
    async close() {
      await stopControllers();
      target.server.close();
    },
  };
});
