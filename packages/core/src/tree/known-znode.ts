/**
 * What a scan has computed for a znode outside /zookeeper with a path in ASCII. One object is reused for all of them.
 */
export interface KnownZnode {
  /** `hashOfBytes` of its path. */
  hash: number;
  /** Unsigned. */
  digest: number;
}
