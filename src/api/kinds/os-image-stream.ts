import Type from "typebox";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import { dnsName, listMap } from "../schema/schema.ts";
import { imageByDigest } from "../schema/image-names.ts";

/** Source: openshift/api machineconfiguration/v1 types_osimagestream.go (master). */
export const mostStreams = 100;

const status = Type.Object(
  {
    availableStreams: listMap(
      ["name"],
      Type.Object({
        name: dnsName({ description: "As the image's label io.openshift.os.streamclass has it." }),
        osImage: imageByDigest("The OS image."),
        osExtensionsImage: imageByDigest("The image with the packages of extensions."),
      }),
      { minItems: 1, maxItems: mostStreams, description: "The streams that a pool can name." },
    ),
    defaultStream: dnsName({ description: "The stream that pools without one follow; one of availableStreams." }),
  },
  {
    "x-kubernetes-validations": [
      {
        rule: "self.availableStreams.exists(s, s.name == self.defaultStream)",
        message: "defaultStream must be the name of one of availableStreams",
      },
    ],
  },
);
const isSingleton = {
  rule: "self.metadata.name == 'cluster'",
  message: "there is one OSImageStream, and its name is cluster",
};
const isNoStream = "spec.defaultStream must be the name of one of status.availableStreams";

/** Source of names, limits and rules: openshift/api machineconfiguration/v1 (master) and its tests of this kind. */
export const OSImageStream = defineResource({
  kind: "OSImageStream",
  plural: "osimagestreams",
  version: "v1",
  scope: "Cluster",
  description:
    "The operating systems that pools can choose from: each stream is an OS image and its image with extensions.",
  spec: Type.Object({
    defaultStream: dnsName({ description: "The stream of pools that name none." }),
  }),
  status,
  rules: [
    isSingleton,
    {
      rule: "self.spec.defaultStream == oldSelf.spec.defaultStream || !has(self.status) || !has(self.status.availableStreams) || self.status.availableStreams.exists(s, s.name == self.spec.defaultStream)",
      message: isNoStream,
      // The API server refuses a list of all names: its estimate of what that may cost is beyond the budget.
      messageExpression:
        "'spec.defaultStream: there is no stream ' + self.spec.defaultStream + '; status.availableStreams lists those that there are'",
    },
  ],
  former: [
    {
      version: "v1alpha1",
      spec: Type.Object(
        { defaultStream: Type.Optional(dnsName({ description: "The stream of pools that name none." })) },
        {
          "x-kubernetes-validations": [
            {
              rule: "!has(oldSelf.defaultStream) || has(self.defaultStream)",
              message: "defaultStream must not be removed once it is set",
            },
          ],
        },
      ),
      status,
      rules: [
        isSingleton,
        {
          rule: "!has(self.spec.defaultStream) || (has(oldSelf.spec.defaultStream) && self.spec.defaultStream == oldSelf.spec.defaultStream) || !has(self.status) || self.status.availableStreams.exists(s, s.name == self.spec.defaultStream)",
          message: isNoStream,
        },
      ],
    },
  ],
  columns: [
    { name: "Default", type: "string", jsonPath: ".status.defaultStream", description: "Stream of pools without one." },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp", description: "Time since creation." },
  ],
});
export type OSImageStream = ResourceOf<typeof OSImageStream>;
/** One stream of `status.availableStreams`. */
export type StreamImages = NonNullable<OSImageStream["status"]>["availableStreams"][number];
