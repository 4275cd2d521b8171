import { type BuildFailure, type FailureClass, classifyImageError } from "../core/build/build-failures.ts";
import { McoError } from "../api/errors.ts";
import type { ImageStore } from "./image-store.ts";

const step = "verify";

/**
 * Requests a pushed image as machines will: by its digest, with the pull credentials.
 *
 * @param architecture of the machines.
 * @returns what keeps them from using it.
 */
export async function pushedProblem(
  store: Pick<ImageStore, "inspect">,
  image: string,
  architecture: string,
  signal: AbortSignal,
): Promise<BuildFailure | undefined> {
  const failed = (failureClass: FailureClass, cause: string): BuildFailure => ({
    class: failureClass,
    step,
    exitCode: 1,
    cause,
    excerpt: "",
  });
  try {
    const found = await store.inspect(image, signal);
    if (found.is === "unreachable") return failed("RegistryUnreachable", found.problem);
    if (found.is !== "image")
      return failed("VerifyFailed", `the pull credentials do not get the image: ${found.problem}`);
    if (found.architecture !== architecture)
      return failed(
        "VerifyFailed",
        `the image is for ${found.architecture || "no architecture"}, and the machines are ${architecture}`,
      );
    return undefined;
  } catch (error) {
    if (!(error instanceof McoError)) throw error;
    return classifyImageError(step, error);
  }
}
