import { describe, expect, test } from "vitest";
import {
  imagesOfContainerfile,
  readContainerfile,
  renderContainerfile,
  stepsOfContainerfile,
} from "./build-containerfile.ts";

const base = `registry.example.com/os@sha256:${"b".repeat(64)}`;

describe("a custom Containerfile", () => {
  test.for([
    { title: "stands on configs", text: "FROM configs AS final\nRUN true\n", foundation: "configs" },
    { title: "stands on os", text: "FROM os\nRUN true", foundation: "os" },
    {
      title: "stands on configs through stages of its own",
      text: "FROM configs AS a\nRUN a\nFROM a AS b\nFROM b\nRUN b",
      foundation: "configs",
    },
    {
      title: "takes from another image",
      text: "FROM registry.example.com/golang:1 AS tool\nRUN make\nFROM os\nCOPY --from=tool /x /usr/bin/x",
      foundation: "os",
    },
    {
      title: "is written in lower case, with comments and continued lines",
      text: "# mine\nfrom Configs as final\nrun a && \\\n# why\n    b\n\nlabel a=b c",
      foundation: "configs",
    },
    { title: "has an ARG before its FROM", text: "ARG V=1\nFROM configs\nRUN echo $V", foundation: "configs" },
  ])("that $title is read", ({ text, foundation }) => {
    expect(readContainerfile(text)).toMatchObject({ verdict: "read", foundation, isEmpty: false, heredocs: [] });
  });

  test.for([
    { title: "has no FROM", text: "RUN true", line: 1, instruction: "RUN true", problem: /begin with FROM/ },
    { title: "is empty", text: "\n# nothing\n", line: 1, instruction: "", problem: /no FROM/ },
    {
      title: "has a FROM without a base",
      text: "FROM\nRUN true",
      line: 1,
      instruction: "FROM",
      problem: /names no image/,
    },
    {
      title: "has an instruction that there is not",
      text: "FROM configs\n\nRUNN true",
      line: 3,
      instruction: "RUNN true",
      problem: /no instruction RUNN/,
    },
    {
      title: "ends on an image of its own",
      text: "FROM configs AS a\nFROM fedora:41\nRUN true",
      line: 2,
      instruction: "FROM fedora:41",
      problem: /configs or os/,
    },
    {
      title: "says RUN and nothing behind it",
      text: "FROM os\nRUN",
      line: 2,
      instruction: "RUN",
      problem: /says nothing/,
    },
  ])("that $title is refused with line and instruction", ({ text, line, instruction, problem }) => {
    expect(readContainerfile(text)).toMatchObject({
      verdict: "refused",
      line,
      instruction,
      problem: expect.stringMatching(problem) as string,
    });
  });

  test.for([
    { title: "an option", from: "--tls-verify=false", problem: /would be an option/ },
    { title: "a short option", from: "-h", problem: /would be an option/ },
    { title: "an option in quotes", from: '"--authfile=/proc/1/environ"', problem: /would be an option/ },
    { title: "an archive", from: "docker-archive:/run/secrets/x.tar", problem: /of the machine that builds/ },
    { title: "a folder", from: "dir:/run/mco-build/pull", problem: /of the machine that builds/ },
    { title: "the store", from: "containers-storage:localhost/other", problem: /of the machine that builds/ },
    { title: "a layout", from: "oci:/run/mco-build/result", problem: /of the machine that builds/ },
    { title: "a path", from: "/etc/passwd", problem: /is no name of an image/ },
  ])("an image that is $title is refused with its line [build-containerfile-2]", ({ from, problem }) => {
    const plain = from.replaceAll('"', "");
    const named = [
      `COPY --from=${from} /x /x`,
      `RUN --mount=type=bind,from=${plain},target=/x true`,
      ...(plain.startsWith("--") ? [] : [`FROM ${plain} AS other`]),
    ];
    for (const line of named)
      expect(readContainerfile(`FROM configs AS first\n${line}\nFROM first\nRUN true`)).toMatchObject({
        verdict: "refused",
        line: 2,
        problem: expect.stringMatching(problem) as string,
      });
  });

  test("images of registries are read under every name that they may have [build-containerfile-3]", () => {
    for (const from of ["docker://registry.example.com/a", "fedora:41", `a.example.com/b:1@sha256:${"a".repeat(64)}`])
      expect(readContainerfile(`FROM configs\nCOPY --from=${from} /x /x`)).toMatchObject({ verdict: "read" });
  });

  test("stages without number that build on each other are followed to the first one [build-containerfile-4]", () => {
    const stages = Array.from({ length: 50_000 }, (_, index) => `FROM s${index} AS s${index + 1}`);
    const text = ["FROM configs AS s0", ...stages].join("\n");
    expect(readContainerfile(text)).toMatchObject({ verdict: "read", foundation: "configs" });
    expect(readContainerfile(`${text}\nFROM 3\nRUN true`)).toMatchObject({ verdict: "read", foundation: "configs" });
  });

  test("here-documents are found, and what is in them is no instruction", () => {
    expect(readContainerfile("FROM os\nRUN <<EOF\necho a\nEOF\nRUN true")).toMatchObject({
      verdict: "read",
      heredocs: [2],
    });
  });

  test("one that changes nothing is seen to be empty", () => {
    expect(readContainerfile("FROM configs AS final\n")).toMatchObject({ verdict: "read", isEmpty: true });
  });

  test("line ends and blanks at the end of lines make no difference", () => {
    const a = readContainerfile("FROM os\r\nRUN true  \r\n");
    const b = readContainerfile("FROM os\nRUN true");
    expect(a).toEqual(b);
  });
});

