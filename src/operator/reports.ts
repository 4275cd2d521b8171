/**
 * Everything that the operator reports, as a function for each happening: its lines in the book of the cluster, its Events
 * and all of their texts. Callers give the facts, and pass the result to `report`.
 */
import type { Secret } from "../api/foreign/kubernetes.ts";
import type { ClusterOperator } from "../api/foreign/cluster-operator.ts";
import { defined } from "../api/schema/defined.ts";
import { type Happening, noticed } from "../kube/report.ts";

// The process

const inStart = (identity: string) => ({ book: "cluster", chapter: "Operator", run: identity, path: "Start" }) as const;

export const operatorStarted = (identity: string, version: string): Happening => ({
  ...inStart(identity),
  mark: "begin",
  reason: "Started",
  message: `the operator ${version} leads`,
  data: { version },
});

export const operatorStopped = (identity: string): Happening => ({
  ...inStart(identity),
  mark: "end",
  reason: "Stopped",
  message: "the operator leads no more",
});

// Tasks

/** @param identity of the process, if it has one. */
const inSync = (identity: string | undefined, task: string) =>
  ({
    book: "cluster",
    ...defined({ run: identity }),
    path: `Sync/${task}`,
  }) as const;

export const taskFailed = (identity: string | undefined, task: string, why: string): Happening => ({
  ...inSync(identity, task),
  mark: "fail",
  reason: "SyncFailed",
  message: `${task} fails: ${why}`,
});

export const taskRecovered = (identity: string | undefined, task: string): Happening => ({
  ...inSync(identity, task),
  mark: "end",
  reason: "SyncMended",
  message: `${task} works again`,
});

export const operatorDegraded = (operator: ClusterOperator, reason: string, message: string): Happening =>
  noticed(operator, "OperatorDegraded", `${reason}: ${message}`);

/** @param places where inputs lie that count for nothing there, and where they would count. */
export const inputsMisplaced = (operator: ClusterOperator, places: string): Happening =>
  noticed(operator, "InputNotRead", places);

export const userDataRenewed = (secret: Secret): Happening =>
  noticed(secret, "UserDataRenewed", "new machines trust the present authorities of the config server");

/** @param rotated the certificates that the config server gets. */
export const certificateRotated = (rotated: string): Happening => ({
  book: "cluster",
  // Without a run: a line of the chapter that is open, which is a server's.
  mark: "note",
  reason: "CertificateRotated",
  message: `of the config server: ${rotated}`,
});

// Versions

const inInstall = (version: string) => ({ book: "cluster", run: version }) as const;
const inUpgrade = (from: string, to: string) => ({ book: "cluster", run: `${from} to ${to}` }) as const;

export const installBegun = (version: string): Happening => ({
  ...inInstall(version),
  mark: "begin",
  reason: "InstallBegan",
  message: `${version} is being installed`,
  data: { toVersion: version },
});

/** @param isRepeated an operator before has reported it. */
export const upgradeBegun = (from: string, to: string, isRepeated: boolean): Happening => ({
  ...inUpgrade(from, to),
  mark: isRepeated ? "retry" : "begin",
  reason: "UpgradeBegan",
  message: `from ${from} to ${to}`,
  data: { fromVersion: from, toVersion: to },
});

/**
 * Everything has the operator's version.
 *
 * @param from the version before; `undefined`: it was installed.
 * @param pools that the upgrade waited for, with their configurations.
 */
export const versionReached = (
  from: string | undefined,
  version: string,
  pools: readonly { readonly name: string; readonly config: string }[],
): Happening => {
  const begun = from === undefined ? inInstall(version) : inUpgrade(from, version);
  const chapter = from === undefined ? "Install" : "Upgrade";
  const ofPools = pools.map(
    ({ name, config }) =>
      ({
        ...begun,
        chapter,
        path: `Pool/${name}`,
        mark: "end",
        reason: "AllUpdated",
        message: `pool ${name} is at ${config}`,
      }) as const,
  );
  const end = {
    ...begun,
    mark: "end",
    outcome: "Succeeded",
    message: `everything is at ${version}`,
  } as const;
  return [...ofPools, from === undefined ? { ...end, reason: "InstallDone" } : { ...end, reason: "UpgradeDone" }];
};

/** @param way the versions that the operator goes from and to, or is at. */
export const operatorVersionChanged = (operator: ClusterOperator, way: string): Happening =>
  noticed(operator, "OperatorVersionChanged", `the machine config operator is ${way}`);
