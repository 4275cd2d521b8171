import { type Section, tests, ours, same, skip } from "./define-rows.ts";

const openShift =
  "files and units of OpenShift's platforms, networks and load balancers carry images and scripts of its payload; the base configurations here are what machines need on any Kubernetes";

export const baseRules: readonly Section[] = [
  {
    id: "C1.3",
    title: "Rendering: members, merge and name",
    rows: [
      same(
        "C1.3 checks",
        "Kernel type, extensions, the Ignition part and modes of files are checked member by member.",
        tests("render-pool-1"),
      ),
      same(
        "C1.3 extensions alone",
        "Extensions of a member without an Ignition part yield a warning, not a refusal.",
        tests("render-pool-2"),
      ),
      same(
        "C1.4 order",
        "Members of worker first, then the others, each by the bytes of their names.",
        tests("render-pool-3"),
      ),
      same(
        "C1.4 fields",
        "Arguments and extensions are concatenated, FIPS stays on, an explicit default kernel resets nothing, the last user image wins.",
        tests("render-pool-4", "render-pool-5"),
      ),
      same(
        "C1.4 refused",
        "kernel-devel with another kernel, an image beside a stream, a member without labels: refused.",
        tests("render-pool-1"),
      ),
      same("C1.5 versions", "Ignition 2.x and 3.x become 3.5 as the reference converts them.", tests("vectors-1")),
      same(
        "C1.6 merge",
        "Ignition parts merge as in the reference, regardless of the order in which members are read.",
        tests("vectors-1"),
        tests("render-pool-6"),
      ),
      same(
        "C1.7 name",
        "The rendered name is the reference's, to the byte.",
        tests("vectors-1"),
        tests("render-pool-7"),
      ),
    ],
  },
  {
    id: "C2",
    title: "Base configurations from the ControllerConfig",
    rows: [
      same(
        "C2.1 sync",
        "Base configurations follow the ControllerConfig, deleted ones are restored, and the status is running, completed or failing.",
        tests("controllers-2", "controllers-3"),
      ),
      ours("C2.1 second failure", "A second, different failure is reported.", tests("render-controller-config-of-1")),
      same(
        "C2.1 certificates",
        "Certificates of the ControllerConfig are in its status.",
        tests("render-controller-config-of-2"),
      ),
      same(
        "C2.1 pull secret",
        "Machines get the pull secret and the trust bundle when the cluster has them.",
        tests("render-controller-config-of-3"),
      ),
      ours(
        "C2.1 proxy",
        "Behind a proxy, the engine, the kubelet and rpm-ostree have its variables; only root reads them.",
        tests("proxy-files-1", "proxy-files-2", "proxy-files-4"),
      ),
      ours(
        "C2.2 bytes",
        "The same inputs give the same bytes, for every role.",
        tests("render-controller-config-of-4", "render-controller-config-of-5"),
      ),
      skip("C2.2 variants", "Trees of templates by platform.", openShift),
      skip("C2.3 language", "Go templates over the ControllerConfig.", "base configurations are functions of it"),
      skip("C2.4 list", "Every file and unit of the reference's templates.", openShift),
      ours("C2.4 units", "No base configuration runs a program.", tests("render-controller-config-of-6")),
      ours(
        "C2.5 kubelet",
        "A kubelet starts with the base configuration of every role: it holds no field that needs a gate.",
        tests("judge-settings-1"),
      ),
      ours(
        "C2.5 kubeadm",
        "On clusters of kubeadm the kubelet's settings begin with kubeadm's and go where kubeadm has them; no kubeconfig that somebody else wrote is replaced.",
        tests(
          "render-controller-config-of-28",
          "controllers-19",
          "decide-kubelet-config-10",
          "daemon-update-kubeconfig-1",
        ),
      ),
    ],
  },
  {
    id: "C6",
    title: "KubeletConfigs, and the cluster's own settings of kubelets",
    rows: [
      same(
        "C6.1 base",
        "A generated kubelet.conf begins with the base of the pool's role, with the cluster's gates, TLS and latency profile; custom pools have the base of workers.",
        tests("settings-controllers-4", "settings-controllers-7"),
      ),
      same(
        "C6.2 97",
        "The config Node gives every pool a config, and the pools of the cluster the kernel arguments of cgroup v2.",
        tests("settings-controllers-7"),
      ),
      ours(
        "C6.3 98",
        "The FeatureGate gives every pool a config. Gates that the cluster's operator lists are taken as they are; of those that only the spec names, a kubelet's own.",
        tests("settings-controllers-7", "decide-kubelet-config-9"),
      ),
      ours(
        "C6.3 TLS",
        "A change of the API server's TLS profile reaches every pool's kubelets without a KubeletConfig: in 97 and 98, and in 96 where the cluster has neither a config Node nor a FeatureGate.",
        tests("settings-controllers-8", "settings-controllers-9"),
      ),
      same(
        "C6.4 make",
        "A KubeletConfig becomes one MachineConfig for each pool that it selects, which it owns and holds by a finalizer.",
        tests("settings-controllers-1", "decide-kubelet-config-1"),
      ),
      ours(
        "C6.4 validation",
        "An object is refused when kubelet 1.34 would refuse the merged file; what it made before stays.",
        tests("settings-controllers-2", "decide-kubelet-config-2", "judge-settings-2"),
      ),
      ours(
        "C6.4 names",
        "Names come from the object's identity, without a limit of ten; those of the reference are kept.",
        tests("decide-kubelet-config-5", "decide-kubelet-config-8"),
      ),
      ours(
        "C6.4 several",
        "Of several objects for one pool the newest decides, and the others say so.",
        tests("settings-controllers-3", "decide-kubelet-config-4"),
      ),
      ours(
        "C6.4 current",
        "A change of the cluster's gates or profiles, or of a pool's labels, reaches every object; nothing is made again that is current.",
        tests("settings-controllers-4", "settings-controllers-7"),
      ),
      ours(
        "C6.4 annotations",
        "Labels and annotations that others put on generated objects stay, and nobody else's MachineConfig is overwritten or deleted.",
        tests("settings-controllers-1", "settings-controllers-5", "decide-kubelet-config-7"),
      ),
      ours(
        "C6.4 without effect",
        "The object says which of its fields change nothing.",
        tests("decide-kubelet-config-3", "judge-settings-2"),
      ),
    ],
  },
  {
    id: "C7.1",
    title: "ContainerRuntimeConfigs",
    rows: [
      same("C7.1 files", "Each field has its drop-in, and storage has its file.", tests("settings-controllers-6")),
      ours("C7.1 refused", "A wrong value is refused with its field.", tests("judge-settings-3")),
      ours(
        "C7.1 OS image",
        "A plan reads the OS image for a container runtime or a cgroup version that a change newly needs of it, and names the machines that would break; the API server warns of the choice.",
        tests(
          "os-image-demands-1",
          "os-image-demands-2",
          "os-image-demands-4",
          "judge-os-images-1",
          "judge-settings-3",
        ),
      ),
    ],
  },
];