describe("the rendered Containerfile", () => {
  const wanted = {
    base,
    extensions: [],
    kernelType: "default",
    configsHoldConfiguration: false,
    hasTrust: false,
  } as const;

  test("lays packages of extensions first, custom steps last, and the configuration between them only for steps that see it [build-containerfile-1]", () => {
    const full = renderContainerfile({
      ...wanted,
      extensions: ["usbguard", "kerberos"],
      extensionsImage: `x@sha256:${"e".repeat(64)}`,
      custom: "FROM configs\nRUN true",
      configsHoldConfiguration: true,
      hasTrust: true,
    });
    const order = [
      `FROM ${base} AS os`,
      "COPY openshift-config-user-ca-bundle.crt",
      "rpm-ostree install usbguard krb5-workstation libkadm5",
      "FROM os AS configs",
      "ADD config-layer.tar.gz /",
      "FROM configs\nRUN true",
    ].map((part) => full.indexOf(part));
    expect(order.every((at) => at >= 0)).toBe(true);
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(full).toContain(`--mount=type=bind,from=x@sha256:${"e".repeat(64)}`);
    expect(renderContainerfile({ ...wanted, custom: "FROM os\nRUN true" })).not.toContain("config-layer");
  });

  test("another kernel replaces the one that the base has", () => {
    const text = renderContainerfile({
      ...wanted,
      kernelType: "realtime",
      extensionsImage: `x@sha256:${"e".repeat(64)}`,
    });
    expect(text).toContain("rpm-ostree override remove kernel kernel-core");
    expect(text).toContain("--install kernel-rt-core");
  });

  test("every instruction belongs to a step, and custom ones are numbered", () => {
    const text = renderContainerfile({
      ...wanted,
      extensions: ["sysstat"],
      hasTrust: true,
      custom: "FROM configs AS a\nRUN one\nRUN two && \\\n  three",
    });
    expect(stepsOfContainerfile(text).map(({ step }) => step)).toEqual([
      "pull-base",
      "ca",
      "ca",
      "extensions",
      "extensions",
      "context",
      "user:1",
      "user:2",
      "user:3",
    ]);
    expect(stepsOfContainerfile(text).at(-1)?.instruction).toBe("RUN two &&    three");
  });
});

test("every image that a text names is known before its steps run, with the step that names it first", () => {
  const custom = [
    "FROM --platform=linux/amd64 registry.example.com/golang:1 AS Tool",
    "RUN --mount=type=bind,from=registry.example.com/cache,target=/c --mount=type=cache,target=/x make",
    "FROM scratch AS empty",
    "FROM ${OTHER} AS variable",
    "FROM configs",
    "COPY --chown=1 --from=tool /x /x",
    "COPY --from=0 /y /y",
    "COPY --from=registry.example.com/files /z /z",
    "RUN echo --from=registry.example.com/none",
    "RUN --network=none",
  ].join("\n");
  const text = renderContainerfile({
    base,
    extensions: ["usbguard"],
    extensionsImage: "registry.example.com/extensions",
    kernelType: "default",
    custom,
    configsHoldConfiguration: false,
    hasTrust: false,
  });
  expect(imagesOfContainerfile(text)).toEqual([
    { image: base, step: "pull-base" },
    { image: "registry.example.com/extensions", step: "extensions" },
    { image: "registry.example.com/golang:1", step: "user:1" },
    { image: "registry.example.com/cache", step: "user:2" },
    { image: "registry.example.com/files", step: "user:8" },
  ]);
});
