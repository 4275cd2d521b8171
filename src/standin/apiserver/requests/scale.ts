import type { HttpRequest } from "../../../ports/http.ts";
import { keyInStore } from "./engine.ts";
import { inVersion } from "../schema/event-conversion.ts";
import { readPatch } from "./patch-object.ts";
import { bodyObject } from "../http/request-body.ts";
import type { KubeObject, Served } from "../schema/contract.ts";
import { isObject } from "../schema/json-values.ts";
import { printLabelSelector } from "../schema/selectors.ts";
import { badRequest, conflict, internalError, invalid, jsonResponse, notFound, Refusal } from "../schema/status.ts";
import { modifyObject, type WriteContext } from "./writes.ts";
import type { HttpResponse } from "../../../ports/http.ts";
import { own } from "../../../api/schema/own.ts";

type ScalePaths = NonNullable<Served["definition"]["scale"]>;

const scaleKind = { group: "autoscaling", kind: "Scale" };

/** The Scale of an object: `autoscaling/v1`. */
function scaleOf(object: KubeObject, paths: ScalePaths): KubeObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const selector = paths.labelSelectorPath === undefined ? undefined : valueAt(object, paths.labelSelectorPath);
  const text = typeof selector === "string" ? selector : isObject(selector) ? printLabelSelector(selector) : undefined;
  return {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: {
      ...(name === undefined ? {} : { name }),
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
    },
    spec: { replicas: count(valueAt(object, paths.specReplicasPath)) },
    status: {
      replicas: count(valueAt(object, paths.statusReplicasPath)),
      ...(text === undefined ? {} : { selector: text }),
    },
  };
}

/** GET, PUT and PATCH of /scale. */
export async function serveScale(context: WriteContext, request: HttpRequest): Promise<HttpResponse | Refusal> {
  const { engine, served, target } = context;
  const paths = served.definition.scale;
  if (paths === undefined) return notFound(served.definition, target.name);
  if (target.verb === "get") {
    const live = engine.live.get(keyInStore(served, target));
    if (live !== undefined && served.definition.custom && valueAt(live.object, paths.specReplicasPath) === undefined)
      return internalError(`the spec replicas field ${JSON.stringify(paths.specReplicasPath)} does not exist`);
    return live === undefined
      ? notFound(served.definition, target.name)
      : jsonResponse(200, scaleOf(inVersion(live.object, served.apiVersion), paths));
  }

  let wanted: (scale: KubeObject) => unknown;
  if (target.verb === "update") {
    const body = bodyObject(request);
    if (body instanceof Refusal) return body;
    wanted = () => body;
  } else {
    const patch = readPatch(context, request);
    if (patch instanceof Refusal) return patch;
    if (patch === "apply") return badRequest("apply is not supported on scale");
    wanted = (scale) => {
      const result = patch(scale);
      return result instanceof Refusal ? result : result.object;
    };
  }

  const written = await modifyObject(
    context,
    (live) => {
      const scale = wanted(scaleOf(live, paths));
      if (scale instanceof Refusal) return scale;
      if (!isObject(scale)) return badRequest("a Scale must be an object");
      const metadata = isObject(scale["metadata"]) ? scale["metadata"] : {};
      const revision = metadata["resourceVersion"];
      if (typeof revision === "string" && revision !== "" && revision !== live.metadata.resourceVersion)
        return conflict(served.definition, target.name);
      const replicas = isObject(scale["spec"]) ? (scale["spec"]["replicas"] ?? 0) : 0;
      if (typeof replicas !== "number" || !Number.isInteger(replicas) || replicas < 0) {
        return invalid(scaleKind, target.name, [
          {
            reason: "FieldValueInvalid",
            field: "spec.replicas",
            message: `Invalid value: ${JSON.stringify(replicas)}: must be greater than or equal to 0`,
          },
        ]);
      }
      setAt(live, paths.specReplicasPath, replicas);
      return live;
    },
    "patched",
  );
  return written instanceof Refusal
    ? written
    : jsonResponse(200, scaleOf(inVersion(written.live.object, served.apiVersion), paths));
}

function count(value: unknown): number {
  return typeof value === "number" ? value : 0;
}

/** `.spec.replicas` */
function steps(path: string): string[] {
  return path.split(".").filter((step) => step !== "");
}

function valueAt(object: KubeObject, path: string): unknown {
  let value: unknown = object;
  for (const step of steps(path)) value = isObject(value) ? own(value, step) : undefined;
  return value;
}

function setAt(object: KubeObject, path: string, value: unknown): void {
  const all = steps(path);
  const last = all.pop();
  let parent: Record<string, unknown> = object;
  for (const step of all) {
    // `__proto__` would lead to what all objects of this process share.
    if (step === "__proto__") return;
    const next = own(parent, step);
    const child = isObject(next) ? next : {};
    parent[step] = child;
    parent = child;
  }
  if (last !== undefined && last !== "__proto__") parent[last] = value;
}
