/** Environments that preload faults into a Node.js process. */

/** Each write or sync of the log takes `ms` milliseconds longer. */
export function withSlowLog(ms: number): Record<string, string> {
  return { ...preload(new URL('preloaded/slow-log.mjs', import.meta.url).href), SLOW_LOG_MS: String(ms) };
}

/** The disk is full once the file `mark` exists. */
export function withFullDisk(mark: string): Record<string, string> {
  return { ...preload(new URL('preloaded/full-disk.mjs', import.meta.url).href), FULL_DISK_MARK: mark };
}

/** Runs some JavaScript first. */
export function withCode(source: string): Record<string, string> {
  return preload(`data:text/javascript,${encodeURIComponent(source)}`);
}

function preload(url: string): Record<string, string> {
  return { NODE_OPTIONS: `--import=${url}` };
}
