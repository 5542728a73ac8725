/** Faults that are put into a process of Node.js before its program starts: environments for it. */

/** The log's disk takes `ms` milliseconds longer for each call that writes or syncs. */
export function withSlowLog(ms: number): Record<string, string> {
  return { ...preload(new URL('preloaded/slow-log.mjs', import.meta.url).href), SLOW_LOG_MS: String(ms) };
}

/** The disk is full as soon as there is a file `mark`. */
export function withFullDisk(mark: string): Record<string, string> {
  return { ...preload(new URL('preloaded/full-disk.mjs', import.meta.url).href), FULL_DISK_MARK: mark };
}

/** A few lines of JavaScript run first. */
export function withCode(source: string): Record<string, string> {
  return preload(`data:text/javascript,${encodeURIComponent(source)}`);
}

function preload(url: string): Record<string, string> {
  return { NODE_OPTIONS: `--import=${url}` };
}
