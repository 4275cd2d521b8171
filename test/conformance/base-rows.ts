import { type Section, inFile, ours, same, skip } from "./row-kit.ts";

/** How members become one configuration (C1.3 to C1.7), and what every machine starts from (C2). */
const rendersPool = inFile("src/core/render/render-pool.test.ts", "renderPool");
const hashed = inFile("src/core/render/render-pool.test.ts", "yamlForHash");
const vectors = inFile("test/vectors/vectors.test.ts", "the answers of the reference");
const base = inFile("src/controller/controllers.test.ts", "base configurations and rendering");
const bases = inFile("src/core/render/controller-config-of.test.ts", "base configurations");
const configs = inFile("src/core/render/controller-config-of.test.ts");

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
        rendersPool(
          "a member with an invalid config is refused",
          "an unknown kernel type is refused",
          "an unknown extension beside a config is refused",
        ),
      ),
      same(
        "C1.3 extensions alone",
        "Extensions of a member without an Ignition part are not refused, but warned of.",
        rendersPool("an unknown extension without a config renders, and is a warning"),
      ),
      same(
        "C1.4 order",
        "Members of worker first, then the others, each by the bytes of their names.",
        rendersPool("worker's members come first, then the others, each by the bytes of their names"),
      ),
      same(
        "C1.4 fields",
        "Arguments and extensions are strung together, FIPS stays on, an explicit default kernel resets nothing, the last image of a person wins.",
        rendersPool(
          "lists are strung together, an explicit default kernel resets nothing, FIPS stays on",
          "an image of a person's member replaces the cluster's, one of a generated member does not",
        ),
      ),
      same(
        "C1.4 refused",
        "kernel-devel with another kernel, an image beside a stream, a member without labels: refused.",
        rendersPool(
          "kernel-devel with another kernel is refused",
          "an image beside an OS stream is refused",
          "a member without labels is refused",
        ),
      ),
      same(
        "C1.5 versions",
        "Ignition 2.x and 3.x become 3.5 as the reference converts them.",
        vectors("every case of kind convert is answered *"),
      ),
      same(
        "C1.6 merge",
        "Ignition parts merge as the reference merges them, the order in which members are read makes no difference.",
        vectors("every case of kind render is answered a*"),
        rendersPool("the order in which members come in makes no difference"),
      ),
      same(
        "C1.7 name",
        "The rendered name is the reference's, to the byte.",
        vectors("every case of kind render is answered a*"),
        hashed("different texts never give the same name"),
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
        base(
          "the ControllerConfig becomes base configurations, and pools are rendered once these are complete",
          "a base configuration that somebody deletes comes back",
        ),
      ),
      ours(
        "C2.1 second failure",
        "A second, different failure is told.",
        configs("a second, different failure is told"),
      ),
      same(
        "C2.1 certificates",
        "Certificates of the ControllerConfig are in its status.",
        configs("the status names every certificate that*"),
      ),
      same(
        "C2.1 pull secret",
        "Pull secret and trust bundle are on machines when the cluster has them.",
        bases("the pull secret and the trust bundle are there when the cluster has them, and only then"),
      ),
      ours(
        "C2.2 bytes",
        "The same inputs give the same bytes, for every role.",
        bases("the same inputs give the same bytes", "they render for both roles"),
      ),
      skip("C2.2 variants", "Trees of templates by platform.", openShift),
      skip("C2.3 language", "Go templates over the ControllerConfig.", "base configurations are functions of it"),
      skip("C2.4 list", "Every file and unit of the reference's templates.", openShift),
      ours("C2.4 units", "No base configuration runs a program.", bases("no unit runs a program")),
      skip(
        "C2.5 kubelet",
        "Kubelet settings from TLS profile, feature gates and users.",
        "the kubelet's settings are the reference's defaults; what turns them is the part of KubeletConfigs, which is not there yet",
      ),
    ],
  },
];
