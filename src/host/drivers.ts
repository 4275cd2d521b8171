import type { Host } from "./host.ts";

/** What is known of the drivers: said by `mco version --json` and in docs/reference/host-drivers.md. */
export interface DriverFacts {
  readonly name: Host["driver"];
  /** Whether it was seen at work on the machines that it is for. */
  readonly proven: boolean;
  readonly machines: string;
  readonly note: string;
}

export const hostDrivers: readonly DriverFacts[] = [
  {
    name: "directory",
    proven: true,
    machines: "those of `mco up`: a root file system in a folder",
    note: "units never execute, packages and kernels are names",
  },
  {
    name: "memory",
    proven: true,
    machines: "those of tests and simulation",
    note: "nothing of it outlives its process",
  },
  {
    name: "rpm-ostree",
    proven: false,
    machines:
      "real ones, by the command lines of rpm-ostree, systemctl, podman and their like; files and units where ostree did not boot them",
    note: "not proven on hardware: tested on a fake that enforces the documented contract of these programs",
  },
];
