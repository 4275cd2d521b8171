import { expect, test } from "vitest";
import { emptyNodeConfig } from "../config/node-config.ts";
import { observedAs } from "../preview/plan-cluster.ts";
import { contentGap } from "./content-gap.ts";

test.for(["constructor", "toString", "__proto__", "core"])(
  "the original password of a user named %s is recorded before the first change, and once [machine-content-gap-1]",
  (user) => {
    const target = { ...emptyNodeConfig, passwords: new Map([[user, "$6$new"]]) };
    const machine = observedAs(emptyNodeConfig, { image: "", onlyControlPlane: false });
    const recorded = { ...machine.originals, passwords: Object.fromEntries([[user, "$6$old"]]) };
    expect(contentGap(machine, target).users).toEqual([user]);
    expect(contentGap({ ...machine, originals: recorded }, target).users).toEqual([]);
    expect(contentGap({ ...machine, originals: recorded }, target).changes).toEqual([
      { kind: "password", user, op: "update" },
    ]);
  },
);
