import Type from "typebox";

/**
 * Names of images in objects. Source of limits and forms: openshift/api machineconfiguration/v1/types.go (master).
 *
 * What the reference takes is taken, capital letters included. Beyond it, a name may have any number of folders and a
 * host without a dot, because registries with nested projects, and those of one machine, have such names.
 */
const longestImageName = 447;

const digestRule = {
  rule: "self.matches('^[^@]*@sha256:[a-f0-9]{64}$')",
  message:
    "the image must be named by its digest, host/path@sha256: and 64 lowercase hexadecimal digits; skopeo inspect --format {{.Digest}} docker://IMAGE prints them",
};
const hostRule = {
  rule: "self.matches('^(localhost|([a-zA-Z0-9-]+[.])+[a-zA-Z0-9-]+|[a-zA-Z0-9.-]+:[0-9]{1,5})(:[0-9]{1,5})?(/[a-zA-Z0-9_.-]*)+(@|$)')",
  message:
    "the name before the @ must be host[:port]/path, with the registry's host and without a tag: registry.example.com/path@sha256:…",
};

const domainRule = {
  rule: "self.matches('^([a-zA-Z0-9-]+[.])+[a-zA-Z0-9-]+(:[0-9]{2,5})?(/[a-zA-Z0-9_.-]*)+(@|$)')",
  message: "the name before the @ must begin with a host name that has a dot: registry.example.com/path@sha256:…",
};

/**
 * An image by its digest.
 *
 * @param domainOnly the image must be reachable from everywhere: the host has a dot, so that localhost is none.
 */
export const imageByDigest = (description?: string, { domainOnly = false }: { readonly domainOnly?: boolean } = {}) =>
  Type.String({
    minLength: 1,
    maxLength: longestImageName,
    ...(description === undefined ? {} : { description }),
    "x-kubernetes-validations": [digestRule, domainOnly ? domainRule : hostRule],
  });

/** A repository with a tag. */
export const imageByTag = (description: string) =>
  Type.String({
    minLength: 1,
    maxLength: longestImageName,
    description,
    "x-kubernetes-validations": [
      {
        rule: "self.matches('^([a-zA-Z0-9-]+[.])*[a-zA-Z0-9-]+(:[0-9]+)?(/[a-zA-Z0-9_.-]+)+:[a-zA-Z0-9._-]+$') || self.matches('^[^.]+[.][^.]+[.]svc:[0-9]+/[^/]+/[^/]+:[^/]+$')",
        message: "must be host[:port]/path:tag, such as registry.example.com/images/worker:latest",
      },
    ],
  });
