import { suiteNamespaces } from "../../api/names.ts";

/** Whether the suite's own pods are in a namespace: only these run its program, and accounts of tenants create none there. */
export const isSuiteNamespace = (name: string): boolean => suiteNamespaces.includes(name);
