/** What a process renders, and which of the sources it makes itself. */
export interface RenderOptions {
  readonly version: string;
  readonly generatorVersion: string;
  /** `absent`: this process makes no base configurations, so rendering does not wait for them. */
  readonly baseConfigs: "awaited" | "absent";
  /** `awaited`: this process turns objects with settings into MachineConfigs. */
  readonly settings: "awaited" | "absent";
  /** `awaited`: this process writes the registries of machines. */
  readonly registries: "awaited" | "absent";
}
