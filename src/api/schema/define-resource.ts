import Type, { type Static, type TObject, type TSchema } from "typebox";
import { Check } from "typebox/value";
import { type ApiGate, defaultApiGates } from "../feature-sets.ts";
import { labels, group as ownGroup } from "../names.ts";
import type { KubeObject, ObjectMeta, Resource } from "./object.ts";
import { structuralSchema } from "./structural-schema.ts";

export interface Column {
  readonly name: string;
  readonly type: "string" | "integer" | "date" | "boolean";
  readonly jsonPath: string;
  readonly description: string;
  /** Columns with a priority above 0 appear with `-o wide` only. */
  readonly priority?: number;
}

export interface Rule {
  /** CEL over `self` (and `oldSelf`), at the root of the object. */
  readonly rule: string;
  readonly message: string;
  /** CEL that makes the message; `message` is what clients see where it cannot be evaluated. */
  readonly messageExpression?: string;
  /** `oldSelf` is optional: the rule judges new objects too. */
  readonly optionalOldSelf?: boolean;
}

/**
 * An earlier version of a kind. Clients are not served it; a cluster that has stored objects in it keeps them only if
 * the definition lists it.
 */
export interface FormerVersion {
  readonly version: string;
  readonly spec: TSchema;
  readonly status?: TSchema;
  /** Absent: those of the current version. */
  readonly rules?: readonly Rule[];
}

export interface ResourceOptions<Spec extends TSchema, Status extends TSchema> {
  readonly kind: string;
  readonly plural: string;
  readonly group?: string;
  readonly version: string;
  readonly scope: "Cluster" | "Namespaced";
  readonly shortNames?: readonly string[];
  /** One sentence: what an object of this kind describes. */
  readonly description: string;
  readonly spec: Spec;
  /** Absent: the kind has no status and no status subresource. */
  readonly status?: Status;
  readonly specRequired?: boolean;
  readonly columns?: readonly Column[];
  readonly rules?: readonly Rule[];
  readonly former?: readonly FormerVersion[];
}

export interface DefinedResource<T extends KubeObject> extends Resource<T> {
  readonly singular: string;
  readonly description: string;
  readonly schema: TObject;
  /** The run-time check for the static type: schema only, without the CEL rules. */
  is(value: unknown): value is T;
  /**
   * The CustomResourceDefinition manifest, deterministic.
   *
   * @param gates the cluster's features; absent: those of a cluster that chose none.
   */
  crd(gates?: ReadonlySet<ApiGate>): CustomResourceManifest;
}

export interface CustomResourceManifest extends KubeObject {
  spec: Record<string, unknown>;
}

export type ResourceOf<R> = R extends Resource<infer T> ? T : never;

type Typed<Spec extends TSchema, Status extends TSchema> = KubeObject & {
  metadata: ObjectMeta;
  spec: Static<Spec>;
  status?: Static<Status>;
};

/**
 * Defines a kind once: the static type (`ResourceOf`), the run-time check (`is`), the CRD with its rules, printer
 * columns and short names (`crd`), and the reference page all derive from it.
 */
export function defineResource<Spec extends TSchema, Status extends TSchema = TObject>(
  options: ResourceOptions<Spec, Status>,
): DefinedResource<Typed<Spec, Status>> {
  const group = options.group ?? ownGroup;
  const { kind, plural, version, scope } = options;
  const singular = kind.toLowerCase();
  const schema = objectSchema(options, options);

  return {
    group,
    version,
    apiVersion: `${group}/${version}`,
    kind,
    plural,
    singular,
    namespaced: scope === "Namespaced",
    description: options.description,
    schema,
    is(value): value is Typed<Spec, Status> {
      return (
        Check(schema, value) &&
        (value as KubeObject).kind === kind &&
        (value as KubeObject).apiVersion === `${group}/${version}`
      );
    },
    crd(gates = defaultApiGates) {
      return {
        apiVersion: "apiextensions.k8s.io/v1",
        kind: "CustomResourceDefinition",
        metadata: { name: `${plural}.${group}`, labels: { [labels.operatorManaged]: "" } },
        spec: {
          group,
          names: {
            kind,
            listKind: `${kind}List`,
            plural,
            singular,
            ...(options.shortNames === undefined ? {} : { shortNames: options.shortNames }),
          },
          scope,
          versions: [
            ...(options.former ?? []).map((former) => ({
              name: former.version,
              served: false,
              storage: false,
              schema: { openAPIV3Schema: rootOf(objectSchema(former, options), gates, options, former.rules) },
              ...(former.status === undefined ? {} : { subresources: { status: {} } }),
            })),
            {
              name: version,
              served: true,
              storage: true,
              schema: { openAPIV3Schema: rootOf(schema, gates, options) },
              ...(options.status === undefined ? {} : { subresources: { status: {} } }),
              ...(options.columns === undefined
                ? {}
                : {
                    additionalPrinterColumns: options.columns.map(
                      ({ name, type, jsonPath, description, priority }) => ({
                        name,
                        type,
                        jsonPath,
                        description,
                        ...(priority === undefined ? {} : { priority }),
                      }),
                    ),
                  }),
            },
          ],
        },
      };
    },
  };
}

function objectSchema(
  { spec, status }: Pick<FormerVersion, "spec" | "status">,
  { specRequired = true }: { readonly specRequired?: boolean },
) {
  return Type.Object({
    apiVersion: Type.Optional(Type.String({ description: "Group and version of the kind." })),
    kind: Type.Optional(Type.String({ description: "Name of the kind." })),
    metadata: Type.Optional(Type.Unsafe<ObjectMeta>({ type: "object" })),
    spec: specRequired ? spec : Type.Optional(spec),
    ...(status === undefined ? {} : { status: Type.Optional(status) }),
  });
}

const rootOf = (
  schema: TSchema,
  gates: ReadonlySet<ApiGate>,
  options: { readonly description: string; readonly rules?: readonly Rule[] },
  rules = options.rules,
) => ({
  ...structuralSchema(schema, gates),
  description: options.description,
  ...(rules === undefined ? {} : { "x-kubernetes-validations": rules }),
});
