import type { MachineSet } from "../../api/foreign/openshift.ts";
import { annotations, labels } from "../../api/names.ts";
import { own } from "../../api/schema/own.ts";
import { isRecord } from "../../ignition/shape.ts";
import type { BootImagePlatform, BootImages } from "./boot-image-stream.ts";
import { shellWord } from "../text/shell-word.ts";

/** One operation of a JSON patch. */
interface Operation {
  readonly op: "add" | "replace" | "test";
  readonly path: string;
  readonly value: unknown;
}

/** What becomes of the boot image of a MachineSet. */
export type BootImageDecision =
  | { readonly verdict: "current"; readonly image: string }
  | {
      readonly verdict: "update";
      readonly from: string;
      readonly to: string;
      /** Name of the Secret with the user data of the set's machines. */
      readonly userData: string | undefined;
      /** A patch of the boot image alone, which fails if somebody else wrote it meanwhile. */
      readonly operations: readonly Operation[];
    }
  /** The set is none of those whose boot images a release has. */
  | { readonly verdict: "ignored"; readonly because: string }
  /** The set keeps its boot image until an administrator decides. */
  | { readonly verdict: "skipped"; readonly because: string; readonly remedy: string }
  /** Something is wrong. */
  | { readonly verdict: "refused"; readonly because: string; readonly remedy: string };

export interface BootImageFacts {
  readonly platform: BootImagePlatform;
  readonly images: BootImages;
  /** Whether machines of several architectures can run in the cluster. */
  readonly isMultiArchitecture: boolean;
  /** Of the control plane, as Kubernetes calls it. */
  readonly architecture: string | undefined;
}

/** The stream whose boot images the release brings: openshift/machine-config-operator pkg/controller/bootimage (main). */
const managedStream = "rhel-9";
/** Where the boot images of CoreOS are public on GCP. */
const publicImages = "projects/rhcos-cloud/global/images/";
/** Kubernetes' names of architectures, and RPM's. */
const architectures: Readonly<Record<string, string>> = {
  amd64: "x86_64",
  arm64: "aarch64",
  ppc64le: "ppc64le",
  s390x: "s390x",
};

type Stays = Extract<BootImageDecision, { readonly verdict: "ignored" | "skipped" | "refused" }>;
const skipped = (because: string, remedy: string): Stays => ({ verdict: "skipped", because, remedy });

/**
 * Decides which boot image a MachineSet gets. Rules: openshift/machine-config-operator pkg/controller/bootimage (main). Where
 * the reference asks AWS whose an AMI is, and needs the cluster's credentials for that, this suite knows the AMIs of the
 * release, those that it gave itself, and those that an administrator vouches for. Where the reference writes an image three times
 * that somebody else sets back, it is not written again here: the set notes what it got last.
 */
export function decideBootImage(set: MachineSet, facts: BootImageFacts): BootImageDecision {
  const stays = whyLeftAlone(set);
  if (stays !== undefined) return stays;
  const spec = set.spec?.template?.spec?.providerSpec?.value;
  if (!isRecord(spec)) return skipped("its providerSpec has no value", "give the set the providerSpec of its platform");
  const architecture = architectureOf(set, spec, facts);
  if (typeof architecture !== "string") return architecture;
  switch (facts.platform) {
    case "AWS":
      return decideAmi(set, spec, architecture, facts.images);
    case "GCP":
      return decideDisks(set, spec, architecture, facts.images);
  }
}

function whyLeftAlone({ metadata, spec, status }: MachineSet): Stays | undefined {
  const ignored = (because: string): Stays => ({ verdict: "ignored", because });
  if (metadata.deletionTimestamp !== undefined) return ignored("it is being deleted");
  if (status?.authoritativeAPI === "ClusterAPI") return ignored("it is written by the cluster API");
  const [owner] = metadata.ownerReferences ?? [];
  if (owner !== undefined)
    return skipped(
      `it belongs to ${owner.kind} ${owner.name}, which may write it`,
      `set the boot image where ${owner.kind} ${owner.name} gets its own from`,
    );
  const stream = metadata.labels?.[labels.osStream];
  if (stream !== undefined && stream !== managedStream) return ignored(`its boot image is of the stream ${stream}`);
  if (spec?.template?.metadata?.labels?.[labels.osId] === "Windows") return ignored("its machines run Windows");
  return undefined;
}

