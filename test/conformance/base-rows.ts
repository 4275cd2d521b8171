import { type Section, tests, ours, same, skip } from "./define-rows.ts";

const openShift =
  "files and units of OpenShift's platforms, networks and load balancers carry images and scripts of its payload; the base configurations here are what machines need on any Kubernetes";

export const baseRules: readonly Section[] = [
  {
    id: "C1.3",
    title: "Rendering: members, their merge, and the name",
    rows: [
      same(
        "C1.3 checks",
        "Kernel type, extensions, the Ignition part and modes of files are checked member by member.",
        tests("render-pool-1"),
      ),
      same(
        "C1.3 extensions alone",
        "Extensions of a member without an Ignition part are not refused, but warned of.",
        tests("render-pool-2"),
      ),
      same(
        "C1.4 order",
        "Members of worker first, then the others, each by the bytes of their names.",
        tests("render-pool-3"),
      ),
      same(
        "C1.4 fields",
        "Arguments and extensions are strung together, FIPS stays on, an explicit default kernel resets nothing, the last image of a person wins.",
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
        "Ignition parts merge as the reference merges them, the order in which members are read makes no difference.",
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
        "Base configurations follow the ControllerConfig, one that somebody deletes comes back, and the status says running, completed or failing.",
        tests("controllers-2", "controllers-3"),
      ),
      ours("C2.1 second failure", "A second, different failure is told.", tests("render-controller-config-of-1")),
      same(
        "C2.1 certificates",
        "Certificates of the ControllerConfig are in its status.",
        tests("render-controller-config-of-2"),
      ),
      same(
        "C2.1 pull secret",
        "Pull secret and trust bundle are on machines when the cluster has them.",
        tests("render-controller-config-of-3"),
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
      skip(
        "C2.5 kubelet",
        "Kubelet settings from TLS profile, feature gates and users.",
        "the kubelet's settings are the reference's defaults; what turns them is the part of KubeletConfigs, which is not there yet",
      ),
    ],
  },
];
