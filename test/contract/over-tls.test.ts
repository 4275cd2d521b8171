import { contractSuite } from "./contract-suite.ts";
import { runControllersBeside } from "../support/controllers-beside.ts";
import { tlsTarget } from "./tls-target.ts";

contractSuite("the API server over TLS, on SQLite", "embedded", async () => {
  const target = await tlsTarget();
  const stopControllers = runControllersBeside(target.running.server, target.authority.certificate);
  return {
    target,
    async close() {
      await stopControllers();
      await target.close();
    },
  };
});