/** RPM's name of the architecture of a set's machines. */
function architectureOf(
  { metadata }: MachineSet,
  spec: Readonly<Record<string, unknown>>,
  facts: BootImageFacts,
): string | Stays {
  const key = annotations.capacityLabels;
  const remedy = `write ${labels.arch}=amd64, or another architecture, into its annotation ${key}`;
  const written = metadata.annotations?.[key];
  if (written !== undefined) {
    const [named] = written
      .split(",")
      .map((label) => label.trim())
      .flatMap((label) => (label.startsWith(`${labels.arch}=`) ? [label.slice(labels.arch.length + 1)] : []));
    const known = named === undefined ? undefined : own(architectures, named);
    if (known !== undefined) return known;
    const because =
      named === undefined
        ? `its annotation ${key} names no architecture`
        : `its annotation ${key} names an unknown architecture, ${named}`;
    return { verdict: "refused", because, remedy };
  }
  if (facts.isMultiArchitecture)
    return skipped("nothing says which architecture its machines have, and the cluster has several", remedy);
  return (
    // Without a ClusterVersion, nothing says whether the cluster has several architectures.
    architectureOfImage(spec, facts) ??
    own(architectures, facts.architecture ?? "") ??
    skipped("the architecture of the control plane is not known", remedy)
  );
}

/** RPM's name of the architecture that the set's present image is for, if the release, or the name of the image, says it. */
function architectureOfImage(
  spec: Readonly<Record<string, unknown>>,
  { platform, images }: BootImageFacts,
): string | undefined {
  switch (platform) {
    case "AWS": {
      const ami = amiIn(spec);
      return Object.entries(images).find(([, { amis }]) => Object.values(amis).some((one) => one === ami))?.[0];
    }
    case "GCP": {
      const [disk] = bootDisksIn(spec);
      const isFor = (architecture: string): boolean =>
        own(images, architecture)?.gcp === disk?.from ||
        // No name of an image there has an underscore.
        disk?.from.endsWith(`-gcp-${architecture.replaceAll("_", "-")}`) === true;
      return disk === undefined ? undefined : Object.values(architectures).find(isFor);
    }
  }
}

function amiIn({ ami }: Readonly<Record<string, unknown>>): string | undefined {
  const id = isRecord(ami) ? ami["id"] : undefined;
  return typeof id === "string" && id !== "" ? id : undefined;
}

/** The images of the boot disks, with the places where they stand. */
function bootDisksIn(spec: Readonly<Record<string, unknown>>): readonly { path: string; from: string }[] {
  const disks: readonly unknown[] = Array.isArray(spec["disks"]) ? spec["disks"] : [];
  return disks.flatMap((disk, index) =>
    isRecord(disk) && disk["boot"] === true && typeof disk["image"] === "string"
      ? [{ path: `/disks/${index}/image`, from: disk["image"] }]
      : [],
  );
}

function decideAmi(
  set: MachineSet,
  spec: Readonly<Record<string, unknown>>,
  architecture: string,
  images: BootImages,
): BootImageDecision {
  const { ami, placement } = spec;
  const from = amiIn(spec);
  if (from === undefined)
    return skipped("it names its AMI by something else than an id", "write the id of an AMI into ami.id");
  const region = isRecord(placement) ? placement["region"] : undefined;
  if (typeof region !== "string" || region === "")
    return skipped("it names no region", "write its region into placement.region");
  const to = own(own(images, architecture)?.amis, region);
  if (to === undefined)
    return skipped(
      `the release has no AMI for ${architecture} in ${region}`,
      "copy one of another region there, and write its id into ami.id at each release",
    );
  if (from === to) return { verdict: "current", image: to };
  const isKnown =
    isVouchedFor(set, from) || Object.values(images).some(({ amis }) => Object.values(amis).includes(from));
  return (
    (isKnown ? undefined : unknown(set, `the AMI ${from}`, from)) ??
    whyNotAgain(set, { from, to }) ?? {
      verdict: "update",
      from,
      to,
      userData: userDataIn(spec),
      // An AMI is named by one of id, arn and filters.
      operations: patchOf(set, to, [{ path: "/ami", from: ami, to: { id: to } }]),
    }
  );
}

