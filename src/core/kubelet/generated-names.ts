import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { annotations } from "../../api/names.ts";
import type { KubeObject } from "../../api/schema/object.ts";

/** What the generated MachineConfigs of each kind are for. */
export type GeneratedKind = "kubelet" | "containerruntime";

export interface NameInputs {
  readonly kind: GeneratedKind;
  readonly pool: string;
  /** The KubeletConfig or ContainerRuntimeConfig. */
  readonly config: KubeObject;
  /** All other objects of its kind that select the pool. */
  readonly others: readonly KubeObject[];
  /** Whether there is a MachineConfig of a name. */
  exists(name: string): boolean;
  /** Names of the MachineConfigs that the object controls, beyond those that its finalizers name; absent: none. */
  readonly held?: readonly string[];
  /** Whether the MachineConfig of a name belongs to somebody else; absent: none does. */
  readonly isTaken?: (name: string) => boolean;
}

/**
 * The name of the MachineConfig that an object makes for a pool. The machines take the last by name, so the newest object
 * wins.
 *
 * A name that the object has already stays, also one that the reference gave it: its annotation and its finalizers say
 * which. The only object of a pool gets the plain name; others one that follows from their own time and name, so that it
 * does not depend on which objects were there before.
 */
export function generatedName(given: NameInputs): string {
  const { kind, pool, config, others, exists, held = [], isTaken = () => false } = given;
  const plain = `99-${pool}-generated-${kind}`;
  const own = ownNames([...(config.metadata.finalizers ?? []), ...held], plain).filter((name) => !isTaken(name));
  const suffix = config.metadata.annotations?.[annotations.configNameSuffix];
  const asked = suffix === undefined || suffix === "" ? plain : `${plain}-${suffix}`;
  // The annotation is one for all pools, so another object may have the name in this one.
  if (suffix !== undefined && isSuffix.test(suffix) && !isTaken(asked)) return asked;
  const last = own.findLast(exists) ?? own.at(-1);
  if (last !== undefined) return last;
  return others.length === 0 && !isTaken(plain) ? plain : `${plain}-${identityOf(config)}`;
}

/** What the name of an object may end with. */
const isSuffix = /^(?:[a-z\d](?:[-a-z\d]{0,30}[a-z\d])?)?$/;

/** Those names that belong to one pool: the plain one, then by number. */
function ownNames(names: readonly string[], plain: string): readonly string[] {
  const numberOf = (name: string) => (name === plain ? 0 : Number(name.slice(plain.length + 1)));
  return [...new Set(names)]
    .filter(
      (name) =>
        name === plain || (name.startsWith(`${plain}-`) && /^(?:\d+|t[\da-z]{15})$/.test(name.slice(plain.length + 1))),
    )
    .toSorted((one, other) => {
      const [a, b] = [numberOf(one), numberOf(other)];
      return Number.isNaN(a) || Number.isNaN(b) ? (one < other ? -1 : 1) : a - b;
    });
}

/**
 * Sorts by age, behind the numbers of the reference, and is unique among objects of one kind. It is short whatever the
 * object's name is: the whole name becomes a finalizer, which has 63 characters at most.
 */
function identityOf({ metadata: { creationTimestamp = "", name } }: KubeObject): string {
  const seconds = Math.floor((Date.parse(creationTimestamp) || 0) / 1000);
  const digest = bytesToHex(sha256(utf8ToBytes(name))).slice(0, 8);
  return `t${seconds.toString(36).padStart(7, "0")}${digest}`;
}

/**
 * The form of the names of all MachineConfigs that this suite and the reference make of settings, in a syntax that admission
 * policies understand too.
 */
export const generatedNameForm =
  /^9[6-9]-.+-generated-(kubelet|containerruntime|registries|credentialproviderconfig)(-.+)?$/;

/** Whether a finalizer is the name of a MachineConfig that this suite or the reference made for an object. */
export const isGeneratedName = (name: string, kind: GeneratedKind): boolean =>
  new RegExp(`^99-.+-generated-${kind}(?:-.+)?$`).test(name);
