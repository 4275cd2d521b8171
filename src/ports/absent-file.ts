/** Whether a failure of the file system means that the path does not exist. */
export const isAbsent = (error: unknown): boolean =>
  ["ENOENT", "ENOTDIR"].includes((error as { readonly code?: string }).code ?? "");

/** `undefined` if the path does not exist; any other failure throws. */
export async function orUndefined<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}
