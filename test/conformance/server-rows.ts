import { type Section, better, inFile, ours, same, skip } from "./row-kit.ts";

/**
 * The config server, in the numbering of the reference's behaviour as it was written down for this suite: network (2),
 * requests (3), versions (4), which configuration (5), what is added (6), bootstrap (7), conversions (8). `N*` are the
 * weak points that are not repeated; `join *` is what this suite promises for machines that join.
 *
 * Source of what the reference does: openshift/machine-config-operator pkg/server (main).
 */
const answers = inFile("src/server/served-answers.test.ts", "what is answered");
const anew = inFile("src/server/served-answers.test.ts", "what has changed is answered anew");
const bootstrap = inFile("src/server/bootstrap.test.ts", "a folder in place of a cluster");
const bootstrapCommand = inFile("src/server/bootstrap.test.ts", "mco server bootstrap");
const paths = inFile("src/server/hardening.test.ts", "paths lead where they say, or nowhere");
const floods = inFile("src/server/hardening.test.ts", "floods");
const hardening = inFile("src/server/hardening.test.ts");
const tls = inFile("src/server/listener.test.ts", "TLS");
const bounded = inFile("src/server/listener.test.ts", "what reaches the port is bounded");
const listener = inFile("src/server/listener.test.ts");
const served = inFile("src/server/tokens.test.ts", "who is served");
const secrets = inFile("src/server/tokens.test.ts");
const kept = inFile("src/server/answers.test.ts", "answers that are kept ready");
const uses = inFile("src/server/credentials.test.ts", "uses of a token");
const limits = inFile("src/server/limits.test.ts");
const told = inFile("src/server/tell-requests.test.ts");
const choice = inFile("src/core/join/choose-served.test.ts", "chooseServed");
const config = inFile("src/core/join/served-config.test.ts", "what a machine is served");
const versions = inFile("src/core/join/negotiate-version.test.ts", "negotiateVersion");
const conversions = inFile("src/ignition/convert-ignition.test.ts");
const tokens = inFile("src/core/join/provisioning-token.test.ts");
const tokenCommands = inFile("src/cli/token-commands.test.ts");
const profiles = inFile("src/core/certificates/tls-profile.test.ts");
const csr = inFile("src/core/join/judge-csr.test.ts", "judgeCsr");
const joins = inFile("src/controller/join-controller.test.ts", "machines that join");
const authority = inFile("src/core/certificates/authority-rotation.test.ts", "an authority");
const address = inFile("src/core/join/config-server.test.ts", "the config server of a cluster");

