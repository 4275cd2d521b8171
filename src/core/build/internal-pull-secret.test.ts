import { expect, test } from "vitest";
import { mergedPullSecret } from "./internal-pull-secret.ts";

const internal = "image-registry.openshift-image-registry.svc:5000";
const ofAccount = [JSON.stringify({ [internal]: { auth: "YTpi" }, "z.example.com": { auth: "account" } })];
const ofCluster = JSON.stringify({
  auths: { "z.example.com": { auth: "cluster" }, "a.example.com": { auth: "YTpi" } },
});

test("the puller's and the cluster's credentials are one, the internal registry's under its public name as well, in an order of their own [build-internal-pull-secret-1]", () => {
  const merged = mergedPullSecret({ ofAccount, ofCluster, baseDomain: "example.com" });
  expect(merged).toEqual({
    verdict: "merged",
    json: JSON.stringify({
      auths: {
        "a.example.com": { auth: "YTpi" },
        "default-route-openshift-image-registry.apps.example.com": { auth: "YTpi" },
        [internal]: { auth: "YTpi" },
        "z.example.com": { auth: "cluster" },
      },
    }),
  });
});

test.for([
  { title: "an empty one", ofCluster: "{}" },
  { title: "none", ofCluster: undefined },
  { title: "an empty text", ofCluster: "  " },
])(
  "$title of the cluster adds nothing, and without any there is no secret [build-internal-pull-secret-2]",
  ({ ofCluster: given }) => {
    expect(mergedPullSecret({ ofAccount: [], ofCluster: given, baseDomain: undefined })).toEqual({
      verdict: "merged",
      json: undefined,
    });
  },
);

test.for([
  { ofAccount: ["canary"], ofCluster: undefined },
  { ofAccount: [], ofCluster: "canary" },
  { ofAccount: [], ofCluster: '{"auths":"canary"}' },
  { ofAccount: ['["canary"]'], ofCluster: undefined },
])("unreadable input is refused without quoting it [build-internal-pull-secret-3]", (sources) => {
  const merged = mergedPullSecret({ ...sources, baseDomain: "example.com" });
  expect(merged.verdict).toBe("refused");
  expect(JSON.stringify(merged)).not.toContain("canary");
});
