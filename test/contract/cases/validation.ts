import { exchanges } from "./exchange.ts";
import { budget, configMap, deployment, pod } from "./case-fixture.ts";
const long = (length: number) => "x".repeat(length);
const secret = (more: object) => ({ apiVersion: "v1", kind: "Secret", metadata: { name: "s" }, ...more });
const dockerSecret = (text: string) =>
  secret({ type: "kubernetes.io/dockerconfigjson", data: { ".dockerconfigjson": btoa(text) } });
const service = (spec: object, name = "s") => ({ apiVersion: "v1", kind: "Service", metadata: { name }, spec });
const owner = (more: object) => ({ apiVersion: "v1", kind: "ConfigMap", name: "o", uid: "u", ...more });
const container = { name: "main", image: "example.com/app:1" };
const containers = (more: object) => ({ containers: [{ ...container, ...more }] });
/** Validation and defaults of built-in kinds, and the treatment of unknown fields. */
export const validationCases = exchanges([
  // names and metadata
  {
    title: "a name of 254 characters is too long",
    call: ["POST", "v1:configmaps", configMap(long(254))],
    status: 422,
    message:
      /^ConfigMap "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx/,
    causes: ["FieldValueInvalid metadata.name"],
  },
  {
    title: "a namespace's name is a label",
    call: ["POST", "/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: "a.b" } }],
    status: 422,
    message: 'Namespace "a.b" is invalid: metadata.name: Invalid value: "a.b": must not contain dots',
    causes: ["FieldValueInvalid metadata.name"],
  },
  {
    title: "a generateName that cannot begin a name is invalid with the name made of it",
    call: [
      "POST",
      "v1:configmaps?dryRun=All",
      { apiVersion: "v1", kind: "ConfigMap", metadata: { generateName: "-a", name: "fine" } },
    ],
    status: 422,
    message:
      /^ConfigMap "fine" is invalid: metadata\.generateName: Invalid value: "-a": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric charac/,
    causes: ["FieldValueInvalid metadata.generateName"],
  },
  {
    title: "a label's key is a qualified name",
    call: ["POST", "v1:configmaps", configMap("a", {}, { labels: { "a b": "c" } })],
    status: 422,
    message:
      /^ConfigMap "a" is invalid: metadata\.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '\.', and must start an/,
    causes: ["FieldValueInvalid metadata.labels"],
  },
  {
    title: "a label's key has one slash at most",
    call: ["POST", "v1:configmaps", configMap("a", {}, { labels: { "a/b/c": "c" } })],
    status: 422,
    message:
      /^ConfigMap "a" is invalid: metadata\.labels: Invalid value: "a\/b\/c": a qualified name must consist of alphanumeric characters, '-', '_' or '\.', and must/,
    causes: ["FieldValueInvalid metadata.labels"],
  },
  {
    title: "a label's prefix is a domain",
    call: ["POST", "v1:configmaps", configMap("a", {}, { labels: { "A_B/c": "c" } })],
    status: 422,
    message:
      /^ConfigMap "a" is invalid: metadata\.labels: Invalid value: "A_B\/c": prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric /,
    causes: ["FieldValueInvalid metadata.labels"],
  },
  {
    title: "a label's prefix is not empty",
    call: ["POST", "v1:configmaps", configMap("a", {}, { labels: { "/c": "c" } })],
    status: 422,
    message: 'ConfigMap "a" is invalid: metadata.labels: Invalid value: "/c": prefix part must be non-empty',
    causes: ["FieldValueInvalid metadata.labels"],
  },
  {
    title: "a label's value has 63 characters at most",
    call: ["POST", "v1:configmaps", configMap("a", {}, { labels: { a: long(64) } })],
    status: 422,
    message:
      'ConfigMap "a" is invalid: metadata.labels: Invalid value: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": must be no more than 63 characters',
    causes: ["FieldValueInvalid metadata.labels"],
  },
  {
    title: "a label's value has its own alphabet",
    call: ["POST", "v1:configmaps", configMap("a", {}, { labels: { a: "b c" } })],
    status: 422,
    message:
      /^ConfigMap "a" is invalid: metadata\.labels: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_'/,
    causes: ["FieldValueInvalid metadata.labels"],
  },
  {
    title: "an annotation's key is a qualified name",
    call: ["POST", "v1:configmaps", configMap("a", {}, { annotations: { "a b": "c" } })],
    status: 422,
    message:
      /^ConfigMap "a" is invalid: metadata\.annotations: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '\.', and must sta/,
    causes: ["FieldValueInvalid metadata.annotations"],
  },
  {
    title: "annotations have 256 KiB at most",
    call: ["POST", "v1:configmaps", configMap("a", {}, { annotations: { a: long(262_145) } })],
    status: 422,
    message: 'ConfigMap "a" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes',
    causes: ["FieldValueTooLong metadata.annotations"],
  },
  {
    title: "a finalizer is a qualified name",
    call: ["POST", "v1:configmaps", configMap("a", {}, { finalizers: ["a b"] })],
    status: 422,
    message:
      /^ConfigMap "a" is invalid: \[metadata\.finalizers: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '\.', and must sta/,
    causes: ["FieldValueInvalid metadata.finalizers", "FieldValueInvalid metadata.finalizers[0]"],
  },
  {
    title: "a finalizer outside Kubernetes' own needs a domain",
    call: ["POST", "v1:configmaps", configMap("a", {}, { finalizers: ["mine"] })],
    status: 422,
    message:
      'ConfigMap "a" is invalid: metadata.finalizers[0]: Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified',
    causes: ["FieldValueInvalid metadata.finalizers[0]"],
  },
  {
    title: "an owner has a version, a kind, a name and a uid",
    call: [
      "POST",
      "v1:configmaps",
      configMap("a", {}, { ownerReferences: [{ apiVersion: "", kind: "", name: "", uid: "" }] }),
    ],
    status: 422,
    message:
      /^ConfigMap "a" is invalid: \[metadata\.ownerReferences\.apiVersion: Invalid value: "": version must not be empty, metadata\.ownerReferences\.kind: Invalid v/,
    causes: [
      "FieldValueInvalid metadata.ownerReferences.apiVersion",
      "FieldValueInvalid metadata.ownerReferences.kind",
      "FieldValueInvalid metadata.ownerReferences.name",
      "FieldValueInvalid metadata.ownerReferences.uid",
    ],
  },
  {
    title: "an Event cannot be an owner",
    call: ["POST", "v1:configmaps", configMap("a", {}, { ownerReferences: [owner({ kind: "Event" })] })],
    status: 422,
    message:
      'ConfigMap "a" is invalid: metadata.ownerReferences: Invalid value: {"apiVersion":"v1","kind":"Event","name":"o","uid":"u"}: /v1, Kind=Event is disallowed from being an owner',
    causes: ["FieldValueInvalid metadata.ownerReferences"],
  },
  {
    title: "at most one owner is the controller",
    call: [
      "POST",
      "v1:configmaps",
      configMap(
        "a",
        {},
        { ownerReferences: [owner({ controller: true }), owner({ uid: "v", name: "p", controller: true })] },
      ),
    ],
    status: 422,
    message:
      /^ConfigMap "a" is invalid: metadata\.ownerReferences: Invalid value: \[\{"apiVersion":"v1","kind":"ConfigMap","name":"o","uid":"u","controller":true\},\{"ap/,
    causes: ["FieldValueInvalid metadata.ownerReferences"],
  },
  {
    title: "a label that is not a string is refused",
    call: ["POST", "v1:configmaps", configMap("a", {}, { labels: { a: 1 } })],
    status: 400,
    message:
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string',
  },
  {
    title: "labels that are a list are refused",
    call: ["POST", "v1:configmaps", configMap("a", {}, { labels: ["a"] })],
    status: 400,
    message:
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type map[string]string',
  },
  {
    title: "a name that is a number is refused",
    call: ["POST", "v1:configmaps", configMap("a", {}, { name: 5 })],
    status: 400,
    message:
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string',
  },
  {
    title: "an invalid time is refused",
    call: ["POST", "v1:configmaps", configMap("a", {}, { creationTimestamp: "yesterday" })],
    status: 400,
    message:
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
  },
  {
    title: "creation ignores fields that the server sets",
    call: [
      "POST",
      "v1:configmaps?dryRun=All",
      configMap("a", {}, { deletionTimestamp: "2020-01-01T00:00:00Z", deletionGracePeriodSeconds: 3, selfLink: "/x" }),
    ],
    status: 201,
    has: {
      "metadata.deletionTimestamp": undefined,
      "metadata.deletionGracePeriodSeconds": undefined,
      "metadata.selfLink": undefined,
    },
  },
  {
    title: "a kind without generations keeps the one it is given",
    call: ["POST", "v1:configmaps?dryRun=All", configMap("a", {}, { generation: 7 })],
    status: 201,
    has: { "metadata.generation": 7 },
  },
  {
    title: "a kind with generations begins at one",
    call: ["POST", "apps/v1:deployments?dryRun=All", { ...deployment("d"), metadata: { name: "d", generation: 7 } }],
    status: 201,
    has: { "metadata.generation": 1 },
  },
  {
    title: "a namespace in the body of a cluster-scoped object is dropped",
    call: [
      "POST",
      "/api/v1/nodes?dryRun=All",
      { apiVersion: "v1", kind: "Node", metadata: { name: "{ns}", namespace: "other" } },
    ],
    status: 201,
    has: { "metadata.namespace": undefined, "metadata.name": "{ns}" },
  },
  {
    title: "a body without apiVersion and kind takes them from the path",
    call: ["POST", "v1:configmaps?dryRun=All", { metadata: { name: "a" } }],
    status: 201,
    has: { kind: "ConfigMap", apiVersion: "v1", "metadata.name": "a" },
  },
  // ConfigMaps and Secrets
  {
    title: "a ConfigMap's keys are file names",
    call: ["POST", "v1:configmaps", configMap("a", { "a/b": "c" })],
    status: 422,
    message:
      "ConfigMap \"a\" is invalid: data[a/b]: Invalid value: \"a/b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
    causes: ["FieldValueInvalid data[a/b]"],
  },
  {
    title: "a ConfigMap's data are strings",
    call: ["POST", "v1:configmaps", configMap("a", { a: 1 })],
    status: 400,
    message:
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string',
  },
  {
    title: "a ConfigMap has no key twice in data and binaryData",
    call: ["POST", "v1:configmaps", { ...configMap("a", { a: "1" }), binaryData: { a: "MQ==" } }],
    status: 422,
    message: 'ConfigMap "a" is invalid: data[a]: Invalid value: "a": duplicate of key present in binaryData',
    causes: ["FieldValueInvalid data[a]"],
  },
  {
    title: "an immutable ConfigMap's data cannot change",
    before: [["POST", "v1:configmaps", { ...configMap("a", { a: "1" }), immutable: true }]],
    call: ["merge", "v1:configmaps/a", { data: { a: "2" } }],
    status: 422,
    message: 'ConfigMap "a" is invalid: data: Forbidden: field is immutable when `immutable` is set',
    causes: ["FieldValueForbidden data"],
  },
  {
    title: "an immutable ConfigMap stays immutable",
    before: [["POST", "v1:configmaps", { ...configMap("a", { a: "1" }), immutable: true }]],
    call: ["merge", "v1:configmaps/a", { immutable: null }],
    status: 422,
    message: 'ConfigMap "a" is invalid: immutable: Forbidden: field is immutable when `immutable` is set',
    causes: ["FieldValueForbidden immutable"],
  },
  {
    title: "an immutable ConfigMap can get labels",
    before: [["POST", "v1:configmaps", { ...configMap("a", { a: "1" }), immutable: true }]],
    call: ["merge", "v1:configmaps/a", { metadata: { labels: { a: "b" } } }],
    status: 200,
    has: { "metadata.labels": { a: "b" } },
  },
  {
    title: "a Secret's data are base64",
    call: ["POST", "v1:secrets", secret({ data: { a: "?" } })],
    status: 400,
    message: 'Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte 0',
  },
  {
    title: "a Secret's stringData wins over data",
    call: ["POST", "v1:secrets?dryRun=All", secret({ data: { a: "MQ==" }, stringData: { a: "2" } })],
    status: 201,
    has: { data: { a: "Mg==" }, type: "Opaque", stringData: undefined },
  },
  {
    title: "a Secret's keys are file names",
    call: ["POST", "v1:secrets", secret({ data: { "a b": "MQ==" } })],
    status: 422,
    message:
      "Secret \"s\" is invalid: data[a b]: Invalid value: \"a b\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
    causes: ["FieldValueInvalid data[a b]"],
  },
  {
    title: "a Secret's type cannot change",
    before: [["POST", "v1:secrets", secret({})]],
    call: ["merge", "v1:secrets/s", { type: "example.com/other" }],
    status: 422,
    message: 'Secret "s" is invalid: type: Invalid value: "example.com/other": field is immutable',
    causes: ["FieldValueInvalid type"],
  },
  {
    title: "a Secret of a TLS pair has both parts",
    call: ["POST", "v1:secrets", secret({ type: "kubernetes.io/tls" })],
    status: 422,
    message: 'Secret "s" is invalid: [data[tls.crt]: Required value, data[tls.key]: Required value]',
    causes: ["FieldValueRequired data[tls.crt]", "FieldValueRequired data[tls.key]"],
  },
  {
    title: "a Docker Secret has its key",
    call: ["POST", "v1:secrets", secret({ type: "kubernetes.io/dockerconfigjson" })],
    status: 422,
    message: 'Secret "s" is invalid: data[.dockerconfigjson]: Required value',
    causes: ["FieldValueRequired data[.dockerconfigjson]"],
  },
  ...(
    [
      ["no JSON", "no json", "invalid character 'o' in literal null (expecting 'u')"],
      ["nothing", "", "unexpected end of JSON input"],
      ["half an object", '{"auths": {"a": ', "unexpected end of JSON input"],
      ["a missing value", '{"auths": {"a": }}', "invalid character '}' looking for beginning of value"],
      ["a key without quotes", "{auths: {}}", "invalid character 'a' looking for beginning of object key string"],
      ["two objects", "{} {}", "invalid character '{' after top-level value"],
      ["a quote within", `{"a": 'b'}`, "invalid character '\\'' looking for beginning of value"],
      ["a line break in a text", '{"a": "\n"}', "invalid character '\\n' in string literal"],
      ["a wrong escape", '{"a": "\\x"}', "invalid character 'x' in string escape code"],
      ["a wrong number", '{"a": 01}', "invalid character '1' after object key:value pair"],
      ["an unfinished number", '{"a": 1.}', "invalid character '}' after decimal point in numeric literal"],
      ["an unfinished word", "tru", "invalid character ' ' in literal true (expecting 'e')"],
      ["bytes of no text", "\u00ff", "invalid character 'ÿ' looking for beginning of value"],
      ["a control character", "\u0085", "invalid character '\\u0085' looking for beginning of value"],
      ["a list", "[1]", "json: cannot unmarshal array into Go value of type map[string]interface {}"],
      ["a text", '"a"', "json: cannot unmarshal string into Go value of type map[string]interface {}"],
      ["a number", "1", "json: cannot unmarshal number into Go value of type map[string]interface {}"],
      ["a truth value", "true", "json: cannot unmarshal bool into Go value of type map[string]interface {}"],
    ] as const
  ).map(([what, text, problem], index) => {
    const key = index % 2 === 0 ? ".dockerconfigjson" : ".dockercfg";
    return {
      title: `a Docker Secret of ${what} is refused`,
      call: ["POST", "v1:secrets", secret({ type: `kubernetes.io/${key.slice(1)}`, data: { [key]: btoa(text) } })],
      status: 422,
      message: `Secret "s" is invalid: data[${key}]: Invalid value: "<secret contents redacted>": ${problem}`,
      causes: [`FieldValueInvalid data[${key}]`],
    } as const;
  }),
  ...(["null", " {} ", '{"auths":{"a":{"auth":"\u00e4\\ud83d"}}}', "\u007b\u007d\n"] as const).map(
    (text) =>
      ({
        title: `a Docker Secret of ${JSON.stringify(text)} is stored`,
        call: ["POST", "v1:secrets", dockerSecret(text)],
        status: 201,
      }) as const,
  ),
  {
    title: "an old Docker Secret has its key",
    call: ["POST", "v1:secrets", secret({ type: "kubernetes.io/dockercfg", data: { other: "" } })],
    status: 422,
    message: 'Secret "s" is invalid: data[.dockercfg]: Required value',
    causes: ["FieldValueRequired data[.dockercfg]"],
  },
  {
    title: "a Docker Secret keeps its form at an update",
    before: [["POST", "v1:secrets", dockerSecret("{}")]],
    call: ["merge", "v1:secrets/s", { data: { ".dockerconfigjson": btoa("x") } }],
    status: 422,
    message:
      'Secret "s" is invalid: data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": invalid character \'x\' looking for beginning of value',
    causes: ["FieldValueInvalid data[.dockerconfigjson]"],
  },
  {
    title: "a Docker Secret's type cannot change, whatever it holds",
    before: [["POST", "v1:secrets", dockerSecret("{}")]],
    call: ["merge", "v1:secrets/s", { type: "kubernetes.io/basic-auth" }],
    status: 422,
    message:
      'Secret "s" is invalid: [type: Invalid value: "kubernetes.io/basic-auth": field is immutable, data[username]: Required value, data[password]: Required value]',
    causes: ["FieldValueInvalid type", "FieldValueRequired data[username]", "FieldValueRequired data[password]"],
  },
  {
    title: "a Secret of a user has a name or a password",
    call: ["POST", "v1:secrets", secret({ type: "kubernetes.io/basic-auth" })],
    status: 422,
    message: 'Secret "s" is invalid: [data[username]: Required value, data[password]: Required value]',
    causes: ["FieldValueRequired data[username]", "FieldValueRequired data[password]"],
  },
  {
    title: "a Secret of a user may have a password alone, and an empty one",
    call: ["POST", "v1:secrets", secret({ type: "kubernetes.io/basic-auth", data: { password: "" } })],
    status: 201,
  },
  {
    title: "a Secret of an SSH key has one",
    call: ["POST", "v1:secrets", secret({ type: "kubernetes.io/ssh-auth", data: { "ssh-privatekey": "" } })],
    status: 422,
    message: 'Secret "s" is invalid: data[ssh-privatekey]: Required value',
    causes: ["FieldValueRequired data[ssh-privatekey]"],
  },
  {
    title: "a Secret of an account's token names the account",
    call: ["POST", "v1:secrets", secret({ type: "kubernetes.io/service-account-token" })],
    status: 422,
    message: 'Secret "s" is invalid: metadata.annotations[kubernetes.io/service-account.name]: Required value',
    causes: ["FieldValueRequired metadata.annotations[kubernetes.io/service-account.name]"],
  },
  {
    title: "a Secret of an unknown type holds anything",
    call: ["POST", "v1:secrets", secret({ type: "example.com/own", data: { ".dockercfg": "" } })],
    status: 201,
  },
  {
    title: "a Secret is no larger than 1 MiB",
    call: ["POST", "v1:secrets", secret({ data: { a: btoa(long(1_048_570)), b: btoa("1234567") } })],
    status: 422,
    message: 'Secret "s" is invalid: data: Too long: may not be more than 1048576 bytes',
    causes: ["FieldValueTooLong data"],
  },
  // pods
  {
    title: "a container has a name and an image",
    call: ["POST", "v1:pods", pod("p", { containers: [{}] })],
    status: 422,
    message: 'Pod "p" is invalid: [spec.containers[0].name: Required value, spec.containers[0].image: Required value]',
    causes: ["FieldValueRequired spec.containers[0].name", "FieldValueRequired spec.containers[0].image"],
  },
  {
    title: "a container's name is a label",
    call: ["POST", "v1:pods", pod("p", containers({ name: "A_b" }))],
    status: 422,
    message:
      /^Pod "p" is invalid: spec\.containers\[0\]\.name: Invalid value: "A_b": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-/,
    causes: ["FieldValueInvalid spec.containers[0].name"],
  },
  {
    title: "a container's name is unique",
    call: ["POST", "v1:pods", pod("p", { containers: [container, container] })],
    status: 422,
    message: 'Pod "p" is invalid: spec.containers[1].name: Duplicate value: "main"',
    causes: ["FieldValueDuplicate spec.containers[1].name"],
  },
  {
    title: "a restart policy is one of three",
    call: ["POST", "v1:pods", pod("p", { restartPolicy: "Sometimes" })],
    status: 422,
    message:
      'Pod "p" is invalid: spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
    causes: ["FieldValueNotSupported spec.restartPolicy"],
  },
  {
    title: "an image pull policy is one of three",
    call: ["POST", "v1:pods", pod("p", containers({ imagePullPolicy: "Perhaps" }))],
    status: 422,
    message:
      'Pod "p" is invalid: spec.containers[0].imagePullPolicy: Unsupported value: "Perhaps": supported values: "Always", "IfNotPresent", "Never"',
    causes: ["FieldValueNotSupported spec.containers[0].imagePullPolicy"],
  },
  {
    title: "a DNS policy is one of four",
    call: ["POST", "v1:pods", pod("p", { dnsPolicy: "Mine" })],
    status: 422,
    message:
      'Pod "p" is invalid: spec.dnsPolicy: Unsupported value: "Mine": supported values: "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"',
    causes: ["FieldValueNotSupported spec.dnsPolicy"],
  },
  {
    title: "a mount names a volume of the pod",
    call: ["POST", "v1:pods", pod("p", containers({ volumeMounts: [{ name: "ghost", mountPath: "/x" }] }))],
    status: 422,
    message: 'Pod "p" is invalid: spec.containers[0].volumeMounts[0].name: Not found: "ghost"',
    causes: ["FieldValueNotFound spec.containers[0].volumeMounts[0].name"],
  },
  {
    title: "a volume is of one kind",
    call: ["POST", "v1:pods", pod("p", { volumes: [{ name: "v", emptyDir: {}, hostPath: { path: "/x" } }] })],
    status: 422,
    message: 'Pod "p" is invalid: spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type',
    causes: ["FieldValueForbidden spec.volumes[0].hostPath"],
  },
  {
    title: "a volume without a kind is an empty directory",
    call: ["POST", "v1:pods?dryRun=All", pod("p", { automountServiceAccountToken: false, volumes: [{ name: "v" }] })],
    status: 201,
    has: { "spec.volumes": [{ name: "v", emptyDir: {} }] },
  },
  {
    title: "a volume's name is unique",
    call: [
      "POST",
      "v1:pods",
      pod("p", {
        volumes: [
          { name: "v", emptyDir: {} },
          { name: "v", emptyDir: {} },
        ],
      }),
    ],
    status: 422,
    message: 'Pod "p" is invalid: spec.volumes[1].name: Duplicate value: "v"',
    causes: ["FieldValueDuplicate spec.volumes[1].name"],
  },
  {
    title: "a port has a number below 65536",
    call: ["POST", "v1:pods", pod("p", containers({ ports: [{ containerPort: 70000 }] }))],
    status: 422,
    message:
      'Pod "p" is invalid: spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive',
    causes: ["FieldValueInvalid spec.containers[0].ports[0].containerPort"],
  },
  {
    title: "a port's protocol is one of three",
    call: ["POST", "v1:pods", pod("p", containers({ ports: [{ containerPort: 80, protocol: "HTTP" }] }))],
    status: 422,
    message:
      'Pod "p" is invalid: spec.containers[0].ports[0].protocol: Unsupported value: "HTTP": supported values: "SCTP", "TCP", "UDP"',
    causes: ["FieldValueNotSupported spec.containers[0].ports[0].protocol"],
  },
  {
    title: "a request for a resource is no more than its limit",
    call: ["POST", "v1:pods", pod("p", containers({ resources: { requests: { cpu: "2" }, limits: { cpu: "1" } } }))],
    status: 422,
    message:
      'Pod "p" is invalid: spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
    causes: ["FieldValueInvalid spec.containers[0].resources.requests"],
  },
  {
    title: "an invalid quantity is refused",
    call: ["POST", "v1:pods", pod("p", containers({ resources: { requests: { cpu: "lots" } } }))],
    status: 400,
    message:
      "Pod in version \"v1\" cannot be handled as a Pod: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  },
  {
    title: "limits are the default of requests, and decide the QoS class",
    call: ["POST", "v1:pods?dryRun=All", pod("p", containers({ resources: { limits: { cpu: "1", memory: "1Gi" } } }))],
    status: 201,
    has: {
      "spec.containers.0.resources": { limits: { cpu: "1", memory: "1Gi" }, requests: { cpu: "1", memory: "1Gi" } },
      "status.qosClass": "Guaranteed",
    },
  },
  {
    title: "a variable's name has an alphabet",
    call: ["POST", "v1:pods", pod("p", containers({ env: [{ name: "", value: "a" }] }))],
    status: 422,
    message: 'Pod "p" is invalid: spec.containers[0].env[0].name: Required value',
    causes: ["FieldValueRequired spec.containers[0].env[0].name"],
  },
  {
    title: "a variable has a value or a source",
    call: [
      "POST",
      "v1:pods",
      pod(
        "p",
        containers({ env: [{ name: "A", value: "a", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }] }),
      ),
    ],
    status: 422,
    message:
      'Pod "p" is invalid: spec.containers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty',
    causes: ["FieldValueInvalid spec.containers[0].env[0].valueFrom"],
  },
  {
    title: "a toleration without a key tolerates what exists",
    call: ["POST", "v1:pods", pod("p", { tolerations: [{ operator: "Equal", effect: "NoSchedule" }] })],
    status: 422,
    message:
      'Pod "p" is invalid: spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means "match all values and all keys"',
    causes: ["FieldValueInvalid spec.tolerations[0].operator"],
  },
  {
    title: "a toleration's effect is one of three",
    call: ["POST", "v1:pods", pod("p", { tolerations: [{ key: "a", operator: "Exists", effect: "Never" }] })],
    status: 422,
    message:
      'Pod "p" is invalid: spec.tolerations[0].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
    causes: ["FieldValueNotSupported spec.tolerations[0].effect"],
  },
  {
    title: "a pod tolerates an unready or unreachable node for five minutes",
    call: ["POST", "v1:pods?dryRun=All", pod("p")],
    status: 201,
    has: {
      "spec.tolerations": [
        { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 },
        { key: "node.kubernetes.io/unreachable", operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 },
      ],
      "spec.priority": 0,
      "spec.preemptionPolicy": "PreemptLowerPriority",
      "spec.enableServiceLinks": true,
      "spec.schedulerName": "default-scheduler",
      "spec.securityContext": {},
      "spec.containers.0.imagePullPolicy": "IfNotPresent",
      "spec.containers.0.terminationMessagePath": "/dev/termination-log",
    },
  },
  {
    title: "an image without a tag or with latest is pulled always",
    call: [
      "POST",
      "v1:pods?dryRun=All",
      pod("p", {
        containers: [
          { name: "a", image: "i" },
          { name: "b", image: "i:latest" },
          { name: "c", image: "i:1" },
          { name: "d", image: "i@sha256:0123456789012345678901234567890123456789012345678901234567890123" },
        ],
      }),
    ],
    status: 201,
    has: {
      "spec.containers.0.imagePullPolicy": "Always",
      "spec.containers.1.imagePullPolicy": "Always",
      "spec.containers.2.imagePullPolicy": "IfNotPresent",
      "spec.containers.3.imagePullPolicy": "IfNotPresent",
    },
  },
  {
    title: "a pod with a missing priority class is forbidden",
    call: ["POST", "v1:pods", pod("p", { priorityClassName: "ghost" })],
    status: 403,
    message: 'pods "p" is forbidden: no PriorityClass with name ghost was found',
  },
  {
    title: "a pod takes the priority of its class",
    call: ["POST", "v1:pods?dryRun=All", pod("p", { priorityClassName: "system-node-critical" })],
    status: 201,
    has: { "spec.priority": 2000001000 },
  },
  {
    title: "a pod's containers cannot change, except for their images",
    before: [["POST", "v1:pods", pod("p", { schedulerName: "nobody" })]],
    call: ["json", "v1:pods/p", [{ op: "replace", path: "/spec/containers/0/name", value: "other" }]],
    status: 422,
    message: /: spec: Forbidden: pod updates may not change fields other than `spec\.containers\[\*\]\.image`/,
    causes: ["FieldValueForbidden spec"],
    has: { spec: undefined },
  },
  {
    title: "a pod's image can change",
    before: [["POST", "v1:pods", pod("p", { schedulerName: "nobody" })]],
    call: ["json", "v1:pods/p", [{ op: "replace", path: "/spec/containers/0/image", value: "example.com/app:2" }]],
    status: 200,
    has: { "spec.containers.0.image": "example.com/app:2" },
  },
  {
    title: "a pod's deadline can be set and shortened",
    before: [["POST", "v1:pods", pod("p", { schedulerName: "nobody" })]],
    call: ["merge", "v1:pods/p", { spec: { activeDeadlineSeconds: 20 } }],
    status: 200,
    has: { "spec.activeDeadlineSeconds": 20 },
  },
  {
    title: "a pod's node is not changed by an update",
    before: [["POST", "v1:pods", pod("p", { schedulerName: "nobody" })]],
    call: ["merge", "v1:pods/p", { spec: { nodeName: "n1" } }],
    status: 422,
    message: /: spec: Forbidden: pod updates may not change fields other than `spec\.containers\[\*\]\.image`/,
    causes: ["FieldValueForbidden spec"],
  },
  {
    title: "the main endpoint does not change the phase",
    before: [["POST", "v1:pods", pod("p", { schedulerName: "nobody" })]],
    call: ["merge", "v1:pods/p", { status: { phase: "Running" } }],
    status: 200,
    has: { "status.phase": "Pending" },
  },
  {
    title: "a pod gets no scheduling gate later",
    before: [["POST", "v1:pods", pod("p", { schedulerName: "nobody" })]],
    call: ["merge", "v1:pods/p", { spec: { schedulingGates: [{ name: "example.com/gate" }] } }],
    status: 422,
    message:
      "Pod \"p\" is invalid: spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'example.com/gate'",
    causes: ["FieldValueForbidden spec.schedulingGates[0].name"],
  },
  // workloads
  {
    title: "a Deployment has a selector",
    call: [
      "POST",
      "apps/v1:deployments",
      {
        apiVersion: "apps/v1",
        kind: "Deployment",
        metadata: { name: "d" },
        spec: { template: deployment("d").spec.template },
      },
    ],
    status: 422,
    message:
      'Deployment.apps "d" is invalid: [spec.selector: Required value, spec.template.metadata.labels: Invalid value: {"app":"d"}: `selector` does not match template `labels`]',
    causes: ["FieldValueRequired spec.selector", "FieldValueInvalid spec.template.metadata.labels"],
  },
  {
    title: "a Deployment's selector matches its template",
    call: [
      "POST",
      "apps/v1:deployments",
      { ...deployment("d"), spec: { ...deployment("d").spec, selector: { matchLabels: { app: "other" } } } },
    ],
    status: 422,
    message:
      'Deployment.apps "d" is invalid: spec.template.metadata.labels: Invalid value: {"app":"d"}: `selector` does not match template `labels`',
    causes: ["FieldValueInvalid spec.template.metadata.labels"],
  },
  {
    title: "a Deployment has no negative number of replicas",
    call: ["POST", "apps/v1:deployments", deployment("d", -1)],
    status: 422,
    message: 'Deployment.apps "d" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0',
    causes: ["FieldValueInvalid spec.replicas"],
  },
  {
    title: "a Deployment's pods are restarted always",
    call: ["POST", "apps/v1:deployments", deployment("d", 1, { restartPolicy: "Never" })],
    status: 422,
    message:
      'Deployment.apps "d" is invalid: spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
    causes: ["FieldValueNotSupported spec.template.spec.restartPolicy"],
  },
  {
    title: "a Deployment rolls by a quarter and keeps ten revisions",
    call: ["POST", "apps/v1:deployments?dryRun=All", deployment("d")],
    status: 201,
    has: {
      "spec.strategy": { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "25%", maxSurge: "25%" } },
      "spec.revisionHistoryLimit": 10,
      "spec.progressDeadlineSeconds": 600,
    },
  },
  {
    title: "a Deployment that recreates rolls by nothing",
    call: [
      "POST",
      "apps/v1:deployments",
      {
        ...deployment("d"),
        spec: { ...deployment("d").spec, strategy: { type: "Recreate", rollingUpdate: { maxSurge: 1 } } },
      },
    ],
    status: 422,
    message:
      "Deployment.apps \"d\" is invalid: spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
    causes: ["FieldValueForbidden spec.strategy.rollingUpdate"],
  },
  {
    title: "a Deployment's surge and unavailability are not both zero",
    call: [
      "POST",
      "apps/v1:deployments",
      {
        ...deployment("d"),
        spec: {
          ...deployment("d").spec,
          strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 0, maxUnavailable: 0 } },
        },
      },
    ],
    status: 422,
    message:
      'Deployment.apps "d" is invalid: spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0',
    causes: ["FieldValueInvalid spec.strategy.rollingUpdate.maxUnavailable"],
  },
  {
    title: "a DaemonSet's pods are updated one after another",
    call: [
      "POST",
      "apps/v1:daemonsets?dryRun=All",
      {
        apiVersion: "apps/v1",
        kind: "DaemonSet",
        metadata: { name: "d" },
        spec: { selector: { matchLabels: { app: "d" } }, template: deployment("d").spec.template },
      },
    ],
    status: 201,
    has: {
      "spec.updateStrategy": { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } },
      "spec.revisionHistoryLimit": 10,
    },
  },
  {
    title: "a Job's pods are not restarted always",
    call: [
      "POST",
      "batch/v1:jobs",
      {
        apiVersion: "batch/v1",
        kind: "Job",
        metadata: { name: "j" },
        spec: { template: { spec: { containers: [container] } } },
      },
    ],
    status: 422,
    message:
      'Job.batch "j" is invalid: spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
    causes: ["FieldValueRequired spec.template.spec.restartPolicy"],
  },
  {
    title: "a Job gets its own selector",
    call: [
      "POST",
      "batch/v1:jobs?dryRun=All",
      {
        apiVersion: "batch/v1",
        kind: "Job",
        metadata: { name: "j" },
        spec: { template: { spec: { restartPolicy: "Never", containers: [container] } } },
      },
    ],
    status: 201,
    has: {
      "spec.parallelism": 1,
      "spec.completions": 1,
      "spec.backoffLimit": 6,
      "spec.completionMode": "NonIndexed",
      "spec.suspend": false,
    },
  },
  // policy
  {
    title: "a budget has one of two limits",
    call: [
      "POST",
      "policy/v1:poddisruptionbudgets",
      { ...budget("b", "x"), spec: { minAvailable: 1, maxUnavailable: 1, selector: {} } },
    ],
    status: 422,
    message:
      'PodDisruptionBudget.policy "b" is invalid: spec: Invalid value: {"MinAvailable":1,"Selector":{},"MaxUnavailable":1,"UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set',
    causes: ["FieldValueInvalid spec"],
  },
  {
    title: "a budget's limit is not negative",
    call: ["POST", "policy/v1:poddisruptionbudgets", { ...budget("b", "x"), spec: { minAvailable: -1, selector: {} } }],
    status: 422,
    message:
      'PodDisruptionBudget.policy "b" is invalid: spec.minAvailable: Invalid value: -1: must be greater than or equal to 0',
    causes: ["FieldValueInvalid spec.minAvailable"],
  },
  {
    title: "a budget's share is a percentage",
    call: [
      "POST",
      "policy/v1:poddisruptionbudgets",
      { ...budget("b", "x"), spec: { minAvailable: "half", selector: {} } },
    ],
    status: 422,
    message:
      "PodDisruptionBudget.policy \"b\" is invalid: spec.minAvailable: Invalid value: \"half\": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
    causes: ["FieldValueInvalid spec.minAvailable"],
  },
  // services
  {
    title: "a Service's name is a label that begins with a letter",
    call: ["POST", "v1:services", service({ ports: [{ port: 80 }] }, "1a")],
    status: 422,
    message:
      /^Service "1a" is invalid: metadata\.name: Invalid value: "1a": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an/,
    causes: ["FieldValueInvalid metadata.name"],
  },
  {
    title: "a Service has ports",
    call: ["POST", "v1:services", service({})],
    status: 422,
    message: 'Service "s" is invalid: spec.ports: Required value',
    causes: ["FieldValueRequired spec.ports"],
  },
  {
    title: "several ports of a Service have names",
    call: ["POST", "v1:services", service({ ports: [{ port: 80 }, { port: 81 }] })],
    status: 422,
    message: 'Service "s" is invalid: [spec.ports[0].name: Required value, spec.ports[1].name: Required value]',
    causes: ["FieldValueRequired spec.ports[0].name", "FieldValueRequired spec.ports[1].name"],
  },
  {
    title: "a Service's target port is its port by default",
    call: ["POST", "v1:services?dryRun=All", service({ ports: [{ port: 80 }] })],
    status: 201,
    has: {
      "spec.ports": [{ protocol: "TCP", port: 80, targetPort: 80 }],
      "spec.type": "ClusterIP",
      "spec.sessionAffinity": "None",
    },
  },
  // RBAC, leases
  {
    title: "a Role has verbs in its rules",
    call: [
      "POST",
      "rbac.authorization.k8s.io/v1:roles",
      {
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "Role",
        metadata: { name: "r" },
        rules: [{ apiGroups: [""], resources: ["pods"] }],
      },
    ],
    status: 422,
    message:
      'Role.rbac.authorization.k8s.io "r" is invalid: rules[0].verbs: Required value: verbs must contain at least one value',
    causes: ["FieldValueRequired rules[0].verbs"],
  },
  {
    title: "a Role has no paths",
    call: [
      "POST",
      "rbac.authorization.k8s.io/v1:roles",
      {
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "Role",
        metadata: { name: "r" },
        rules: [{ nonResourceURLs: ["/x"], verbs: ["get"] }],
      },
    ],
    status: 422,
    message:
      'Role.rbac.authorization.k8s.io "r" is invalid: rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs',
    causes: ["FieldValueInvalid rules[0].nonResourceURLs"],
  },
  {
    title: "a binding's role cannot change",
    before: [
      [
        "POST",
        "rbac.authorization.k8s.io/v1:rolebindings",
        {
          apiVersion: "rbac.authorization.k8s.io/v1",
          kind: "RoleBinding",
          metadata: { name: "b" },
          roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "one" },
        },
      ],
    ],
    call: ["merge", "rbac.authorization.k8s.io/v1:rolebindings/b", { roleRef: { name: "two" } }],
    status: 422,
    message:
      'RoleBinding.rbac.authorization.k8s.io "b" is invalid: roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"two"}: cannot change roleRef',
    causes: ["FieldValueInvalid roleRef"],
  },
  {
    title: "a binding's subject is of a known kind",
    call: [
      "POST",
      "rbac.authorization.k8s.io/v1:rolebindings",
      {
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "RoleBinding",
        metadata: { name: "b" },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "one" },
        subjects: [{ kind: "Robot", name: "x" }],
      },
    ],
    status: 422,
    message:
      'RoleBinding.rbac.authorization.k8s.io "b" is invalid: subjects[0].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"',
    causes: ["FieldValueNotSupported subjects[0].kind"],
  },
  {
    title: "a lease's duration is positive",
    call: [
      "POST",
      "coordination.k8s.io/v1:leases",
      {
        apiVersion: "coordination.k8s.io/v1",
        kind: "Lease",
        metadata: { name: "l" },
        spec: { leaseDurationSeconds: 0, leaseTransitions: -1 },
      },
    ],
    status: 422,
    message:
      'Lease.coordination.k8s.io "l" is invalid: [spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0, spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0]',
    causes: ["FieldValueInvalid spec.leaseDurationSeconds", "FieldValueInvalid spec.leaseTransitions"],
  },
  // field validation
  {
    title: "Strict names a field that is unknown in a list",
    call: ["POST", "v1:pods?fieldValidation=Strict", pod("p", containers({ imaeg: "x" }))],
    status: 400,
    message:
      'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.containers[0].imaeg"',
  },
  {
    title: "Strict names every unknown field",
    call: ["POST", "v1:configmaps?fieldValidation=Strict", { ...configMap("a"), one: 1, two: 2 }],
    status: 400,
    message:
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "one", unknown field "two"',
  },
  {
    title: "Strict names unknown fields of metadata",
    call: ["POST", "v1:configmaps?fieldValidation=Strict", configMap("a", {}, { colour: "red" })],
    status: 400,
    message:
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "metadata.colour"',
  },
  {
    title: "Warn is the default",
    call: ["POST", "v1:configmaps?dryRun=All", { ...configMap("a"), one: 1 }],
    status: 201,
    has: { one: undefined },
    warnings: ['unknown field "one"'],
  },
  {
    title: "Ignore does not warn",
    call: ["POST", "v1:configmaps?dryRun=All&fieldValidation=Ignore", { ...configMap("a"), one: 1 }],
    status: 201,
    has: { one: undefined },
  },
  {
    title: "Strict refuses unknown fields of an update",
    before: [["POST", "v1:configmaps", configMap("a")]],
    call: ["PUT", "v1:configmaps/a?fieldValidation=Strict", { ...configMap("a"), one: 1 }],
    status: 400,
    message: 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "one"',
  },
  {
    title: "Strict refuses unknown fields of a merge patch",
    before: [["POST", "v1:configmaps", configMap("a")]],
    call: ["merge", "v1:configmaps/a?fieldValidation=Strict", { one: 1 }],
    status: 422,
    message: /^ "" is invalid: patch: Invalid value: .*: strict decoding error: unknown field "one"$/s,
    causes: ["FieldValueInvalid patch"],
  },
  {
    title: "Strict refuses unknown fields of a JSON patch",
    before: [["POST", "v1:configmaps", configMap("a")]],
    call: ["json", "v1:configmaps/a?fieldValidation=Strict", [{ op: "add", path: "/one", value: 1 }]],
    status: 422,
    message: /^ "" is invalid: patch: Invalid value: .*: strict decoding error: unknown field "one"$/s,
    causes: ["FieldValueInvalid patch"],
  },
  {
    title: "Strict refuses unknown fields of a strategic patch",
    before: [["POST", "v1:configmaps", configMap("a")]],
    call: ["strategic", "v1:configmaps/a?fieldValidation=Strict", { one: 1 }],
    status: 422,
    message: /^ "" is invalid: patch: Invalid value: .*: strict decoding error: unknown field "one"$/s,
    causes: ["FieldValueInvalid patch"],
  },
  {
    title: "a field validation is one of three",
    call: ["POST", "v1:configmaps?fieldValidation=Maybe", configMap("a")],
    status: 422,
    message:
      'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Maybe": supported values: "", "Ignore", "Strict", "Warn"',
    causes: ["FieldValueNotSupported fieldValidation"],
  },
  {
    title: "a dry run is All",
    call: ["POST", "v1:configmaps?dryRun=Some", configMap("a")],
    status: 422,
    message: 'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"',
    causes: ["FieldValueNotSupported dryRun"],
  },
  {
    title: "a field manager has 128 characters at most",
    call: ["POST", `v1:configmaps?fieldManager=${long(129)}`, configMap("a")],
    status: 422,
    message: 'CreateOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes',
    causes: ["FieldValueTooLong fieldManager"],
  },
  {
    title: "force is for apply",
    before: [["POST", "v1:configmaps", configMap("a")]],
    call: ["merge", "v1:configmaps/a?force=true", { data: {} }],
    status: 422,
    message: 'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
    causes: ["FieldValueForbidden force"],
  },
]);
