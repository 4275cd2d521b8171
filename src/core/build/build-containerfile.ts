import { pulledNameProblem } from "../images/image-reference.ts";
import { type Instruction, innerInstruction, optionsOf, readInstructions } from "./read-instructions.ts";
import { withoutEnd } from "../text/without-end.ts";
import { supportedExtensions } from "../config/validate-machine-config.ts";

export interface Stage {
  /** The name after `AS`, in lower case, because references are compared that way. */
  readonly name: string | undefined;
  readonly from: string;
  readonly line: number;
  readonly instructions: readonly Instruction[];
}

/** The stage that a custom Containerfile builds on: with or without the configuration's files. */
export type Foundation = "configs" | "os";

export type ContainerfileReading =
  | {
      readonly verdict: "read";
      readonly text: string;
      readonly stages: readonly Stage[];
      readonly foundation: Foundation;
      /** It does not change the stage that it builds on. */
      readonly isEmpty: boolean;
      /** Lines of here-documents, which builders before buildah 1.33 do not read. */
      readonly heredocs: readonly number[];
    }
  | { readonly verdict: "refused"; readonly line: number; readonly instruction: string; readonly problem: string };

const known: ReadonlySet<string> = new Set([
  "ADD",
  "ARG",
  "CMD",
  "COPY",
  "ENTRYPOINT",
  "ENV",
  "EXPOSE",
  "FROM",
  "HEALTHCHECK",
  "LABEL",
  "MAINTAINER",
  "ONBUILD",
  "RUN",
  "SHELL",
  "STOPSIGNAL",
  "USER",
  "VOLUME",
  "WORKDIR",
]);
/** Instructions whose options may name an image. */
const takesOptions: ReadonlySet<string> = new Set(["ADD", "COPY", "FROM", "RUN"]);
const shownCharacters = 80;

/** Normalises a Containerfile: uniform line ends, no trailing white space, no empty lines around it. */
export const normalisedContainerfile = (text: string): string =>
  withoutEnd(
    text
      .replace(/^\ufeff/, "")
      .replaceAll(/\r\n?/g, "\n")
      .split("\n")
      .map((line) => line.trimEnd())
      .join("\n")
      .replace(/^\n+/, ""),
    "\n",
  );

/**
 * Reads a custom Containerfile: at least one `FROM`, known instructions, and a last stage that builds on `configs` or
 * `os`, the stages rendered before it.
 */
export function readContainerfile(given: string): ContainerfileReading {
  const text = normalisedContainerfile(given);
  const read = readInstructions(text);
  const refused = (
    of: Pick<Instruction, "name" | "arguments" | "line"> | undefined,
    problem: string,
  ): ContainerfileReading => ({
    verdict: "refused",
    line: of?.line ?? 1,
    instruction: of === undefined ? "" : `${of.name} ${of.arguments}`.trim().slice(0, shownCharacters),
    problem,
  });
  if (read.verdict === "refused") return refused(read.instruction, read.problem);
  const { instructions } = read;
  const stages: { name: string | undefined; from: string; line: number; instructions: Instruction[] }[] = [];
  for (const instruction of instructions) {
    if (!known.has(instruction.name))
      return refused(instruction, `there is no instruction ${instruction.name.slice(0, shownCharacters)}`);
    const inner = innerInstruction(instruction);
    if (takesOptions.has(inner.name) && optionsOf(inner.arguments) === undefined)
      return refused(instruction, "an option in it has a quote without an end, or characters that are not ASCII");
    if (instruction.name === "FROM") {
      const words = (optionsOf(instruction.arguments)?.rest ?? "").split(/\s+/).filter((word) => word !== "");
      const [from, as, name] = words;
      if (from === undefined) return refused(instruction, "FROM names no image and no stage");
      if (words.length !== 1 && !(words.length === 3 && as?.toUpperCase() === "AS"))
        return refused(instruction, "FROM takes an image, and AS with a name");
      stages.push({ name: name?.toLowerCase(), from, line: instruction.line, instructions: [] });
      continue;
    }
    const stage = stages.at(-1);
    if (stage !== undefined) stage.instructions.push(instruction);
    else if (instruction.name !== "ARG") return refused(instruction, "it has to begin with FROM configs, or FROM os");
    if (instruction.arguments === "" && instruction.name !== "CMD" && instruction.name !== "ENTRYPOINT")
      return refused(instruction, `${instruction.name} says nothing`);
  }
  const last = stages.at(-1);
  if (last === undefined) return refused(instructions[0], "there is no FROM");
  for (const { instruction, sources } of sourcesOf(instructions)) {
    const number = sources.find((source) => /^\d+$/.test(source));
    if (number !== undefined)
      return refused(
        instruction,
        `it names the stage ${number}, and the built text has the stages os and configs before the first one: give the stage a name with AS, and use that`,
      );
  }
  const foundation = foundationOf(stages, stages.length - 1);
  if (foundation === undefined)
    return refused(
      { name: "FROM", arguments: last.from, line: last.line },
      "the last stage has to stand on configs or os: another image is no OS image of this cluster",
    );
  for (const { image, ...instruction } of namedImages(instructions, ["configs", "os"])) {
    const problem = pulledNameProblem(image);
    if (problem !== undefined) return refused(instruction, problem);
  }
  return {
    verdict: "read",
    text,
    stages,
    foundation,
    isEmpty: stages.every((stage) => stage.instructions.length === 0),
    heredocs: instructions.filter(({ heredocs }) => heredocs > 0).map(({ line }) => line),
  };
}

