/**
 * Exit codes of every command. Commands that compare (`plan`) use 0, 1 and 2 as diff(1) with `--detailed-exitcode`
 * tools do; others 0 and 1; a command line that is not understood is EX_USAGE of sysexits(3). A
 * command whose reader of standard output ended first has the code that a shell gives to a program that SIGPIPE ended.
 */
export const exitCodes = { ok: 0, failed: 1, change: 2, usage: 64, readerGone: 141 } as const;
