import Type from "typebox";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import { imageByDigest } from "../schema/image-names.ts";
import { conditionList, listMap } from "../schema/schema.ts";

const releaseName = () =>
  Type.String({
    minLength: 1,
    maxLength: 64,
    description: "Name of the bundle, such as ocp-release-bundle-4.20.1-x86_64.",
    "x-kubernetes-validations": [
      {
        rule: "self.matches('^ocp-release-bundle-[0-9]+[.][0-9]+[.][0-9]+-[A-Za-z0-9._-]+$')",
        message:
          "must be ocp-release-bundle-VERSION-ARCHITECTURE, such as ocp-release-bundle-4.20.1-x86_64, of at most 64 characters",
      },
    ],
  });

/** What became of each release: in the whole cluster, or on one machine. */
export const releaseStatuses = (image: ReturnType<typeof imageByDigest>) =>
  listMap(
    ["name"],
    Type.Object({
      name: releaseName(),
      image: Type.Optional(image),
      conditions: Type.Optional(conditionList({ minItems: 1, maxItems: 5 })),
    }),
    { minItems: 1, maxItems: 32 },
  );

const spec = Type.Object({
  releases: listMap(["name"], Type.Object({ name: releaseName() }), {
    minItems: 1,
    maxItems: 16,
    description: "The releases that control-plane machines are to serve from a registry of their own.",
  }),
});
const status = (mostConditions: number) =>
  Type.Object({
    conditions: Type.Optional(conditionList({ minItems: 1, maxItems: mostConditions })),
    releases: releaseStatuses(imageByDigest("The image of the release, by its digest.", { domainOnly: true })),
  });

/** Source of names, limits and rules: openshift/api machineconfiguration/v1 and v1alpha1 (master). */
export const InternalReleaseImage = defineResource({
  kind: "InternalReleaseImage",
  plural: "internalreleaseimages",
  version: "v1",
  scope: "Cluster",
  description:
    "Releases that a cluster without a registry installs from: bundles that control-plane machines carry and serve.",
  spec,
  status: status(5),
  rules: [
    {
      rule: "self.metadata.name == 'cluster'",
      message: "must be named cluster: there is one InternalReleaseImage",
    },
  ],
  former: [{ version: "v1alpha1", spec, status: status(20) }],
});
export type InternalReleaseImage = ResourceOf<typeof InternalReleaseImage>;
