import { base64OfText } from "../text/base64-of-text.ts";
import type { Secret } from "../../api/foreign/kubernetes.ts";
import type { ControllerConfig } from "../../api/kinds/controller-config.ts";
import { MachineConfigPool } from "../../api/kinds/machine-config-pool.ts";
import type { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import { annotations, labels, machineNamespace, objects } from "../../api/names.ts";
import { longestObjectName } from "../../api/schema/object.ts";
import { configServerAuthority, pointerConfig, withPort } from "./pointer-config.ts";

export interface UserDataFacts {
  /** Whether the cluster has the namespace of the machine API. */
  readonly hasMachineApi: boolean;
  readonly pools: readonly Pick<MachineConfigPool, "metadata">[];
  readonly controllerConfig: Pick<ControllerConfig, "spec"> | undefined;
  readonly machineConfiguration: Pick<MachineConfiguration, "metadata"> | undefined;
  /** `host` or `host:port` that machines got when the suite was installed. */
  readonly installedAddress: string | undefined;
  /** PEM; `undefined` until the operator has published them. */
  readonly authorities: string | undefined;
}

export type UserDataDecision =
  | { readonly verdict: "nowhere" }
  | { readonly verdict: "waiting"; readonly message: string }
  | { readonly verdict: "refused"; readonly message: string }
  | { readonly verdict: "keep"; readonly secrets: readonly Secret[] };

/**
 * Decides which user data the machine API finds for the machines of each pool. It holds no credential: a Secret that many
 * machines start from outlives any token that it could hold. Names and keys: openshift/machine-config-operator
 * manifests/userdata_secret.yaml (main).
 */
export function managedUserData(facts: UserDataFacts): UserDataDecision {
  const { hasMachineApi, pools, controllerConfig, installedAddress, authorities } = facts;
  if (!hasMachineApi) return { verdict: "nowhere" };
  if (authorities === undefined || authorities === "")
    return { verdict: "waiting", message: "user data waits for the authority of the config server" };
  const server =
    configServerAuthority(facts) ?? (installedAddress === undefined ? undefined : withPort(installedAddress));
  if (server === undefined)
    return controllerConfig === undefined
      ? { verdict: "waiting", message: "user data waits for the address of the config server" }
      : {
          verdict: "refused",
          message: `the address at which machines reach the config server is unknown, and ${machineNamespace} gets no user data: write it into the annotation ${annotations.configServerAddress} of MachineConfiguration ${objects.machineConfiguration}`,
        };
  return {
    verdict: "keep",
    secrets: pools
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .map((pool) => secretOf(pool, { server, authorities }))
      // No machine joins a pool of a longer name.
      .filter(({ metadata }) => metadata.name.length <= longestObjectName),
  };
}

function secretOf(
  { metadata: { name: pool, uid } }: Pick<MachineConfigPool, "metadata">,
  { server, authorities }: { readonly server: string; readonly authorities: string },
): Secret {
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      name: `${pool}${objects.userDataSuffix}`,
      namespace: machineNamespace,
      labels: { [labels.managedUserData]: "" },
      ...(uid === undefined
        ? {}
        : {
            ownerReferences: [
              { apiVersion: MachineConfigPool.apiVersion, kind: MachineConfigPool.kind, name: pool, uid },
            ],
          }),
    },
    type: "Opaque",
    data: {
      // The machine API of some platforms would else read the user data as a template.
      disableTemplating: base64OfText("true\n"),
      userData: base64OfText(JSON.stringify(pointerConfig({ server, pool, token: undefined, authorities }))),
    },
  };
}
