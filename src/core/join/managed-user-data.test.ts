import { describe, expect, test } from "vitest";
import { annotations, labels } from "../../api/names.ts";
import { encodeDataUrl } from "../../ignition/data-url.ts";
import { parseIgnition } from "../../ignition/parse-ignition.ts";
import { type UserDataFacts, managedUserData } from "./managed-user-data.ts";

const pool = (name: string, metadata: object = {}) => ({ metadata: { name, uid: `uid-${name}`, ...metadata } });
const facts: UserDataFacts = {
  hasMachineApi: true,
  pools: [pool("worker"), pool("infra")],
  controllerConfig: {
    spec: { infra: { status: { apiServerInternalURI: "https://api-int.example.com:6443" } } },
  } as never,
  machineConfiguration: undefined,
  installedAddress: undefined,
  authorities: "-----BEGIN CERTIFICATE-----\n",
};

/** The user data by the names of the Secrets. */
function written(given: Partial<UserDataFacts> = {}) {
  const decision = managedUserData({ ...facts, ...given });
  if (decision.verdict !== "keep") throw new Error(`${decision.verdict}, and not kept`);
  return Object.fromEntries(
    decision.secrets.map(({ metadata, data }) => [
      metadata.name,
      JSON.parse(atob(data?.["userData"] ?? "")) as unknown,
    ]),
  );
}

const sourceIn = (pointer: unknown) =>
  (pointer as { ignition: { config: { merge: readonly { source: string }[] } } }).ignition.config.merge[0]?.source;

describe("the user data of machines that the machine API makes", () => {
  test("points each pool's machines to its configuration, and belongs to the pool [managed-user-data-1]", () => {
    const decision = managedUserData(facts);
    expect(decision).toMatchObject({
      verdict: "keep",
      secrets: [
        {
          metadata: {
            name: "worker-user-data-managed",
            namespace: "openshift-machine-api",
            labels: { [labels.managedUserData]: "" },
            ownerReferences: [{ kind: "MachineConfigPool", name: "worker", uid: "uid-worker" }],
          },
          type: "Opaque",
          data: { disableTemplating: btoa("true\n") },
        },
        { metadata: { name: "infra-user-data-managed" } },
      ],
    });
    const pointer = written()["infra-user-data-managed"];
    expect(parseIgnition(pointer)).toMatchObject({ verdict: "valid", warnings: [] });
    expect(sourceIn(pointer)).toBe("https://api-int.example.com:22623/config/infra");
    expect(JSON.stringify(pointer)).not.toContain("Authorization");
    const trusted = { certificateAuthorities: [{ source: encodeDataUrl(facts.authorities ?? "") }] };
    expect(pointer).toMatchObject({ ignition: { security: { tls: trusted } } });
  });

  test("follows the address that an administrator writes, and else the one of the installation [managed-user-data-2]", () => {
    const machineConfiguration = {
      metadata: { name: "cluster", annotations: { [annotations.configServerAddress]: "join.example.com:443" } },
    };
    expect(sourceIn(written({ machineConfiguration })["worker-user-data-managed"])).toBe(
      "https://join.example.com:443/config/worker",
    );
    const plain = { controllerConfig: { spec: {} } as never, installedAddress: "192.0.2.7" };
    expect(sourceIn(written(plain)["worker-user-data-managed"])).toBe("https://192.0.2.7:22623/config/worker");
  });

  test("is not made for pools that go, nor for names that no machine joins by [managed-user-data-3]", () => {
    const pools = [pool("going", { deletionTimestamp: "2030-01-01T00:00:00Z" }), pool("a".repeat(253)), pool("worker")];
    expect(Object.keys(written({ pools }))).toEqual(["worker-user-data-managed"]);
  });

  test.for<{ what: string; given: Partial<UserDataFacts>; is: object }>([
    { what: "no machine API", given: { hasMachineApi: false, authorities: undefined }, is: { verdict: "nowhere" } },
    { what: "no authority yet", given: { authorities: undefined }, is: { verdict: "waiting" } },
    { what: "no settings yet", given: { controllerConfig: undefined }, is: { verdict: "waiting" } },
    {
      what: "no address",
      given: { controllerConfig: { spec: {} } as never },
      is: { verdict: "refused", message: expect.stringContaining(annotations.configServerAddress) as string },
    },
  ])("with $what: $is.verdict [managed-user-data-4]", ({ given, is }) => {
    expect(managedUserData({ ...facts, ...given })).toMatchObject(is);
  });
});
