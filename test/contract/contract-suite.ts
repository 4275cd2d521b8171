import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Api, type ApiTarget } from "./api-target.ts";
import { contractCases } from "./cases.ts";
import { prepareShared } from "./cases/fixtures.ts";
import { core, eventually, type Surroundings } from "./cases/case-fixture.ts";
import { differences, type ServerKind } from "./differences.ts";
import { startHookServer } from "../support/hook-server.ts";
import { shownDifferences } from "./show-differences.ts";

/** A server that cases run against, and a way to stop it. */
export interface StartedTarget {
  readonly target: ApiTarget;
  close(): void | Promise<void>;
}

/** Runs every case and every difference against a server. */
export function contractSuite(
  title: string,
  kind: ServerKind,
  start: () => Promise<StartedTarget>,
  options: { readonly skip?: boolean } = {},
): void {
  describe.skipIf(options.skip === true)(title, () => {
    let started: StartedTarget;
    let surroundings: Surroundings;
    let stopHooks: () => Promise<void>;
    let count = 0;
    beforeAll(async () => {
      started = await start();
      const hooks = await startHookServer();
      stopHooks = () => hooks.close();
      surroundings = { hooks };
      await prepareShared(new Api(started.target));
    });
    afterAll(async () => {
      await stopHooks();
      await started.close();
    });

    /** A namespace for one case, with the defaults of every namespace: a pod can be created in it. */
    async function furnished(): Promise<{ api: Api; namespace: string }> {
      const api = new Api(started.target);
      const namespace = `case-${process.pid}-${count++}`;
      const made = await api.post("/api/v1/namespaces", {
        apiVersion: "v1",
        kind: "Namespace",
        metadata: { name: namespace },
      });
      expect(made.status, made.text).toBe(201);
      await eventually(async () => {
        expect((await api.get(core(namespace, "serviceaccounts", "default"))).status).toBe(200);
        expect((await api.get(core(namespace, "configmaps", "kube-root-ca.crt"))).status).toBe(200);
      });
      return { api, namespace };
    }

    test.for([...contractCases])("$title", async ({ run }) => {
      const { api, namespace } = await furnished();
      await run(api, namespace, surroundings);
    });
    describe("where the two servers differ", () => {
      test("they are few", () => expect(differences.length).toBeLessThanOrEqual(15));
      test.for([...differences])("$name", async ({ name }) => {
        const { api, namespace } = await furnished();
        await shownDifferences[name][kind](api, namespace, surroundings);
      });
    });
  });
}
