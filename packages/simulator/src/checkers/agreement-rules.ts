/** What servers apply: Z3, Z5, Z17 and D7. */
import { hexZxid } from '@meerkat/protocol';
import type { Cluster } from './cluster.ts';
import type { ServerGhost } from './server-ghost.ts';

export class AgreementRules {
  readonly #cluster: Cluster;
  /** Digest of the tree after a txn, and the server that reported it first. */
  readonly #digests: Map<number, { readonly digest: bigint; readonly server: number }> = new Map();

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  onApplied(server: ServerGhost, zxid: number, hash: number | null, digest: bigint | null): void {
    const { committed } = this.#cluster;
    const index = committed.indexOf(zxid);
    if (index < 0) {
      const found = `the committed txns end at ${hexZxid(committed.last)}`;
      this.#cluster.report(
        'Z5',
        [server.id],
        `server ${server.id} applies ${hexZxid(zxid)}, which is not committed; ${found}`,
      );
    } else if (hash !== null && committed.hashes[index] !== hash) {
      this.#cluster.report(
        'Z5',
        [server.id],
        `server ${server.id} applies another txn than was committed as ${hexZxid(zxid)}`,
      );
    }
    if (server.applied !== null && index >= 0) {
      const expected = committed.zxids[committed.indexOf(server.applied) + 1];
      if (expected !== zxid) {
        const next = expected === undefined ? 'nothing' : hexZxid(expected);
        const message = `server ${server.id} applies ${hexZxid(zxid)} after ${hexZxid(server.applied)}, where ${next} comes next`;
        this.#cluster.report('Z3', [server.id], message);
      }
    }
    server.applied = zxid;
    if (digest !== null) this.#checkDigest(server, zxid, digest);
  }

  /** D7: when it is applied. */
  checkDurable(server: ServerGhost, zxid: number): void {
    if (server.isVoter && zxid > server.log.durableLast) {
      const message = `server ${server.id} applies ${hexZxid(zxid)}, and its disk holds txns up to ${hexZxid(server.log.durableLast)}`;
      this.#cluster.report('D7', [server.id], message);
    }
  }

  /** A server has found that its tree differs from the digest of its leader, or of its own log. */
  onDigestMismatch(server: ServerGhost, zxid: number, expected: bigint, actual: bigint): void {
    const digests = `0x${expected.toString(16)} is expected, 0x${actual.toString(16)} is found`;
    this.#cluster.report('Z17', [server.id], `server ${server.id} has another tree at ${hexZxid(zxid)}: ${digests}`);
  }

  #checkDigest(server: ServerGhost, zxid: number, digest: bigint): void {
    const known = this.#digests.get(zxid);
    if (known === undefined) {
      this.#digests.set(zxid, { digest, server: server.id });
      return;
    }
    if (known.digest === digest) return;
    const digests = `0x${digest.toString(16)} at ${server.id}, 0x${known.digest.toString(16)} at ${known.server}`;
    this.#cluster.report(
      'Z17',
      [server.id, known.server],
      `the trees differ after ${hexZxid(zxid)}: their digests are ${digests}`,
    );
  }
}