function decideDisks(
  set: MachineSet,
  spec: Readonly<Record<string, unknown>>,
  architecture: string,
  images: BootImages,
): BootImageDecision {
  const boot = bootDisksIn(spec);
  const [first] = boot;
  if (first === undefined)
    return skipped("none of its disks is a boot disk with an image", "name the image of its boot disk");
  const to = own(images, architecture)?.gcp;
  if (to === undefined)
    return skipped(
      `the release has no image for ${architecture} on GCP`,
      "write an image of your own into its boot disk",
    );
  const old = boot.filter(({ from }) => from !== to);
  const [changed] = old;
  if (changed === undefined) return { verdict: "current", image: to };
  const custom = old.find(({ from }) => !from.startsWith(publicImages) && !isVouchedFor(set, from));
  return (
    (custom === undefined ? undefined : unknown(set, `the image ${custom.from}`, custom.from)) ??
    whyNotAgain(set, { from: changed.from, to }) ?? {
      verdict: "update",
      from: changed.from,
      to,
      userData: userDataIn(spec),
      operations: patchOf(
        set,
        to,
        old.map(({ path, from }) => ({ path, from, to })),
      ),
    }
  );
}

/** Whether an image is what the suite gave the set last, or what an administrator says is one of CoreOS. */
const isVouchedFor = ({ metadata }: MachineSet, image: string): boolean =>
  metadata.annotations?.[annotations.managedBootImage] === image;

const unknown = ({ metadata: { name } }: MachineSet, what: string, image: string): Stays =>
  skipped(
    `${what} may belong to another user`,
    `if it is one of CoreOS as it was published: kubectl annotate machineset -n openshift-machine-api ${name} --overwrite ${shellWord(`${annotations.managedBootImage}=${image}`)}`,
  );

/** The suite gave the set the image before, and somebody else set another one. */
function whyNotAgain(
  { metadata }: MachineSet,
  { from, to }: { readonly from: string; readonly to: string },
): Stays | undefined {
  const key = annotations.managedBootImage;
  if (metadata.annotations?.[key] !== to) return undefined;
  return {
    verdict: "refused",
    because: `it was given ${to}, and another writer set it back to ${from}`,
    remedy: `take the set out of spec.managedBootImages; or, to have it written once more: kubectl annotate machineset -n openshift-machine-api ${metadata.name} --overwrite ${shellWord(`${key}=${from}`)}`,
  };
}

function userDataIn({ userDataSecret }: Readonly<Record<string, unknown>>): string | undefined {
  const name = isRecord(userDataSecret) ? userDataSecret["name"] : undefined;
  return typeof name === "string" && name !== "" ? name : undefined;
}

function patchOf(
  { metadata }: MachineSet,
  image: string,
  fields: readonly { readonly path: string; readonly from: unknown; readonly to: unknown }[],
): readonly Operation[] {
  const value = "/spec/template/spec/providerSpec/value";
  const key = annotations.managedBootImage.replaceAll("/", "~1");
  const note =
    metadata.annotations === undefined
      ? ([
          // Nobody else's annotation is lost.
          { op: "test", path: "/metadata/resourceVersion", value: metadata.resourceVersion ?? "" },
          { op: "add", path: "/metadata/annotations", value: { [annotations.managedBootImage]: image } },
        ] as const)
      : ([{ op: "add", path: `/metadata/annotations/${key}`, value: image }] as const);
  return [
    ...fields.map(({ path, from }) => ({ op: "test", path: `${value}${path}`, value: from }) as const),
    ...fields.map(({ path, to }) => ({ op: "replace", path: `${value}${path}`, value: to }) as const),
    ...note,
  ];
}
