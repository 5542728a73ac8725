import { type Acl, OPEN_ACL, type PersistedStat, type Zxid } from '@meerkat/protocol';
import { ZnodeKind } from '../tree/znode-kind.ts';
import { NO_ZNODE, type ZnodeNumber } from '../tree/znode-rows.ts';

/** A znode as it will be once the proposals in flight are applied (ChangeRecord). */
export class PendingZnode implements PersistedStat {
  readonly path: string;
  /** `hashOf` the path. */
  readonly hash: number;
  /** The txn that changes it to this state. */
  zxid: Zxid;
  exists = true;
  /** Its number in the tree; NO_ZNODE when a proposal in flight creates it. */
  znode: ZnodeNumber = NO_ZNODE;
  kind: ZnodeKind = ZnodeKind.persistent;
  acl: readonly Acl[] = OPEN_ACL;
  childCount = 0;
  /** Bytes of data, for quotas. */
  dataLength = 0;
  czxid = 0;
  mzxid = 0;
  ctime = 0;
  mtime = 0;
  version = 0;
  cversion = 0;
  aversion = 0;
  ephemeralOwner = 0n;
  pzxid = 0;
  /** 0 when it does not exist, when digests are disabled, and below /zookeeper/. */
  digest = 0;
  /** The digest when it was found; `put` subtracts it from the tree's digest. */
  digestBefore = 0;
  /** Once put, it is the state after a proposal in flight, and only that proposal may still change it. */
  isPut = false;

  constructor(path: string, hash: number, zxid: Zxid) {
    this.path = path;
    this.hash = hash;
    this.zxid = zxid;
  }

  copy(): PendingZnode {
    const copy = new PendingZnode(this.path, this.hash, this.zxid);
    copy.znode = this.znode;
    copy.kind = this.kind;
    copy.acl = this.acl;
    copy.childCount = this.childCount;
    copy.dataLength = this.dataLength;
    copy.czxid = this.czxid;
    copy.mzxid = this.mzxid;
    copy.ctime = this.ctime;
    copy.mtime = this.mtime;
    copy.version = this.version;
    copy.cversion = this.cversion;
    copy.aversion = this.aversion;
    copy.ephemeralOwner = this.ephemeralOwner;
    copy.pzxid = this.pzxid;
    copy.digest = this.digest;
    copy.digestBefore = this.digest;
    return copy;
  }
}
