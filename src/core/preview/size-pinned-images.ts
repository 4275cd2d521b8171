import type { Node } from "../../api/foreign/kubernetes.ts";
import { labels } from "../../api/names.ts";
import { nano, parseQuantity } from "../../api/schema/quantities.ts";
import { forecastPins } from "../images/pinned-images.ts";
import type { PinForecastOfPool } from "./plan-pinned-images.ts";

/** The parts of one image, as a registry sends them. */
export type ImageSize =
  | { readonly verdict: "read"; readonly layers: readonly { readonly digest: string; readonly sizeBytes: number }[] }
  | { readonly verdict: "unread"; readonly problem: string };

/** What is known of an image for machines of an architecture (`amd64`, `arm64`). */
export type SizeOf = (image: string, architecture: string) => ImageSize;

/** What one machine has to fetch. */
export interface MachinePins {
  readonly node: string;
  /** Images that its kubelet does not list, sorted. The kubelet lists the 50 largest only. */
  readonly missing: readonly string[];
  /** How many of the missing images have a size that is known. */
  readonly sized: number;
  /** Of the missing images whose sizes are known, as they are sent; a layer that several have counts once. */
  readonly fetchBytes: number;
  /** What has to be free for them: layers are on the disk beside what is unpacked from them. */
  readonly needBytes: number;
  /** What its kubelet offers to images and pods together; `undefined`: it does not say. */
  readonly offeredBytes: number | undefined;
  /** `short`: not even an empty disk is enough. `unknown`: not all sizes are known, or the kubelet names no disk. */
  readonly verdict: "fits" | "short" | "unknown";
}

/** What machines of a pool fetch, and which images have sizes that are not known. */
export interface SizedPool extends PinForecastOfPool {
  readonly machines: readonly MachinePins[];
  readonly unread: readonly { readonly image: string; readonly problem: string }[];
}

/** The architecture of a machine; `undefined`: its kubelet has not said it. */
export const machineArchitectureOf = ({ metadata, status }: Node): string | undefined =>
  metadata.labels?.[labels.arch] ?? status?.nodeInfo?.architecture;

/** The architectures of a pool's machines, sorted. @param fallback for machines that do not say theirs. */
export const architecturesIn = (pool: PinForecastOfPool, nodes: readonly Node[], fallback: string): readonly string[] =>
  [
    ...new Set(
      nodes
        .filter(({ metadata }) => pool.nodes.includes(metadata.name))
        .map((node) => machineArchitectureOf(node) ?? fallback),
    ),
  ].sort();

/** What each machine of a pool would fetch, and whether it has a disk for it. */
export function sizePinnedImages(
  pool: PinForecastOfPool,
  nodes: readonly Node[],
  sizeOf: SizeOf,
  fallback: string,
): SizedPool {
  const unread = new Map<string, string>();
  const machines = pool.nodes.flatMap((name): readonly MachinePins[] => {
    const node = nodes.find(({ metadata }) => metadata.name === name);
    if (node === undefined) return [];
    const listed = new Set((node.status?.images ?? []).flatMap(({ names }) => names ?? []));
    const missing = pool.fetched.filter((image) => !listed.has(image));
    const sizes = missing.map((image) => ({ image, size: sizeOf(image, machineArchitectureOf(node) ?? fallback) }));
    for (const { image, size } of sizes) if (size.verdict === "unread") unread.set(image, size.problem);
    const layers = sizes.flatMap(({ size }) => (size.verdict === "read" ? size.layers : []));
    const offeredBytes = bytesOf(node.status?.allocatable?.["ephemeral-storage"]);
    const forecast = forecastPins(
      layers,
      offeredBytes === undefined ? undefined : { freeBytes: offeredBytes, reserveBytes: 0 },
    );
    const { fetchBytes, needBytes } = forecast;
    const sized = sizes.filter(({ size }) => size.verdict === "read").length;
    const isKnown = offeredBytes !== undefined && sized === missing.length;
    const verdict = forecast.verdict === "short" ? "short" : isKnown || missing.length === 0 ? "fits" : "unknown";
    return [{ node: name, missing, sized, fetchBytes, needBytes, offeredBytes, verdict }];
  });
  return {
    ...pool,
    machines,
    unread: [...unread].map(([image, problem]) => ({ image, problem })).sort((a, b) => (a.image < b.image ? -1 : 1)),
  };
}

const bytesOf = (quantity: string | undefined): number | undefined => {
  const value = quantity === undefined ? undefined : parseQuantity(quantity);
  return value === undefined ? undefined : Number(value / nano);
};
