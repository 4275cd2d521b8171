import { pathSegment } from "../images/image-reference.ts";

// A scope of registries.conf is a repository, a host with or without port, or `*.` and a domain.

/** Whether everything in `inner` is in `outer`, too. Source: openshift/runtime-utils pkg/registries (main). */
export function isNested(inner: string, outer: string): boolean {
  if (inner === outer || inner.startsWith(`${outer}/`)) return true;
  if (!outer.startsWith("*.")) return false;
  const [host = ""] = inner.split("/", 1);
  return host.replace(/:\d*$/, "").endsWith(outer.slice(1));
}

/**
 * Looks for the scopes of a list that everything in another scope is in, too ({@link isNested}); the time for one does not
 * grow with the list. The longest come first, and of the same length those that stand first in the list.
 */
export function outerScopes(scopes: Iterable<string>): (inner: string) => readonly string[] {
  const order = new Map<string, number>();
  for (const scope of scopes) if (!order.has(scope)) order.set(scope, order.size);
  // Of a long path, only parts that may be in the list are cut out.
  const lengths = new Set([...order.keys()].map(({ length }) => length));
  return (inner) => {
    const found = new Set(order.has(inner) ? [inner] : []);
    for (let at = inner.indexOf("/"); at >= 0; at = inner.indexOf("/", at + 1))
      if (lengths.has(at) && order.has(inner.slice(0, at))) found.add(inner.slice(0, at));
    const host = (inner.split("/", 1)[0] ?? "").replace(/:\d*$/, "");
    for (let at = host.indexOf("."); at >= 0; at = host.indexOf(".", at + 1)) {
      const domain = lengths.has(host.length - at + 1) ? `*${host.slice(at)}` : undefined;
      if (domain !== undefined && order.has(domain)) found.add(domain);
    }
    return [...found].sort(
      (one, other) => other.length - one.length || (order.get(one) ?? 0) - (order.get(other) ?? 0),
    );
  };
}

/**
 * Whether the images of a policy's scope are all in `outer`. Unlike other scopes, it may name one image by its tag or
 * digest, which container engines look up before any wider scope (containers-policy.json(5)).
 */
export function isPolicyNested(scope: string, outer: string): boolean {
  if (isNested(scope, outer)) return true;
  const name = scope.lastIndexOf("/") + 1;
  const length = name === 0 ? -1 : scope.slice(name).search(/[:@]/);
  return length >= 0 && isNested(scope.slice(0, name + length), outer);
}

/** Why a scope of a list of registries is refused; `undefined`: it is not. */
export function scopeProblem(scope: string): string | undefined {
  if (scope === "") return "must not be empty";
  if (!scope.includes("*")) return undefined;
  return scope.startsWith("*.") && !/[/@:*]/.test(scope.slice(2)) && scope.length > 2
    ? undefined
    : "may hold '*' only at its begin, before a domain: *.example.com";
}

const label = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
const repository = `${label}(?:\\.${label})*(?::[0-9]+)?(?:/${pathSegment})*`;
const sourcePattern = new RegExp(`^(?:\\*(?:\\.${label})+|${repository})$`);
const mirrorPattern = new RegExp(`^${repository}$`);

/** Source of the patterns: openshift/api config/v1/types_image_digest_mirror_set.go (master). */
export const isMirrorSource = (text: string): boolean => sourcePattern.test(text);
export const isRepository = (text: string): boolean => mirrorPattern.test(text);
