import { type Section, ours, same, tests } from "./define-rows.ts";

/**
 * Registries, mirrors and signature policies, numbered as in this suite's description of the control plane, with the
 * prefix C. Source of what the reference does: openshift/machine-config-operator pkg/controller/container-runtime-config
 * (main), openshift/runtime-utils pkg/registries (main).
 */
export const registriesOfMachines: readonly Section[] = [
  {
    id: "C7.2",
    title: "Registries, mirrors and signature policies",
    rows: [
      same(
        "C7.2 files",
        "registries.conf, policy.json, policies of namespaces, the lookaside of signatures and the search drop-in have the reference's values for all mirror sets, image policies and lists of the Image config.",
        tests("vectors-5"),
      ),
      same(
        "C7.2 pools",
        "The built-in pools get them as 99-POOL-generated-registries; machines of custom pools through the label of worker.",
        tests("registries-controller-1"),
      ),
      ours(
        "C7.2 inputs",
        "Each kind may be absent: mirror sets count without an Image config, and without a ClusterVersion there is no release to protect.",
        tests("registries-controller-1", "registries-controller-8"),
      ),
      same(
        "C7.2 base",
        "They are laid over the files of the base configuration; the Image config owns what is written.",
        tests("registries-controller-2"),
      ),
      ours(
        "C7.2 kept",
        "People's labels and annotations stay, nothing is written while nothing changes, and no generated object is deleted and made again.",
        tests("registries-controller-1", "registries-controller-3"),
      ),
      ours(
        "C7.2 refused",
        "What is wrong is told on the object by a Warning Event, and in the pool's condition RegistriesDegraded with object and field; machines keep what they have. The reference only logs it.",
        tests(
          "registries-controller-4",
          "registries-controller-5",
          "runtime-merge-mirrors-2",
          "runtime-merge-mirrors-6",
        ),
      ),
      ours(
        "C7.2 release",
        "A mirror set that leaves no place to pull the image of the release from is refused; where only mirrors are left, where a block is ignored and where the allowed registries leave it out, an Event names the image.",
        tests("registries-controller-6", "registries-controller-7"),
      ),
      ours(
        "C7.2 admission",
        "A mirror set or Image config that is wrong by itself, or cuts the cluster off from the image of its release, is refused when it is written; a contradiction to another object, a setting without effect, a release that only mirrors may hold, and what machines will do are warnings. mco validate and mco plan say the same of files.",
        tests(
          "judge-registries-1",
          "judge-registries-3",
          "mirror-warnings-1",
          "admission-registries-1",
          "admission-registries-2",
          "cli-registries-5",
          "cli-registries-7",
          "scenario-registries-6",
        ),
      ),
      ours(
        "C7.2 policies",
        "Image policies say in Applied and Pending whether machines get them, with field and remedy; a conflict of scopes is cleared when it is gone.",
        tests("registries-controller-9", "registries-controller-10"),
      ),
      ours(
        "C7.2 readers",
        "The files are read by containers/image as they are meant: mirrors, blocks, insecure registries, policies, signatures, search drop-in.",
        tests(
          "differential-registries-1",
          "differential-registries-2",
          "differential-registries-3",
          "differential-registries-4",
          "differential-registries-5",
          "differential-registries-6",
          "differential-registries-7",
          "differential-registries-8",
        ),
      ),
      ours(
        "C7.2 explained",
        "mco plan shows what an object would change and what that costs, and what is wrong with it, apart from what was wrong before; mco explain what it does, mco blame from which field a file comes.",
        tests(
          "cli-registries-1",
          "cli-registries-2",
          "cli-registries-3",
          "cli-registries-8",
          "cli-registries-9",
          "explain-registries-1",
        ),
      ),
    ],
  },
  {
    id: "C7.3",
    title: "Credential providers of the container engine",
    rows: [
      same(
        "C7.3 files",
        "Match images reach the built-in pools as 97-POOL-generated-credentialproviderconfig: in the file of the platform's provider, or in a generic file with the kubelet's drop-in.",
        tests(
          "credentials-controller-1",
          "credential-providers-4",
          "credential-providers-5",
          "credentials-controller-2",
        ),
      ),
      same(
        "C7.3 overlaps",
        "Images that overlap with those of the platform's provider are left out, and named in Validated with the reason ConfigurationPartiallyApplied.",
        tests("credential-providers-6", "credentials-controller-3"),
      ),
      ours(
        "C7.3 refused",
        "What a kubelet would not start with is not written: wrong match images, and a provider that asks for tokens while the gate for it is off. MachineConfigRendered says why, and machines keep what they have.",
        tests(
          "credential-providers-1",
          "credential-providers-2",
          "credential-providers-3",
          "credential-providers-7",
          "credentials-controller-4",
          "credentials-controller-5",
          "credentials-controller-6",
        ),
      ),
      ours(
        "C7.3 explained",
        "mco plan shows what the object changes and what that costs, mco explain what it does, mco blame from which match image a file comes.",
        tests("cli-credentials-1", "cli-credentials-2", "cli-credentials-3", "explain-credentials-1"),
      ),
    ],
  },
];
