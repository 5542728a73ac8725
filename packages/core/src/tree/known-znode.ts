/** What a scan has computed of a znode outside /zookeeper with a path in ASCII. One object is used for all of them. */
export interface KnownZnode {
  /** `hashOfBytes` of its path. */
  hash: number;
  /** Unsigned. */
  digest: number;
}