export const configServer: readonly Section[] = [
  {
    id: "server 2",
    title: "The config server: network and TLS",
    rows: [
      better(
        "N1",
        "server 2 plain",
        "Nothing but TLS is spoken: the reference serves everything on a plain port as well.",
        tls("who speaks no TLS is not spoken to"),
      ),
      same(
        "server 2 HTTP",
        "HTTP/1.1 alone is spoken.",
        tls("1.2 and 1.3 are spoken, nothing older, and HTTP/1.1 alone"),
      ),
      better(
        "N14",
        "server 2 profile",
        "The cluster's TLS profile is followed by explicit tables; nothing below 1.2, and an empty list is refused with the reason.",
        profiles("tlsOfProfile > *", "tlsOfFlags > *"),
        tls("Modern speaks 1.3 alone, and a list of ciphers is kept to"),
        bootstrapCommand("the cluster's TLS profile is followed, and one that cannot be is refused"),
      ),
      same(
        "server 2 swap",
        "A certificate that is replaced on the disk is shown without a restart; connections go on.",
        hardening(
          "a certificate that is replaced on the disk is shown without a restart, and a connection that is open goes on",
        ),
        tls(
          "a new certificate is shown to new connections, and those that there are go on",
          "a certificate with the key of another is refused, and the one before stays",
        ),
      ),
      better(
        "N11",
        "server 2 limits",
        "Time, bytes and number of what reaches the port are bounded, and stopping lets answers end.",
        bounded("*"),
        floods("*"),
        limits("*"),
        listener(
          "closing takes no new connections, and lets an answer under way end",
          "closing does not wait for ever",
        ),
      ),
      ours(
        "server 2 authority",
        "The server's authority has its successor believed in long before that signs.",
        authority("*"),
      ),
      ours(
        "server 2 names",
        "Its certificate holds every name and address that machines are told.",
        address("is vouched for by every name and address that machines are told"),
      ),
    ],
  },
  {
    id: "server 3",
    title: "The config server: requests",
    rows: [
      better(
        "N4",
        "server 3 codes",
        "Every status says why, in a body without secrets: 400, 401, 403, 404, 405, 429, 503.",
        answers("every status that there is, each with a body that says why"),
        secrets("no secret is in a refusal, a log or a story"),
      ),
      same(
        "server 3 HEAD",
        "HEAD is GET without a body.",
        answers("HEAD says what GET would, without a body, and uses nothing up"),
      ),
      better(
        "N16",
        "server 3 routes",
        "Only the exact route leads to a configuration.",
        paths(
          "with a token that opens everything there is to open",
          "asked for from outside, every path says the same whether there is such a pool or not",
        ),
      ),
      better(
        "N10",
        "server 3 ready",
        "Ready is who has read everything, can make every pool's answer, and has a good certificate.",
        answers("every status that there is, each with a body that says why"),
        hardening("a server whose certificate has ended is not ready, and says that it ends before"),
        bootstrap("is not ready with *"),
      ),
      ours(
        "server 3 again",
        "What a client has is not sent again; compressed where it takes that.",
        answers("what a client has already is not sent again, and uses nothing up", "with Accept-Encoding *"),
      ),
      better(
        "N13",
        "server 3 told",
        "Each answer is a line in the journal: whom, what, which version, how large, how long.",
        told(
          "each answer is a line, with who got what; more than anybody can read are a number",
          "refusals that go on are told more and more seldom, and none of them is lost",
        ),
      ),
    ],
  },
  {
    id: "server 4",
    title: "The config server: versions",
    rows: [
      same("server 4 table", "What an Accept header gets, line by line.", versions("*"), answers("*")),
      better(
        "N16",
        "server 4 departures",
        "3.0.0 is refused, q=0 means never, and the main type counts.",
        versions("*"),
      ),
    ],
  },
  {
    id: "server 5",
    title: "The config server: which configuration",
    rows: [
      better(
        "N7",
        "server 5 chosen",
        "The newest configuration once a machine has proven it, by a count that belongs to it; else the one before.",
        choice("a machine gets *", "a machine has to wait while *", "says why in words"),
      ),
      better(
        "N15",
        "server 5 image",
        "The pool's image at the first boot, if it is proven, of this configuration, and in reach of a machine that has not joined.",
        choice("of a pool that boots images > *"),
        config("with an image > *"),
      ),
      better(
        "N2",
        "server 5 pure",
        "Nothing that was read is changed by an answer.",
        config(
          "is the same for equal inputs, and nothing of them is changed",
          "kernel arguments of the Ignition part > are the first boot's to set in *",
        ),
      ),
      ours(
        "server 5 changes",
        "A change is in the next answer; nobody is turned away while it is made.",
        anew("*"),
        kept("are never old: who asks after a change gets what has changed"),
      ),
      better(
        "N6",
        "server 5 ready",
        "Answers are made before anybody asks, once, and stay within their bytes.",
        kept("*"),
      ),
      better(
        "N3",
        "server 5 kubeconfig",
        "The kubeconfig follows the published authorities, in a new answer.",
        anew("another configuration of the pool, other settings, other authorities"),
      ),
    ],
  },
  {
    id: "server 6",
    title: "The config server: what is added",
    rows: [
      same(
        "server 6 files",
        "The annotations, the kubeconfig, the whole MachineConfig and the one of the first boot.",
        config(
          "has what its config says, and beside it what the machine needs: secrets for root alone",
          "tells the machine which configuration it has, in words that it reads",
          "holds the whole MachineConfig, and one for the first boot without what Ignition does",
          "in *",
        ),
      ),
      better(
        "N8",
        "server 6 paths",
        "A path that the config has already is replaced as a whole, compression and hash too.",
        config("where the config has a path already > *"),
      ),
      better(
        "N9",
        "server 6 modes",
        "Files with secrets are root's alone.",
        config("has what its config says, and beside it what the machine needs: secrets for root alone"),
      ),
      better(
        "N1",
        "server 6 token",
        "The credential in the kubeconfig lasts an hour, and is another one before twenty minutes have passed.",
        anew("the credential in the kubeconfig is another one before twenty minutes have passed"),
        kept("hold the credential before the last one for no longer than another is being made"),
      ),
    ],
  },
  {
    id: "server 7",
    title: "The config server: before there is a cluster",
    rows: [
      same(
        "server 7 folder",
        "Pools, configurations and settings come from a folder; only machines of the control plane are served.",
        bootstrap(
          "serves the machines of the control plane, and no others",
          "reads what has changed, and nothing else",
        ),
        bootstrapCommand("serves over TLS with a token, tells its story, and ends in order"),
      ),
      same(
        "server 7 registries",
        "Certificates of registries go with it.",
        bootstrap("a registry's certificate goes with it"),
        config("before there is a cluster > holds the certificates of registries, and no image that was built"),
      ),
    ],
  },
  {
    id: "server 8",
    title: "The config server: conversions",
    rows: [
      better(
        "N5",
        "server 8 losses",
        "What a version cannot say is refused by name, with the lowest version that can; nothing is dropped.",
        conversions("*"),
        config("names what a version cannot say, and the lowest that can"),
      ),
    ],
  },
  {
    id: "server join",
    title: "Machines that join",
    rows: [
      better(
        "N1",
        "join token",
        "A token opens one pool, for a time or a number of machines, and can be taken back; only its hash is kept.",
        served(
          "nobody without a credential, and every wrong one is answered alike",
          "a right secret is told why it opens nothing",
          "a token that was revoked opens nothing from then on",
        ),
        tokens("*"),
        tokenCommands("mco token > *"),
      ),
      ours(
        "join replay",
        "A token is never used more often than it may be, whoever is asked and whatever breaks.",
        served(
          "two servers never give more than there is, whoever is first",
          "a use whose answer never arrived is given back",
          "when a use cannot be stored nothing is served, and the machine is told to come again",
        ),
        uses("*"),
      ),
      ours(
        "join certificate",
        "A client certificate opens the pool that its organization names.",
        served("a client certificate opens the pool that its organization names"),
      ),
      ours(
        "join insecure",
        "Compatibility is named insecure wherever it shows.",
        served("in insecure mode everybody is served, and it says so"),
        address("asks for a credential unless somebody says otherwise, also where that is misspelt"),
      ),
      ours(
        "join approval",
        "A machine gets its certificate by rule, with the reason; nobody else's request is touched.",
        csr("*"),
        joins("*"),
      ),
      skip(
        "server 12",
        "What release 4.16 did otherwise.",
        "its differences are faults that later releases mended, and which this suite has never had",
      ),
    ],
  },
];
