import type { Secret } from "../../api/foreign/kubernetes.ts";
import { annotations } from "../../api/names.ts";

/** The pools whose builds may use a credential, as an annotation of its Secret says; `undefined`: those of every pool. */
export const poolsOfSecret = ({ metadata }: Pick<Secret, "metadata">): readonly string[] | undefined =>
  metadata.annotations?.[annotations.secretPools]
    ?.split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");

export const isForBuildsOf = (secret: Pick<Secret, "metadata">, pool: string): boolean =>
  poolsOfSecret(secret)?.includes(pool) ?? true;
