import { McoError } from "../../api/errors.ts";

/** A failure of the system becomes ours, with the path of the machine; a failure that has a path keeps it. */
export function asFailure(path: string, error: unknown): unknown {
  if (error instanceof McoError || !(error instanceof Error) || !("code" in error) || typeof error.code !== "string")
    return error;
  return new McoError("MCO_HOST_COMMAND_FAILED", { path, problem: error.code }, { cause: error });
}

/** What is done for one path among many: its failure names this path. */
export async function namingFailure<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw asFailure(path, error);
  }
}