/** The stage that a stage ultimately builds on; `undefined`: another image. */
function foundationOf(stages: readonly Stage[], last: number): Foundation | undefined {
  // Each stage builds on an earlier one, however many they are.
  for (let at = last; ;) {
    const from = stages[at]?.from.toLowerCase() ?? "";
    let before = at - 1;
    while (before >= 0 && stages[before]?.name !== from) before -= 1;
    if (before < 0) return from === "configs" || from === "os" ? from : undefined;
    at = before;
  }
}

export interface RenderContainerfile {
  /** Pullspecs by digest. */
  readonly base: string;
  readonly extensionsImage?: string;
  readonly extensions: readonly string[];
  readonly kernelType: "default" | "realtime" | "64k-pages";
  /** Normalised text; absent without custom steps. */
  readonly custom?: string;
  /** The custom steps see the configuration: the layer of `config-layer.tar.gz` lies in the stage `configs`. */
  readonly configsHoldConfiguration: boolean;
  /** The context contains a trust bundle, at {@link trustFile}. */
  readonly hasTrust: boolean;
}

/** Files of the context that the rendered text names. */
export const contextFiles = {
  trust: "openshift-config-user-ca-bundle.crt",
  configLayer: "config-layer.tar.gz",
} as const;

const extensionsMount = "/run/machine-config-extensions";
const repository = "/etc/yum.repos.d/coreos-extensions.repo";
const cleaned = "rm -rf /var/log/* /var/cache/* /var/lib/dnf/history* && ostree container commit";

const kernelPackages = {
  realtime: [
    "kernel-rt-core",
    "kernel-rt-modules",
    "kernel-rt-modules-core",
    "kernel-rt-modules-extra",
    "kernel-rt-kvm",
  ],
  "64k-pages": ["kernel-64k-core", "kernel-64k-modules", "kernel-64k-modules-core", "kernel-64k-modules-extra"],
} as const;
const defaultKernel = [
  "kernel",
  "kernel-core",
  "kernel-modules",
  "kernel-modules-core",
  "kernel-modules-extra",
] as const;

const marker = (step: string) => `# step: ${step}`;
const run = (...commands: readonly string[]) => `RUN ${commands.join(" && \\\n    ")}`;

function withRepository(mount: string, commands: readonly string[]): string {
  // The content is pinned by the image's digest, which says more than its packages' signatures.
  const wrote = `printf '[coreos-extensions]\\nname=extensions of the release\\nenabled=1\\nbaseurl=file://${extensionsMount}\\ngpgcheck=0\\nskip_if_unavailable=False\\n' > ${repository}`;
  return `RUN --mount=type=bind,from=${mount},source=/usr/share/rpm-ostree/extensions,target=${extensionsMount} \\\n    ${[wrote, ...commands, `rm ${repository}`, cleaned].join(" && \\\n    ")}`;
}

/**
 * The Containerfile of an image's parent, with what seldom changes first. A comment `# step: NAME` before an
 * instruction names its step in reports. The layer with the configuration is included only if custom steps need to see
 * it.
 */
export function renderContainerfile(wanted: RenderContainerfile): string {
  const { base, extensions, extensionsImage, kernelType, custom } = wanted;
  const needsPackages = extensions.length > 0 || kernelType !== "default";
  const mount = needsPackages ? (extensionsImage ?? base) : "";
  const packages = [...new Set(extensions.flatMap((extension) => supportedExtensions[extension] ?? []))];
  const lines = [marker("pull-base"), `FROM ${base} AS os`];
  if (wanted.hasTrust)
    lines.push(
      marker("ca"),
      `COPY ${contextFiles.trust} /etc/pki/ca-trust/source/anchors/${contextFiles.trust}`,
      run("update-ca-trust", cleaned),
    );
  if (kernelType !== "default")
    lines.push(
      marker("kernel"),
      withRepository(mount, [
        `rpm-ostree override remove ${defaultKernel.join(" ")} ${kernelPackages[kernelType].map((name) => `--install ${name}`).join(" ")}`,
      ]),
    );
  if (packages.length > 0)
    lines.push(marker("extensions"), withRepository(mount, [`rpm-ostree install ${packages.join(" ")}`]));
  if (packages.length > 0) {
    // An image does not deliver what packages put below /var: it is created at boot.
    const folders = [
      "d /var/log/usbguard 0755 root root -",
      "d /var/lib/ipsec 0700 root root -",
      "d /var/lib/ipsec/nss 0700 root root -",
    ];
    lines.push(
      marker("extensions"),
      run(
        "rm -f /usr/lib/tmpfiles.d/usbguard.conf",
        `printf '${folders.map((folder) => `${folder}\\n`).join("")}' > /usr/lib/tmpfiles.d/machine-config-extensions.conf`,
        cleaned,
      ),
    );
  }
  if (custom !== undefined) {
    lines.push(marker("context"), "FROM os AS configs");
    if (wanted.configsHoldConfiguration) lines.push(marker("config-layer"), `ADD ${contextFiles.configLayer} /`);
    lines.push(marker("user"), custom);
  }
  return `${lines.join("\n")}\n`;
}

