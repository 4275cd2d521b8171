/**
 * Exit codes of every command. Commands that compare (`plan`) use 0, 1 and 2 as diff(1) with `--detailed-exitcode`
 * tools do; others 0 and 1; a command line that is not understood is EX_USAGE of sysexits(3).
 */
export const exitCodes = { ok: 0, failed: 1, change: 2, usage: 64 } as const;
