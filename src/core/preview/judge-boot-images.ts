import type { MachineConfiguration } from "../../api/kinds/machine-configuration.ts";
import type { OSImageFinding } from "./os-image-demands.ts";

/**
 * The oldest boot images from which machines join: OCPVersionBootImageSkewLimit and RHCOSVersionBootImageSkewLimit of
 * openshift/machine-config-operator, pkg/controller/common/constants.go (main).
 */
const oldest = { release: [4, 13], system: [9, 2] } as const;

const field = "spec.bootImageSkewEnforcement of MachineConfiguration cluster";

/** Whether machines that join later can start, by the boot image that the MachineConfiguration names. */
export function judgeBootImages(configuration: MachineConfiguration | undefined): readonly OSImageFinding[] {
  const named = namedBootImage(configuration);
  if (named === undefined)
    return [
      {
        verdict: "unknown",
        about: "bootImage",
        reason: `boot images of machines that join later are not known here: one that is too old for the stream fails its first boot; ${field} may name the oldest one in use`,
      },
    ];
  if (!isOld(named)) return [];
  return [
    {
      verdict: "breaks",
      about: "bootImage",
      whom: "machines that join later",
      reason: `the boot image ${named.text} is older than the oldest from which machines reach the stream, OpenShift ${oldest.release.join(".")} or RHCOS ${oldest.system.join(".")}`,
      remedy: `let them start from a newer boot image, and then name it in ${field}`,
    },
  ];
}

interface BootImage {
  readonly text: string;
  readonly of: "release" | "system";
  readonly version: readonly [number, number];
}

/** By hand in the spec, or as the controller found it. */
function namedBootImage(configuration: MachineConfiguration | undefined): BootImage | undefined {
  const wanted = configuration?.spec.bootImageSkewEnforcement;
  const found = configuration?.status?.bootImageSkewEnforcementStatus;
  const record = wanted?.mode === "Manual" ? wanted.manual : (found?.manual ?? found?.automatic);
  const { ocpVersion, rhcosVersion } = record ?? {};
  if (ocpVersion !== undefined) return bootImageOf(`of OpenShift ${ocpVersion}`, "release", ocpVersion);
  return rhcosVersion === undefined ? undefined : bootImageOf(`RHCOS ${rhcosVersion}`, "system", rhcosVersion);
}

function bootImageOf(text: string, of: BootImage["of"], version: string): BootImage | undefined {
  const [, major, minor] = /^(\d+)\.(\d+)\./.exec(version) ?? [];
  if (major === undefined || minor === undefined) return undefined;
  // Before 9.6, RHCOS has the release in its major number: 48.84, 413.92.
  const release = of === "system" && Number(major) >= 40 ? /^4(\d+)$/.exec(major)?.[1] : undefined;
  return release === undefined
    ? { text, of, version: [Number(major), Number(minor)] }
    : { text, of: "release", version: [4, Number(release)] };
}

function isOld({ of, version: [major, minor] }: BootImage): boolean {
  const [leastMajor, leastMinor] = oldest[of];
  return major < leastMajor || (major === leastMajor && minor < leastMinor);
}