const stepMarkers = (rendered: string) =>
  rendered
    .split("\n")
    .flatMap((line, index) =>
      line.startsWith("# step: ") ? [{ line: index + 1, step: line.slice("# step: ".length) }] : [],
    );

/** An instruction of a rendered text, with its step in reports. */
interface StepInstruction extends Instruction {
  readonly instruction: string;
  readonly step: string;
}

/**
 * Every instruction of a rendered text in order, with its step in reports: the custom ones are `user:1`, `user:2`, …
 * None, if {@link renderedProblem} has something against the text.
 */
export function stepsOfContainerfile(rendered: string): readonly StepInstruction[] {
  const markers = stepMarkers(rendered);
  const read = readInstructions(rendered);
  let custom = 0;
  let passed = 0;
  return (read.verdict === "read" ? read.instructions : []).map((each) => {
    while ((markers[passed]?.line ?? Infinity) < each.line) passed += 1;
    const step = markers[passed - 1]?.step ?? "context";
    const isUser = step === "user";
    if (isUser) custom += 1;
    return { ...each, instruction: `${each.name} ${each.arguments}`, step: isUser ? `user:${custom}` : step };
  });
}

/**
 * Why a rendered text cannot be built, by its line in the custom part.
 *
 * @param how whether the builder reads here-documents; buildah does since 1.33.
 */
export function renderedProblem(
  rendered: string,
  how: { readonly readsHeredocs: boolean },
): { readonly line: number; readonly problem: string } | undefined {
  const read = readInstructions(rendered);
  const before = stepMarkers(rendered).find(({ step }) => step === "user")?.line ?? 0;
  if (read.verdict === "refused") return { line: read.instruction.line - before, problem: read.problem };
  const heredoc = how.readsHeredocs ? undefined : read.instructions.find(({ heredocs }) => heredocs > 0);
  return heredoc === undefined
    ? undefined
    : {
        line: heredoc.line - before,
        problem:
          "it begins a here-document, which this buildah cannot read: write the file into the build context, or use printf",
      };
}

/**
 * Images of registries that a rendered text names, each with the first step that names it: they are pulled before any
 * step runs, since a step runs where there is no credential. A name with a variable is left out: the image has to be one
 * that everybody may read.
 */
export function imagesOfContainerfile(rendered: string): readonly { readonly image: string; readonly step: string }[] {
  const found = new Map<string, string>();
  for (const { image, step } of namedImages(stepsOfContainerfile(rendered), []))
    if (!found.has(image)) found.set(image, step);
  return [...found].map(([image, step]) => ({ image, step }));
}

/**
 * Names of images in instructions, each with its instruction. Left out: stages, `scratch`, and names with variables.
 *
 * @param before names of stages that the instructions may refer to, in lower case.
 */
function* namedImages<T extends Pick<Instruction, "name" | "arguments">>(
  instructions: readonly T[],
  before: readonly string[],
): Generator<T & { readonly image: string }> {
  const stages = new Set(before);
  const isImage = (name: string) => !/^\d+$|^scratch$|[$]/.test(name) && !stages.has(name.toLowerCase());
  for (const { instruction, sources, stage } of sourcesOf(instructions)) {
    for (const image of sources) if (isImage(image)) yield { ...instruction, image };
    if (stage !== undefined) stages.add(stage.toLowerCase());
  }
}

/** The images and stages that instructions take something from, by the words that name them, and the stage that each begins. */
function* sourcesOf<T extends Pick<Instruction, "name" | "arguments">>(
  instructions: readonly T[],
): Generator<{ readonly instruction: T; readonly sources: readonly string[]; readonly stage: string | undefined }> {
  for (const instruction of instructions) {
    const inner = innerInstruction(instruction);
    const { options = [], rest = "" } = takesOptions.has(inner.name) ? (optionsOf(inner.arguments) ?? {}) : {};
    if (instruction.name === "FROM") {
      const [image, , stage] = rest.split(/\s+/).filter((word) => word !== "");
      yield { instruction, sources: image === undefined ? [] : [image], stage };
      continue;
    }
    const sources = options.flatMap((option) => {
      const [, of, value = ""] = /^--(from|mount)=(.*)$/.exec(option) ?? [];
      return of === "from" ? [unquoted(value)] : of === "mount" ? sourcesOfMount(value) : [];
    });
    yield { instruction, sources, stage: undefined };
  }
}

const unquoted = (text: string): string => text.replaceAll(/^["']|["']$/g, "");

/** Images that a mount names as its source. */
const sourcesOfMount = (mount: string): readonly string[] =>
  unquoted(mount)
    .split(",")
    .map(unquoted)
    .flatMap((option) => (/^from=/i.test(option) ? [option.slice("from=".length)] : []));
