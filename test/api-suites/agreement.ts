/** A case by its suite and its name: `VSphereMultiVCenterDay2: Should not be able to …`. */
export interface Difference {
  readonly cases: readonly string[];
  readonly reason: string;
}

/** How far one kind agrees with the suites that openshift/api has for it. */
export interface KindAgreement {
  readonly definition: string;
  readonly cases: number;
  readonly differences?: readonly Difference[];
  /** What this suite does differently on purpose where no case looks. */
  readonly beyond?: string;
}

const own = "machineconfiguration.openshift.io";
const config = "config.openshift.io";
const anyFolders =
  "an image may have any number of folders and a host without a dot: registries with nested projects, and those of one machine, have such names";

/** Of OpenShift's kinds (config.openshift.io), only suites of features that are on by default are played. */
export const agreement: readonly KindAgreement[] = [
  { definition: `containerruntimeconfigs.${own}`, cases: 36 },
  {
    definition: `controllerconfigs.${own}`,
    cases: 36,
    beyond:
      "fields of every feature are kept: it holds copies of the cluster's own objects, and loses nothing that these have",
  },
  { definition: `internalreleaseimages.${own}`, cases: 20 },
  { definition: `kubeletconfigs.${own}`, cases: 23 },
  {
    definition: `machineconfignodes.${own}`,
    cases: 20,
    beyond: `configImage is there in every set of features, because image pools are; ${anyFolders}; generations of a pinned image set may fall, because a set that is created again begins at 1`,
  },
  { definition: `machineconfigpools.${own}`, cases: 22 },
  { definition: `machineconfigs.${own}`, cases: 1 },
  { definition: `machineosbuilds.${own}`, cases: 7, beyond: anyFolders },
  { definition: `machineosconfigs.${own}`, cases: 9, beyond: anyFolders },
  { definition: `osimagestreams.${own}`, cases: 53, beyond: anyFolders },
  { definition: `pinnedimagesets.${own}`, cases: 4, beyond: anyFolders },
  {
    definition: "machineconfigurations.operator.openshift.io",
    cases: 56,
    beyond: "a unit may be an instance: getty@tty1.service",
  },
  { definition: `apiservers.${config}`, cases: 8 },
  { definition: `clusterimagepolicies.${config}`, cases: 30 },
  { definition: `clusteroperators.${config}`, cases: 1 },
  { definition: `featuregates.${config}`, cases: 10 },
  { definition: `imagedigestmirrorsets.${config}`, cases: 1 },
  { definition: `imagepolicies.${config}`, cases: 30 },
  { definition: `images.${config}`, cases: 30 },
  { definition: `imagetagmirrorsets.${config}`, cases: 1 },
  { definition: `nodes.${config}`, cases: 8 },
];

/** The table of docs/conformance.md. */
export function agreementTable(): string {
  const rows = agreement.map(({ definition, cases, differences = [], beyond = "" }) => {
    const differ = differences.reduce((sum, difference) => sum + difference.cases.length, 0);
    const reasons = differences.map(({ cases: of, reason }) => `${of.length}: ${reason}`).join(" ");
    return `| ${definition} | ${cases} | ${cases - differ} | ${reasons} | ${beyond} |`;
  });
  return `## openshift/api's own suites\n\nopenshift/api tests its definitions with suites of objects. \`make test-api-suites\` plays those of the kinds that this suite installs, on the embedded API server and on kube-apiserver. A case agrees if the same is accepted and refused, at the same field, and the same is stored; texts are our own. Written from \`test/api-suites/agreement.ts\`, which the tests \`api-suites-1\` and \`api-suites-2\` compare with what happens.\n\n| definition | cases | agree | differ, and why | beyond the cases |\n| --- | --- | --- | --- | --- |\n${rows.join("\n")}`;
}
