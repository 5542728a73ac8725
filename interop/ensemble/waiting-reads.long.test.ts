import { afterEach, describe, expect, onTestFailed, test } from 'vitest';
import { FrameStream } from '../harness/frame-stream.ts';
import { describeWith } from '../harness/peers.ts';
import { connectRequest, Op, readReply } from '../harness/raw-client.ts';
import { OPEN_ACL, record } from '../harness/record-builder.ts';
import { fourLetterWord, type ServerKind } from '../harness/server-process.ts';
import { Ensemble, type Member, THREADED } from './ensemble.ts';

const READS_A_CHUNK = 10_000;
/** `globalOutstandingLimit`, plus the test's own queries. */
const OUTSTANDING_MAX = 1000 + 10;
/** On a busy machine its threads accept hundreds more before they check the limit: up to 1,260 were observed. */
const OUTSTANDING_MAX_OF_APACHE = 5000;
/** 170 bytes were measured for each queued read: a million would take 160 MB. */
const GROWTH_BYTES_MAX = 64 * 1024 * 1024;
/** With a million replies of 90 bytes in flight, 60 to 140 MB were measured, mostly garbage. Queued: 250 MB. */
const ANSWERED_GROWTH_BYTES_MAX = 192 * 1024 * 1024;
const TIMEOUT_MS = 300_000;

let ensemble: Ensemble | null = null;
afterEach(async () => {
  await ensemble?.dispose();
  ensemble = null;
});

// Four times the limit is enough to show that it stops reading; 100,000 took 13 s more CPU time.
describeWith(['apache'], "on Apache's servers", () => testReads('apache', 4 * OUTSTANDING_MAX_OF_APACHE));
describe('on ours', () => testReads('meerkat', 1_000_000));

/** @param count reads that a client sends after one write */
function testReads(kind: ServerKind, count: number): void {
  test.each(['leader', 'follower'] as const)(
    'a %s stops reading requests of a client after a write without a quorum, and answers them later',
    { timeout: TIMEOUT_MS },
    async (role) => {
      // The timeouts are long enough that the paused servers do not cause an election.
      const place = kind === 'meerkat' ? THREADED : { kind };
      ensemble = await Ensemble.start([place, place], { syncLimit: 200 });
      onTestFailed(() => console.log(ensemble?.logs));
      const leader = await ensemble.leader();
      const follower = ensemble.members.find((member) => member !== leader)!;
      const [asked, frozen] = role === 'leader' ? [leader, follower] : [follower, leader];
      const stream = await FrameStream.open(asked.server.port);
      stream.send(connectRequest({ timeoutMs: 60_000 }));
      expect(await stream.next()).not.toBeNull();
      const before = asked.server.residentBytes();

      await frozen.server.pause();
      stream.send(record().int(1).int(Op.create).ustring('/written').buffer('').acls(OPEN_ACL).int(0).build());
      const reads = readFrames();
      for (let sent = 0; sent < count; sent += READS_A_CHUNK) stream.sendRaw(reads);
      await untilItStopsReading(asked);
      expect(await outstandingOf(asked)).toBeLessThanOrEqual(
        kind === 'meerkat' ? OUTSTANDING_MAX : OUTSTANDING_MAX_OF_APACHE,
      );
      if (kind === 'meerkat') {
        expect(stream.unsentBytes).toBeGreaterThan(0);
        expect(asked.server.residentBytes() - before).toBeLessThan(GROWTH_BYTES_MAX);
      }

      frozen.server.resume();
      expect(readReply((await stream.next())!)).toMatchObject({ xid: 1, error: 0 });
      for (let read = 0; read < count; read++) {
        const { xid, error } = readReply((await stream.next())!);
        if (xid !== 2 || error !== 0) throw new Error(`read ${read} was answered with xid ${xid} and error ${error}`);
      }
      // Apache's server decrements its counter some time after the reply.
      while ((await outstandingOf(asked)) !== 0) {}
      if (kind === 'meerkat') expect(asked.server.residentBytes() - before).toBeLessThan(ANSWERED_GROWTH_BYTES_MAX);
      stream.destroy();
    },
  );
}

/** Reads of the znode that the write creates, each as a frame with xid 2. */
function readFrames(): Buffer {
  const read = record().int(2).int(Op.getData).ustring('/written').bool(false).build();
  const frame = record().buffer(read).build();
  return Buffer.concat(Array.from({ length: READS_A_CHUNK }, () => frame));
}

async function outstandingOf({ server }: Member): Promise<number> {
  return Number(/^Outstanding: (\d+)$/m.exec(await fourLetterWord(server.port, 'srvr'))?.[1]);
}

/** Waits until the server receives no requests other than this function's queries. */
async function untilItStopsReading({ server }: Member): Promise<void> {
  let received = -1;
  for (let same = 0; same < 5; ) {
    const now = Number(/^Received: (\d+)$/m.exec(await fourLetterWord(server.port, 'srvr'))?.[1]);
    same = now <= received + 1 && received > OUTSTANDING_MAX - 20 ? same + 1 : 0;
    received = now;
  }
}
