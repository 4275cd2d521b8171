import { describe, expect, test } from "vitest";
import { ProvisioningToken } from "../../api/kinds/provisioning-token.ts";
import { tokenStay } from "./ended-tokens.ts";

const noon = Date.UTC(2030, 0, 2, 12);
const hour = 3_600_000;
const at = (hours: number) => new Date(noon + hours * hour).toISOString();
const token = (
  spec: Partial<ProvisioningToken["spec"]>,
  status: ProvisioningToken["status"] = {},
  metadata: object = {},
): ProvisioningToken => ({
  apiVersion: ProvisioningToken.apiVersion,
  kind: ProvisioningToken.kind,
  metadata: { name: "a1b2c3d4e5", creationTimestamp: at(-100), ...metadata },
  spec: { pool: "worker", tokenHash: "0".repeat(64), ...spec },
  status,
});

describe("a token", () => {
  test.for([
    {
      title: "that has a use left and no end stays at any time",
      one: token({ maxUses: 2 }, { uses: 1, lastUsedAt: at(-90) }),
      until: undefined,
    },
    { title: "that was never used stays", one: token({ maxUses: 1 }), until: undefined },
    {
      title: "that ends later is looked at a day after that",
      one: token({ expiresAt: at(5) }),
      until: noon + 29 * hour,
    },
    { title: "that has just ended stays for a day", one: token({ expiresAt: at(-1) }), until: noon + 23 * hour },
    {
      title: "that was just used up stays for a day",
      one: token({ maxUses: 1 }, { uses: 1, lastUsedAt: at(-23) }),
      until: noon + hour,
    },
    {
      title: "that is used up long before its time is looked at a day after the last use",
      one: token({ maxUses: 1, expiresAt: at(100) }, { uses: 1, lastUsedAt: at(-2) }),
      until: noon + 22 * hour,
    },
    {
      title: "that is already being deleted is left alone",
      one: token({ expiresAt: at(-50) }, {}, { deletionTimestamp: at(-1) }),
      until: undefined,
    },
    { title: "without any end is no business of anybody's here", one: token({}), until: undefined },
  ])("$title", ({ one, until }) => {
    expect(tokenStay(one, noon)).toEqual({ verdict: "stays", until });
  });

  test.for([
    {
      title: "that ended a day ago is deleted",
      one: token({ expiresAt: at(-24) }),
      because: "Expired",
      endedAt: noon - 24 * hour,
    },
    {
      title: "that was used up a day ago is deleted",
      one: token({ maxUses: 3 }, { uses: 3, lastUsedAt: at(-30) }),
      because: "UsedUp",
      endedAt: noon - 30 * hour,
    },
    {
      title: "that was used up and then expired is deleted by the earlier time",
      one: token({ maxUses: 1, expiresAt: at(-2) }, { uses: 1, lastUsedAt: at(-40) }),
      because: "UsedUp",
      endedAt: noon - 40 * hour,
    },
    {
      title: "that expired unused is deleted",
      one: token({ maxUses: 1, expiresAt: at(-25) }, { uses: 0 }),
      because: "Expired",
      endedAt: noon - 25 * hour,
    },
    {
      title: "that was used up at an unknown time is deleted by its age",
      one: token({ maxUses: 1 }, { uses: 1 }),
      because: "UsedUp",
      endedAt: noon - 100 * hour,
    },
    {
      title: "whose end cannot be read is deleted by its age",
      one: token({ expiresAt: "some day" }),
      because: "Expired",
      endedAt: noon - 100 * hour,
    },
  ])("$title", ({ one, because, endedAt }) => {
    expect(tokenStay(one, noon)).toEqual({ verdict: "goes", because, endedAt });
  });

  test("stays until exactly the time of its deletion", () => {
    const one = token({ expiresAt: at(3) });
    const stay = tokenStay(one, noon);
    if (stay.verdict !== "stays" || stay.until === undefined) throw new Error("it has an end");
    expect(tokenStay(one, stay.until - 1).verdict).toBe("stays");
    expect(tokenStay(one, stay.until).verdict).toBe("goes");
  });
});
