/**
 * How containers of the suite are confined: the *restricted* profile of Kubernetes' Pod Security Standards, a read-only
 * root file system, and a numeric user. A template departs from it only with a reason beside the departure; the closed
 * list of these templates is in docs/pod-security.md.
 */

/** The default user and group of processes: `nobody` of the suite's image. */
const nobody = 65534;

/** The security context of a container. The API process of a component writes no file, so no volume is writable. */
export const restrictedContainer = {
  runAsNonRoot: true,
  runAsUser: nobody,
  runAsGroup: nobody,
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ["ALL"] },
  seccompProfile: { type: "RuntimeDefault" },
} as const;

/**
 * Requests and limits of a container. A process above its memory limit is ended and started again; it holds nothing that
 * it cannot read again.
 */
export const resourcesOf = (cpu: string, memory: string, memoryLimit: string) => ({
  requests: { cpu, memory },
  limits: { memory: memoryLimit },
});

/**
 * Labels of a namespace that say how its pods are held: the namespace admits the privileged ones among the suite's pods,
 * and its API server warns of each pod that is not restricted, and notes it in its audit log.
 */
export const podSecurityLabels = (enforced: "privileged" | "restricted"): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries({ enforce: enforced, warn: "restricted", audit: "restricted" }).flatMap(([mode, level]) => [
      [`pod-security.kubernetes.io/${mode}`, level],
      [`pod-security.kubernetes.io/${mode}-version`, "latest"],
    ]),
  );
