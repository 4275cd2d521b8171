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
}

const own = "machineconfiguration.openshift.io";
const config = "config.openshift.io";

/** Of OpenShift's kinds (config.openshift.io), only suites of features that are on by default are played. */
export const agreement: readonly KindAgreement[] = [
  { definition: `containerruntimeconfigs.${own}`, cases: 36 },
  {
    definition: `controllerconfigs.${own}`,
    cases: 36,
    differences: [
      {
        cases: [
          "AWSDualStackInstall: Should be able to create a minimal ControllerConfig",
          "AWSDualStackInstall: Should be able to set ipFamily to DualStackIPv6Primary in AWS platform status",
          "AWSDualStackInstall: Should not allow changing ipFamily once set in AWS platform status",
          "AzureDualStackInstall: Should be able to create a minimal ControllerConfig",
          "AzureDualStackInstall: Should be able to set ipFamily to DualStackIPv4Primary in Azure platform status",
          "AzureDualStackInstall: Should not allow changing ipFamily once set in Azure platform status",
          "GCPSovereignCloudInstall: Should be able to set a valid GCP universeDomain in ControllerConfig",
          "GCPSovereignCloudInstall: Should not allow an invalid GCP universeDomain in ControllerConfig",
          "VSphereMultiVCenterDay2: Should not be able to set vcenters to empty array once configured",
          "VSphereMultiVCenterDay2: Should not be able to remove vcenters field entirely once configured",
        ],
        reason:
          "spec.infra and spec.dns hold the cluster's own objects as they are: their kinds have defaulted and checked them, and the operator copies them. The definition keeps every field and repeats no rule.",
      },
    ],
  },
  { definition: `internalreleaseimages.${own}`, cases: 20 },
  { definition: `kubeletconfigs.${own}`, cases: 23 },
  { definition: `machineconfignodes.${own}`, cases: 20 },
  { definition: `machineconfigpools.${own}`, cases: 22 },
  { definition: `machineconfigs.${own}`, cases: 1 },
  { definition: `machineosbuilds.${own}`, cases: 7 },
  { definition: `machineosconfigs.${own}`, cases: 9 },
  { definition: `osimagestreams.${own}`, cases: 53 },
  { definition: `pinnedimagesets.${own}`, cases: 4 },
  { definition: "machineconfigurations.operator.openshift.io", cases: 56 },
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
  const rows = agreement.map(({ definition, cases, differences = [] }) => {
    const differ = differences.reduce((sum, difference) => sum + difference.cases.length, 0);
    const reasons = differences.map(({ cases: of, reason }) => `${of.length}: ${reason}`).join(" ");
    return `| ${definition} | ${cases} | ${cases - differ} | ${reasons} |`;
  });
  return `## openshift/api's own suites\n\nopenshift/api tests its definitions with suites of objects. \`make test-api-suites\` plays those of the kinds that this suite installs, on the embedded API server and on kube-apiserver. A case agrees if the same is accepted and refused, at the same field, and the same is stored; texts are our own. Written from \`test/api-suites/agreement.ts\`, which the tests \`api-suites-1\` and \`api-suites-2\` compare with what happens.\n\n| definition | cases | agree | differ, and why |\n| --- | --- | --- | --- |\n${rows.join("\n")}`;
}
