import { describe, expect, test } from "vitest";
import {
  imagesOfContainerfile,
  readContainerfile,
  renderContainerfile,
  renderedProblem,
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
  });

  test.for([
    "FROM configs\nFROM 0",
    "FROM configs AS a\nRUN true\nFROM configs\nCOPY --from=0 /x /x",
    'FROM configs AS a\nFROM configs\nADD --from="1" /x /x',
    "FROM configs\nRUN --mount=type=bind,from=0,target=/c true",
    "FROM scratch\nLABEL evil=1\nFROM configs\nFROM configs\nFROM 2",
  ])("a stage by number is another one for the engine that builds: %j [build-containerfile-10]", (text) => {
    expect(readContainerfile(text)).toMatchObject({
      verdict: "refused",
      problem: expect.stringMatching(
        /^it names the stage \d, and the built text has the stages os and configs/,
      ) as string,
    });
  });

  test("here-documents are found, and what is in them is no instruction", () => {
    expect(readContainerfile("FROM os\nRUN <<EOF\necho a\nEOF\nRUN true")).toMatchObject({
      verdict: "read",
      heredocs: [2],
    });
  });

  test.for([
    { title: "a here-string", hides: "RUN grep -q x <<<EOF || true" },
    { title: "a word in quotes", hides: 'RUN echo "a<<EOF"' },
    { title: "a whole word in quotes", hides: "RUN echo '<<EOF'" },
    { title: "a shift", hides: "RUN echo $((1<<EOF))" },
    { title: "a word that << is glued to", hides: "RUN cat<<EOF" },
    { title: "a list of words", hides: 'RUN ["echo", "<<EOF"]' },
    { title: "an instruction that takes none", hides: "LABEL a=<<EOF" },
  ])("$title begins no here-document, and hides no line behind it [build-containerfile-5]", ({ hides }) => {
    const text = `FROM configs\n${hides}\nFROM evil.example/os:1\nRUN true`;
    expect(readContainerfile(text)).toMatchObject({
      verdict: "refused",
      line: 3,
      problem: expect.stringContaining("configs or os") as string,
    });
    expect(readContainerfile(`${text}\nEOF`)).toMatchObject({ verdict: "refused" });
    expect(readContainerfile(`FROM configs\n${hides}\nRUN true`)).toMatchObject({ verdict: "read", heredocs: [] });
  });

  test.for([
    { title: "one without an end", text: "RUN cat <<EOF\necho\n", problem: /EOF does not end/ },
    { title: "one whose end is indented", text: "RUN cat <<EOF\necho\n  EOF\n", problem: /EOF does not end/ },
    { title: "a blank before the word", text: "RUN cat << EOF\nEOF\n", problem: /some builders take << / },
    { title: "a shift with blanks", text: "RUN echo $((1 <<N))\n", problem: /some builders take <<N\)\)/ },
    { title: "a shift with a blank", text: "RUN echo $((1<< N))\n", problem: /some builders take \$\(\(1<< / },
    { title: "what is glued to the word", text: "RUN cat <<EOF>/x\nEOF>/x\n", problem: /some builders take/ },
    { title: "a variable as the word", text: "RUN cat <<$EOF\n$EOF\n", problem: /some builders take/ },
    { title: "a quote without an end", text: "RUN echo it's <<EOF\nEOF\n", problem: /depends on a quote/ },
    { title: "a substitution", text: "RUN echo ${a@Q} <<EOF\nEOF\n", problem: /depends on a quote/ },
    { title: "what stands behind a list of words", text: 'RUN ["a"] <<EOF\nEOF\n', problem: /depends on/ },
    { title: "two backslashes at the end of a line", text: "RUN echo \\\\\nRUN true", problem: /two backslashes/ },
    { title: "a blank that is one for some", text: "COPY \\\n\u0085#\\\n--from=a /x /x", problem: /U\+0085/ },
    { title: "an option that does not end", text: "COPY --from='a /x /x", problem: /an option in it/ },
    { title: "an option of bytes", text: "COPY --chown=\u00e0--from=dir:/x /x /x", problem: /an option in it/ },
  ])("$title is refused, as builders read it differently [build-containerfile-6]", ({ text, problem }) => {
    expect(readContainerfile(`FROM os\n${text}`)).toMatchObject({
      verdict: "refused",
      line: 2,
      problem: expect.stringMatching(problem) as string,
    });
  });

  test.for([
    { title: "by its word", text: "RUN cat <<EOF >/x\nFROM evil.example/os:1\nEOF\nRUN true" },
    { title: "by a word in quotes", text: "COPY <<-'END' /x\n\tRUN\n\tEND\nRUN true" },
    { title: "one after the other", text: 'RUN 3<<A <<"B.1"\nB.1\nA\nFROM x\nB.1\nRUN true' },
    { title: "with a default beside it", text: "RUN echo ${A:-b} ${B} <<EOF\nFROM x\nEOF\nRUN true" },
    { title: "of a trigger", text: "ONBUILD RUN <<EOF\nFROM x\nEOF\nRUN true" },
  ])("a here-document ends $title, and what is in it is no instruction [build-containerfile-7]", ({ text }) => {
    const read = readContainerfile(`FROM os\n${text}`);
    expect(read).toMatchObject({ verdict: "read", heredocs: [2] });
    const [stage] = read.verdict === "read" ? read.stages : [];
    expect(stage?.instructions.map(({ name }) => name)).toEqual([/^\w+/.exec(text)?.[0], "RUN"]);
  });

  test.for([
    { title: "continued in its middle", text: "COPY --fr\\\nom=dir:/x /x /x" },
    { title: "in quotes", text: 'COPY --fr"om=dir:/x" /x /x' },
    { title: "with a backslash", text: "COPY --from=d\\ir:/x /x /x" },
    { title: "of a trigger", text: "ONBUILD COPY --from=dir:/x /x /x" },
    { title: "of a mount", text: "RUN --mount=type=bind,FROM=dir:/x,target=/y true" },
    { title: "of a mount that names two", text: "RUN --mount=from=configs,from=dir:/x,target=/y true" },
  ])("an option $title names its image all the same [build-containerfile-8]", ({ text }) => {
    expect(readContainerfile(`FROM os\n${text}`)).toMatchObject({
      verdict: "refused",
      line: 2,
      problem: expect.stringContaining("a file or a store of the machine") as string,
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

test.for([
  { title: "a here-document", text: "FROM os\nRUN cat <<EOF > /x\nhello\nEOF\n", line: 2 },
  { title: "one with a quoted word", text: "FROM os\nRUN true\nCOPY <<-'END' /x\nhello\nEND\n", line: 3 },
  { title: "one that does not end", text: "FROM os\nRUN true\nRUN cat <<END\n", line: 3, always: true },
  { title: "a string of the shell", text: "FROM os\nRUN cat <<<EOF\nRUN true\n", line: undefined },
  { title: "a shift", text: "FROM os\nRUN echo $((1<<A))\n", line: undefined },
])("a builder without here-documents is told of them by their line: $title [build-containerfile-9]", (one) => {
  const rendered = renderContainerfile({
    base,
    extensions: ["usbguard"],
    kernelType: "default",
    custom: one.text,
    configsHoldConfiguration: true,
    hasTrust: true,
  });
  expect(renderedProblem(rendered, { readsHeredocs: false })?.line).toBe(one.line);
  expect(renderedProblem(rendered, { readsHeredocs: true })?.line).toBe(one.always === true ? one.line : undefined);
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
    expect(stepsOfContainerfile(text).at(-1)?.instruction).toBe("RUN two &&   three");
  });

  test("words and markers without number are read in time in proportion to them [build-containerfile-long-1]", () => {
    const triggers = readContainerfile(`FROM os\n${"ONBUILD ".repeat(200_000)}COPY --from=dir:/x /x /x\n`);
    expect(triggers).toMatchObject({ verdict: "refused" });
    const comments = "# step: none\nRUN true\n".repeat(50_000);
    expect(stepsOfContainerfile(`# step: context\n# step: user\n${comments}`).length).toBe(50_000);
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
