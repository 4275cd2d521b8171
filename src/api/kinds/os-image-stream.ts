import Type from "typebox";
import { type ResourceOf, defineResource } from "../schema/define-resource.ts";
import { dnsName, listMap } from "../schema/schema.ts";
import { imageNameRule } from "./pinned-image-set.ts";

/** Source: openshift/api machineconfiguration/v1 types_osimagestream.go (master). */
export const mostStreams = 100;

const imageByDigest = (description: string) =>
  Type.Unsafe<string>({
    type: "string",
    minLength: 1,
    maxLength: 447,
    description,
    "x-kubernetes-validations": [
      {
        rule: "self.matches('^[^@]*@sha256:[a-f0-9]{64}$')",
        message: "an image of a stream is named by its digest: host/path@sha256: and 64 lowercase hexadecimal digits",
      },
      {
        rule: imageNameRule,
        message: "the name before the @ is host[:port]/path, without a tag",
      },
    ],
  });

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
  status: Type.Object(
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
  ),
  rules: [
    { rule: "self.metadata.name == 'cluster'", message: "there is one OSImageStream, and its name is cluster" },
    {
      rule: "self.spec.defaultStream == oldSelf.spec.defaultStream || !has(self.status) || !has(self.status.availableStreams) || self.status.availableStreams.exists(s, s.name == self.spec.defaultStream)",
      message: "spec.defaultStream must be the name of one of status.availableStreams",
      // The API server refuses a list of all names: its estimate of what that may cost is beyond the budget.
      messageExpression:
        "'spec.defaultStream: there is no stream ' + self.spec.defaultStream + '; status.availableStreams lists those that there are'",
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
