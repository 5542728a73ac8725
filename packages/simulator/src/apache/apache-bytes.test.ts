/** Compares the bytes that the peer sends with recordings of 3.8.0 servers. */
import { readFileSync } from 'node:fs';
import { JuteReader, JuteWriter, parseMembership, readElectionNotification } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { SeededRandom } from '../seeded-random.ts';
import { Timeline } from '../timeline.ts';
import { VirtualNetwork } from '../virtual-network.ts';
import { ApacheDatabase } from './apache-database.ts';
import { ApachePeer } from './apache-peer.ts';

const RECORDED = readFileSync(new URL('../../../protocol/src/records/apache-quorum.txt', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => line.split(' '));

const bytesOfHex = (hex: string) => Uint8Array.from(Buffer.from(hex, 'hex'));
const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
const recorded = (...words: readonly string[]) =>
  RECORDED.filter((line) => words.every((word, i) => line[i] === word)).map((line) => line.at(-1) ?? '');

/** The recorded ensemble: three voters and an observer on one host. */
function makeEnsemble() {
  const configText = readElectionNotification(
    new JuteReader(bytesOfHex(recorded('notification')[0] ?? '')),
  )?.configText;
  const membership = parseMembership(configText ?? '');
  if ('fault' in membership) throw new Error(membership.fault);
  const timeline = new Timeline();
  const random = new SeededRandom(1, 'bytes');
  const network = new VirtualNetwork(timeline, random, {
    delayMinMs: 0,
    delayMaxMs: 1,
    splitChance: 0,
    mergeChance: 0,
  });
  let sent = '';
  network.tap = {
    onOpen: () => {},
    onBytes: (_connection, _from, stage, bytes) => {
      if (stage === 'sent') sent += `${hexOf(bytes)} `;
    },
    onClose: () => {},
  };
  const peers = membership.members.map(({ serverId }) => {
    return new ApachePeer({ serverId, membership, timeline, network, random: random.fork(`${serverId}`) });
  });
  for (const peer of peers) peer.start();
  return {
    peers,
    sent: () => sent,
    advance: (ms: number) => {
      const endMs = timeline.nowMs + ms;
      while (timeline.step(endMs));
    },
  };
}

describe('an ensemble like the recorded one', () => {
  const ensemble = makeEnsemble();
  ensemble.advance(3000);
  const session = ensemble.peers[1]!.createSession();
  ensemble.advance(100);
  ensemble.peers[1]!.sync(session.sessionId);
  ensemble.advance(3000);
  const sent = ensemble.sent();
  const [hello = ''] = recorded('hello');
  // Votes of the first round, before the membership had a version.
  const votes = recorded('notification').slice(0, 4);
  const learner = RECORDED.filter(([side]) => side === 'learner');
  const leader = RECORDED.filter(([side]) => side === 'leader');
  const first = (lines: readonly string[][], name: string) => lines.find((line) => line[1] === name)?.[2] ?? '';

  test.each([
    ['the hello', hello],
    ['the vote of a server for itself', votes[0] ?? ''],
    ['the vote of an observer', votes[1] ?? ''],
    ['the answer of a follower', votes[2] ?? ''],
    ['the answer of the leader', votes[3] ?? ''],
    ['OBSERVERINFO', first(learner, 'OBSERVERINFO')],
    ['FOLLOWERINFO', first(learner, 'FOLLOWERINFO')],
    ['ACKEPOCH', first(learner, 'ACKEPOCH')],
    ['ACK of NEWLEADER', first(learner, 'ACK')],
    ['ACK of a proposal', learner.filter((line) => line[1] === 'ACK')[1]?.[2] ?? ''],
    ['LEADERINFO', first(leader, 'LEADERINFO')],
    ['DIFF', first(leader, 'DIFF')],
    ['UPTODATE', first(leader, 'UPTODATE')],
    ['COMMIT', first(leader, 'COMMIT')],
    ['SYNC', first(leader, 'SYNC')],
  ])('sends %s byte for byte', (_what, hex) => {
    expect(hex).not.toBe('');
    expect(sent.includes(hex)).toBe(true);
  });

  test('asks for a session as it was asked for, but for its id and timeout', () => {
    const [request = ''] = learner.filter((line) => line[1] === 'REQUEST').map((line) => line[2] ?? '');
    const idAt = 2 * 16;
    const id = session.sessionId.toString(16).padStart(16, '0');
    const timeout = (30_000).toString(16).padStart(8, '0');
    const [before, after] = [request.slice(0, idAt), request.slice(idAt + 16).replace('00004e20', timeout)];
    expect(sent).toContain(`${before}${id}${after}`);
  });
});

test('a recorded snapshot is read to its end and written again byte for byte', () => {
  const stream = bytesOfHex(recorded('stream', 'leader')[0] ?? '');
  // LEADERINFO has a length of 4, SNAP none.
  const snapshot = stream.slice(24 + 20);
  const database = new ApacheDatabase(500, 'version=0');
  const length = database.readSnapshot(snapshot);
  const signature = new JuteWriter();
  signature.ustring('BenWasHere');
  expect(hexOf(snapshot.slice(length, length + 14))).toBe(hexOf(signature.toBytes()));
  expect(hexOf(database.writeSnapshot())).toBe(hexOf(snapshot.slice(0, length)));
  expect(database.ephemeralsOf(database.sessions.keys().next().value ?? 0n)).toEqual(['/o/e']);
  // Nothing is consumed while it is incomplete.
  const other = new ApacheDatabase(500, 'version=0');
  for (let end = 0; end < length; end += 7) expect(other.readSnapshot(snapshot.slice(0, end))).toBe(0);
  expect(other.sessions.size).toBe(0);
});
