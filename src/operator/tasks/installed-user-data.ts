import { base64OfText } from "../../core/text/base64-of-text.ts";
import { type Secret, kubernetes } from "../../api/foreign/kubernetes.ts";
import { fieldManagers, machineNamespace, objects } from "../../api/names.ts";
import { keyOf } from "../../api/schema/object.ts";
import { type InstalledAuthority, decideAuthority, installedUserData } from "../../core/join/installed-user-data.ts";
import { machineApiRemedy } from "../../core/operator/decide-rights.ts";
import { isForbidden, isInvalid } from "../../kube/kube-error.ts";
import { reapplyMs } from "../apply-manifest.ts";
import { hasMachineApi, ownMap } from "../cluster-sources.ts";
import { type OperatorTask, type TaskContext, failed, taskDone } from "../operator-task.ts";
import { watchMachineApi, watchSources } from "../operator-watches.ts";
import { userDataRenewed } from "../reports.ts";

interface Found {
  readonly name: string;
  /** `undefined`: there is none; `refused`: the operator may not read it. */
  readonly secret: Secret | undefined | "refused";
}

interface View {
  /** PEM. */
  readonly authorities: string;
  readonly found: readonly Found[];
}

interface Decision {
  readonly authorities: string;
  readonly judged: readonly (Found & { readonly decision: InstalledAuthority })[];
}

const notAllowed = `the operator may not renew the authority in user data of the installer; ${machineApiRemedy}`;

/**
 * The authority of the config server in user data that the installer made. The operator does not watch these Secrets: it reads
 * them by name, at intervals and when the authority changes.
 */
export const installedUserDataTask: OperatorTask<View, Decision> = {
  name: "InstalledUserData",
  watches: [watchMachineApi, watchSources],

  async observe(context) {
    const authorities = ownMap(objects.configServerCa, context)?.data?.["ca-bundle.crt"] ?? "";
    if (!hasMachineApi(context) || authorities === "") return { authorities, found: [] };
    const due = installedUserData.filter((name) => !isRecent(name, authorities, context));
    return { authorities, found: await Promise.all(due.map((name) => read(name, context))) };
  },

  decide: ({ authorities, found }) => ({
    authorities,
    judged: found.map(({ name, secret }) => ({
      name,
      secret,
      decision:
        secret === "refused" ? { verdict: "refused", message: notAllowed } : decideAuthority(secret, authorities),
    })),
  }),

  async perform({ authorities, judged }, context) {
    const problems = new Set<string>();
    for (const { name, secret, decision } of judged) {
      const problem =
        decision.verdict === "renew" && secret !== undefined && secret !== "refused"
          ? await renew(secret, decision.userData, context)
          : decision.verdict === "refused"
            ? decision.message
            : undefined;
      if (problem !== undefined) problems.add(problem);
      else context.memory.installedUserData.set(name, { authorities, at: context.clock.monotonic() });
    }
    if (problems.has(notAllowed)) return { kind: "failed", reason: "RightsOutdated", message: notAllowed };
    return problems.size === 0 ? taskDone : failed([...problems].join("; "));
  },
};

function isRecent(name: string, authorities: string, { memory, clock }: TaskContext): boolean {
  const before = memory.installedUserData.get(name);
  return before?.authorities === authorities && clock.monotonic() - before.at < reapplyMs;
}

async function read(name: string, { kube, signal }: TaskContext): Promise<Found> {
  try {
    return { name, secret: await kube.get(kubernetes.Secret, { name, namespace: machineNamespace }, { signal }) };
  } catch (error) {
    if (isForbidden(error)) return { name, secret: "refused" };
    throw error;
  }
}

/**
 * Writes user data back if it is still what was read.
 *
 * @returns why it stays as it is.
 */
async function renew(secret: Secret, userData: string, context: TaskContext): Promise<string | undefined> {
  const { kube, report, signal } = context;
  const { resourceVersion } = secret.metadata;
  try {
    await kube.patch(
      kubernetes.Secret,
      secret.metadata,
      {
        type: "merge",
        body: {
          metadata: resourceVersion === undefined ? {} : { resourceVersion },
          data: { userData: base64OfText(userData) },
        },
      },
      { owner: fieldManagers.operator, signal },
    );
  } catch (error) {
    if (isForbidden(error)) return notAllowed;
    if (!isInvalid(error)) throw error;
    return `the Secret ${keyOf(secret)} does not trust the present authorities of the config server, since the API server refuses the change: ${error.message}; let machines start from the Secret ${secret.metadata.name}-managed, or create this one again with the key userData of that one`;
  }
  report(userDataRenewed(secret));
  return undefined;
}
