/** ZooTrace's mask: kept for `gtmk` and `stmk`; nothing depends on it. */
export class TraceMask {
  /** Session and server-to-server packets, and sessions. */
  value = 306n;
}
