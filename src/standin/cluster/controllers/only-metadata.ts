import type { KubeObject } from "../../../api/schema/object.ts";

/** An object without its content: its kind, and the given fields of its metadata, as far as they are there. */
export const onlyMetadata =
  (...fields: readonly (keyof KubeObject["metadata"])[]) =>
  ({ apiVersion, kind, metadata }: KubeObject): KubeObject => ({
    apiVersion,
    kind,
    metadata: {
      name: metadata.name,
      ...Object.fromEntries(
        fields.flatMap((field) => (metadata[field] === undefined ? [] : [[field, metadata[field]] as const])),
      ),
    },
  });
