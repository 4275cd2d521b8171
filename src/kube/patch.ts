export type Patch =
  | {
      readonly type: "json";
      readonly operations: readonly { op: "add" | "remove" | "replace" | "test"; path: string; value?: unknown }[];
    }
  | { readonly type: "merge"; readonly body: unknown };
