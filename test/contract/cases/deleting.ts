import { expect } from "vitest";
import { at } from "../api-target.ts";
import {
  apps,
  configMap,
  core,
  created,
  deployment,
  eventually,
  names,
  pod,
  readyPod,
  type ContractCase,
} from "./case-fixture.ts";

export const deletingCases: readonly ContractCase[] = [
  {
    title: "deleting answers with a Status and the object is gone",
    async run(api, namespace) {
      const made = await created(api, core(namespace, "configmaps"), configMap("a"));
      const reply = await api.delete(core(namespace, "configmaps", "a"));
      expect(reply.json).toEqual({
        kind: "Status",
        apiVersion: "v1",
        metadata: {},
        status: "Success",
        details: { name: "a", kind: "configmaps", uid: made.at("metadata.uid") },
      });
      expect((await api.delete(core(namespace, "configmaps", "a"))).status).toBe(404);
    },
  },
  {
    title: "a failed precondition refuses the deletion",
    async run(api, namespace) {
      await created(api, core(namespace, "configmaps"), configMap("a"));
      const reply = await api.delete(core(namespace, "configmaps", "a"), {
        kind: "DeleteOptions",
        apiVersion: "v1",
        preconditions: { uid: "other" },
      });
      expect(reply.status).toBe(409);
      expect(reply.at("message")).toContain("the UID in the precondition (other) does not match the UID in record");
    },
  },
  {
    title: "a finalizer holds an object until it is removed",
    async run(api, namespace) {
      const path = core(namespace, "configmaps", "a");
      await created(api, core(namespace, "configmaps"), configMap("a", {}, { finalizers: ["example.com/hold"] }));
      const marked = await api.delete(path);
      expect(marked.at("metadata.deletionTimestamp")).toBeDefined();
      const more = await api.patch(path, "merge", {
        metadata: { finalizers: ["example.com/hold", "example.com/more"] },
      });
      expect(more.status).toBe(422);
      expect(more.at("message")).toContain("no new finalizers can be added if the object is being deleted");
      const released = await api.patch(path, "merge", { metadata: { finalizers: null } });
      expect(released.status).toBe(200);
      expect((await api.get(path)).status).toBe(404);
    },
  },
  {
    title: "propagation policies leave their finalizers for the collector",
    async run(api, namespace) {
      await created(api, apps(namespace, "deployments"), deployment("d"));
      await created(api, apps(namespace, "deployments"), deployment("e"));
      expect(
        (await api.delete(apps(namespace, "deployments", "d"), { propagationPolicy: "Foreground" })).at(
          "metadata.finalizers",
        ),
      ).toEqual(["foregroundDeletion"]);
      expect(
        (await api.delete(`${apps(namespace, "deployments", "e")}?propagationPolicy=Orphan`)).at("metadata.finalizers"),
      ).toEqual(["orphan"]);
    },
  },
  {
    title: "a running pod is marked with its grace period, and goes with grace 0",
    async run(api, namespace) {
      await readyPod(api, namespace, "p", {});
      const marked = await api.delete(core(namespace, "pods", "p"));
      expect(marked.json).toMatchObject({ metadata: { deletionGracePeriodSeconds: 30 } });
      const sooner = await api.delete(core(namespace, "pods", "p"), { gracePeriodSeconds: 5 });
      expect(sooner.at("metadata.deletionGracePeriodSeconds")).toBe(5);
      await api.delete(core(namespace, "pods", "p"), { gracePeriodSeconds: 0 });
      expect((await api.get(core(namespace, "pods", "p"))).status).toBe(404);
    },
  },
  {
    title: "a pod without a node is deleted at once",
    async run(api, namespace) {
      await created(api, core(namespace, "pods"), pod("p"));
      await api.delete(core(namespace, "pods", "p"));
      expect((await api.get(core(namespace, "pods", "p"))).status).toBe(404);
    },
  },
  {
    title: "a collection is deleted by selector",
    async run(api, namespace) {
      for (const name of ["a", "b", "c"])
        await created(api, core(namespace, "secrets"), {
          apiVersion: "v1",
          kind: "Secret",
          metadata: { name, labels: { keep: String(name === "c") } },
        });
      const reply = await api.delete(`${core(namespace, "secrets")}?labelSelector=keep%3Dfalse`);
      expect(names(reply.json)).toEqual(["a", "b"]);
      expect(names((await api.get(core(namespace, "secrets"))).json)).toEqual(["c"]);
    },
  },
  {
    title: "a dry deletion deletes nothing",
    async run(api, namespace) {
      await created(api, core(namespace, "configmaps"), configMap("a"));
      expect((await api.delete(core(namespace, "configmaps", "a"), { dryRun: ["All"] })).status).toBe(200);
      expect((await api.get(core(namespace, "configmaps", "a"))).status).toBe(200);
    },
  },
  {
    title: "a namespace waits for its finalizer, admits nothing meanwhile, and is deleted when finalized",
    async run(api, namespace) {
      const name = `${namespace}-gone`;
      const made = await created(api, "/api/v1/namespaces", {
        apiVersion: "v1",
        kind: "Namespace",
        metadata: { name },
      });
      expect(made.json).toMatchObject({ spec: { finalizers: ["kubernetes"] }, status: { phase: "Active" } });
      // Where a controller finalizes namespaces, its content holds this one until the test lets it go.
      await created(api, core(name, "configmaps"), configMap("held", {}, { finalizers: ["example.com/held"] }));
      const marked = await api.delete(`/api/v1/namespaces/${name}`);
      expect(marked.json).toMatchObject({ status: { phase: "Terminating" } });
      const refused = await api.post(core(name, "configmaps"), configMap("a"));
      expect(refused.status).toBe(403);
      expect(refused.at("message")).toBe(
        `configmaps "a" is forbidden: unable to create new content in namespace ${name} because it is being terminated`,
      );
      expect(refused.at("details.causes.0.reason")).toBe("NamespaceTerminating");
      await api.patch(core(name, "configmaps", "held"), "merge", { metadata: { finalizers: null } });
      // The controller may be first, or change the namespace in between.
      for (let turn = 0; turn < 100; turn += 1) {
        const live = await api.get(`/api/v1/namespaces/${name}`);
        if (live.status === 404) break;
        await api.put(`/api/v1/namespaces/${name}/finalize`, { ...live.json, spec: { finalizers: [] } });
      }
      expect((await api.get(`/api/v1/namespaces/${name}`)).status).toBe(404);
    },
  },
  {
    title: "default namespaces exist, have a service account, and cannot be deleted",
    async run(api) {
      for (const name of ["default", "kube-system", "kube-node-lease"])
        // On a real cluster a controller creates the account after the namespace.
        await eventually(async () =>
          expect((await api.get(core(name, "serviceaccounts", "default"))).status).toBe(200),
        );
      const reply = await api.delete("/api/v1/namespaces/default");
      expect(reply.at("message")).toBe('namespaces "default" is forbidden: this namespace may not be deleted');
    },
  },
  {
    title: "a pod that is deleted at once is marked first",
    async run(api, namespace) {
      const path = core(namespace, "pods");
      const made = await created(api, path, pod("p"));
      const watch = await api.watch(
        `${path}?watch=true&resourceVersion=${String(made.at("metadata.resourceVersion"))}`,
      );
      expect((await api.delete(`${path}/p?dryRun=All`)).json).toMatchObject({
        metadata: { generation: 2, deletionGracePeriodSeconds: 0 },
      });
      const gone = await api.delete(`${path}/p`);
      expect(gone.json).toMatchObject({
        metadata: { generation: 2, deletionGracePeriodSeconds: 0, deletionTimestamp: expect.any(String) as string },
      });
      const events: unknown[][] = [];
      while (events.at(-1)?.[0] !== "DELETED") {
        const event = await watch.next();
        events.push([event?.type, at(event?.object, "metadata.deletionGracePeriodSeconds")]);
      }
      // A scheduler may have written to the pod before.
      expect(events.slice(-2)).toEqual([
        ["MODIFIED", 0],
        ["DELETED", 0],
      ]);
      await watch.close();
    },
  },
];
