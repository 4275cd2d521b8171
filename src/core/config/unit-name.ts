/** Names of units: systemd.unit(5); systemd/systemd src/basic/unit-name.c (v252). */

const types = "service|socket|target|device|mount|automount|swap|timer|path|slice|scope";
const pattern = new RegExp(`^([A-Za-z0-9:_.\\\\-]+)(@([A-Za-z0-9:_.@\\\\-]*))?\\.(${types})$`);

export interface UnitName {
  readonly kind: "plain" | "template" | "instance";
  readonly prefix: string;
  readonly instance: string;
  readonly type: string;
}

/** A name taken apart; `undefined` if no unit can have it. */
export function readUnitName(name: string): UnitName | undefined {
  const match = name.length > 255 ? null : pattern.exec(name);
  if (match === null) return undefined;
  const [, prefix = "", at, instance = "", type = ""] = match;
  return { kind: at === undefined ? "plain" : instance === "" ? "template" : "instance", prefix, instance, type };
}

/** The template of an instance; the name itself otherwise. */
export function templateOf(name: string): string {
  const read = readUnitName(name);
  return read?.kind === "instance" ? `${read.prefix}@.${read.type}` : name;
}

/** The instance of a template. */
export function instanceOf(template: string, instance: string): string {
  const read = readUnitName(template);
  return read === undefined ? template : `${read.prefix}@${instance}.${read.type}`;
}

export const isInstanceName = (instance: string): boolean => /^[A-Za-z0-9:_.@\\-]+$/.test(instance);
