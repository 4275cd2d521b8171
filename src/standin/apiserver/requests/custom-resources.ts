import type { Clock } from "../../../ports/clock.ts";
import type { Logger } from "../../../ports/logger.ts";
import type { OwnTurns } from "../access/exchange.ts";
import type { AdmissionPlugin } from "../admission/admission.ts";
import type { Catalog } from "../schema/kinds/catalog.ts";
import { deleteObject, deletionsOfOneTurn } from "./deletes.ts";
import type { Engine } from "./engine.ts";
import type { LiveObjects } from "../storage/live-objects.ts";
import type { KubeObject, UserInfo } from "../schema/contract.ts";
import { definitionsOf, establish } from "../schema/validation/custom-resource-definition.ts";
import { cloneJson, isObject } from "../schema/json-values.ts";
import { forbidden, invalid, Refusal } from "../schema/status.ts";
import { plainDelete } from "../http/write-options.ts";
import { isGone } from "./writes.ts";
import { timestamp } from "../schema/timestamp.ts";

const resource = "customresourcedefinitions.apiextensions.k8s.io";
/** Holds a definition until its objects are gone: `k8s.io/apiextensions-apiserver pkg/apis/apiextensions (master)`. */
const cleanup = "customresourcecleanup.apiextensions.k8s.io";

/** Whom the server deletes objects as. */
export const serverItself: UserInfo = { name: "system:apiserver", groups: ["system:masters"] };

export interface CustomResources {
  readonly admission: AdmissionPlugin;
  /** Serves what is defined already, and follows changes from now on. */
  start(engine: Engine): void;
}

/** Makes kinds of CustomResourceDefinitions: a definition is served from the moment its write is acknowledged. */
export function customResources({
  live,
  catalog,
  clock,
  log,
  own,
}: {
  readonly live: LiveObjects;
  readonly catalog: Catalog;
  readonly clock: Clock;
  readonly log: Logger;
  readonly own: OwnTurns;
}): CustomResources {
  const ending = new Set<string>();

  return {
    admission: {
      mutate({ operation, served, subresource, object }): Refusal | KubeObject | undefined {
        if (operation === "CREATE" && ending.has(served.stored))
          return forbidden(
            served.definition,
            object?.metadata.name ?? "",
            "create not allowed while custom resource definition is terminating",
          );
        if (served.stored !== resource || subresource !== "" || object === undefined) return undefined;
        const defined = definitionsOf(object);
        if (defined.verdict === "refused")
          return invalid(served.definition, object.metadata.name ?? "", defined.errors);
        const established = establish(object, catalog.definitions(), timestamp(clock.now()));
        if (operation === "CREATE" && established.metadata.finalizers?.includes(cleanup) !== true) {
          return {
            ...established,
            metadata: { ...established.metadata, finalizers: [...(established.metadata.finalizers ?? []), cleanup] },
          };
        }
        return established;
      },
    },

    start(engine) {
      const serve = (crd: KubeObject) => {
        const name = crd.metadata.name ?? "";
        const defined = definitionsOf(crd);
        if (!isEstablished(crd)) catalog.removeCustom(name);
        else if (defined.verdict === "served") catalog.setCustom(name, defined.definitions, defined.storageVersion);
        // It was accepted once: a definition that an earlier release let in stays out of service, it does not stop the
        // server.
        else log.error({ crd: name, errors: defined.errors }, "stored definition cannot be served");
        if (crd.metadata.deletionTimestamp !== undefined && !ending.has(storedAs(crd))) end(engine, crd);
      };
      for (const { object } of live.list(resource)) serve(object);
      live.subscribe({ resource }, ({ type, live: { object } }) => {
        if (type !== "DELETED") {
          serve(object);
          return;
        }
        catalog.removeCustom(object.metadata.name ?? "");
        for (const [watch, watched] of engine.watches) if (watched === storedAs(object)) watch.end();
      });
    },
  };

  /**
   * Deletes the objects of a definition that is being deleted, some in each turn, and releases the definition when the last
   * object is gone.
   */
  function end(engine: Engine, crd: KubeObject): void {
    const stored = storedAs(crd);
    ending.add(stored);
    const finish = () => {
      const current = live.get({ resource, namespace: "", name: crd.metadata.name ?? "" });
      if (current !== undefined) {
        const after = cloneJson(current.object);
        after.metadata.finalizers = (after.metadata.finalizers ?? []).filter((finalizer) => finalizer !== cleanup);
        if (isGone(after)) live.remove(current.key, current.revision, after);
        else live.update(current.key, current.revision, after);
      }
      ending.delete(stored);
    };
    if (live.count(stored) === 0) {
      finish();
      return;
    }
    const unsubscribe = live.subscribe({ resource: stored }, ({ type }) => {
      if (type !== "DELETED" || live.count(stored) > 0) return;
      unsubscribe();
      finish();
    });
    const exchange = {
      user: serverItself,
      signal: own.signal,
      warnings: [],
      turn: () => own.turn(),
    };
    // No admission is asked: k8s.io/apiextensions-apiserver pkg/controller/finalizer/crd_finalizer.go (v0.34).
    const unasked: Engine = {
      ...engine,
      admission: { ...engine.admission, validate: () => Promise.resolve(undefined) },
    };
    const deleteAll = async () => {
      const served = catalog.findStored(stored);
      if (served === undefined) return;
      for (const [index, { key }] of live.list(stored).entries()) {
        if (index > 0 && index % deletionsOfOneTurn === 0) await exchange.turn();
        const outcome = await deleteObject(
          unasked,
          exchange,
          served,
          { namespace: key.namespace, name: key.name, subresource: "" },
          plainDelete,
        );
        if (outcome instanceof Refusal && outcome.code !== 404)
          log.warn(
            { resource: stored, name: key.name, refusal: outcome.status.message },
            "object of a deleted definition cannot be deleted",
          );
      }
    };
    deleteAll().catch((error: unknown) => {
      // The next server goes on.
      if (own.signal.aborted) return;
      log.error({ resource: stored, error: String(error) }, "objects of a deleted definition cannot be deleted");
    });
  }
}

function storedAs(crd: KubeObject): string {
  return crd.metadata.name ?? "";
}

function isEstablished(crd: KubeObject): boolean {
  const status = isObject(crd["status"]) ? crd["status"] : {};
  const conditions = Array.isArray(status["conditions"]) ? status["conditions"] : [];
  return conditions.some(
    (condition) => isObject(condition) && condition["type"] === "Established" && condition["status"] === "True",
  );
}
