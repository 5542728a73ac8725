import { DEFAULT_ENSEMBLE_OPTIONS, ServerStats, type ServerView } from '@meerkat/core';
import { type Membership, parseMembership } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { makeConfiguration } from '../config/options.ts';
import { Metrics } from '../metrics/metrics.ts';
import { MonitorBaseline } from '../metrics/monitor-baseline.ts';
import { makeFourLetterWords } from './four-letter-words.ts';
import { CLOCK, inOnePiece, NO_TLS, type Words } from './testing/asked-words.ts';
import { recorded } from './testing/recorded-answers.ts';
import { view } from './testing/server-views.ts';
import { TraceMask } from './trace-mask.ts';

describe("the text is that of Apache's server in an ensemble", () => {
  const membership = parseMembership(
    `server.1=127.0.0.1:33999:39111:participant
server.2=127.0.0.1:38609:43401:participant
server.3=127.0.0.1:45837:33347:observer
version=0`,
  ) as Membership;
  const sizes = { last: 89, min: 48, max: 89, reset() {} };
  const learners = [
    { serverId: 1, isObserver: false, isVoter: true, isSynchronized: true },
    { serverId: 3, isObserver: true, isVoter: false, isSynchronized: true },
  ];
  const roleOf = { leader: 'leading', follower: 'following', observer: 'observing' } as const;
  type Mode = keyof typeof roleOf;

  /** A server of the recorded ensemble, whose leader is server 2. */
  function member(mode: Mode, more: Partial<ServerView> = {}): Words {
    const serverId = { follower: 1, leader: 2, observer: 3 }[mode];
    const configuration = makeConfiguration('/data', {
      core: {
        serverId,
        tickTimeMs: 500,
        sessionTimeoutMinMs: 1000,
        connectionsPerHostMax: 0,
        ensemble: { ...DEFAULT_ENSEMBLE_OPTIONS, membership, initLimit: 20, syncLimit: 10 },
      },
      server: { fourLetterWordsAllowed: ['*'] },
    });
    const parts = {
      configuration,
      metrics: new Metrics(CLOCK, 1000),
      baseline: new MonitorBaseline(),
      traceMask: new TraceMask(),
    };
    const isLeader = mode === 'leader';
    const ensemble = {
      membership,
      hosts: () => [],
      role: roleOf[mode],
      leader: 2,
      connectedServers: [],
      observerMaster: mode === 'observer' ? 2 : null,
      feedsObservers: false,
      learners: () => (isLeader ? learners : []),
      pendingSyncs: 0,
      rememberedTxns: 0,
      proposalSizes: isLeader ? sizes : null,
    };
    const serverView = view({ serverId, lastZxid: 0x100000002, znodeCount: 6, ensemble, ...more });
    return inOnePiece(makeFourLetterWords({ ...parts, clientPort: () => 38731, ...NO_TLS })(serverView));
  }

  test.each(['leader', 'observer'] as const)('srvr of the %s', (mode) => {
    const stats = Object.assign(new ServerStats(), { packetsReceived: 2, packetsSent: 1 });
    const answer = member(mode, { stats, connectionCount: 1 }).answer('srvr', null);
    expect(answer).toBe(recorded(`${mode} srvr`));
  });

  test.each(['follower', 'observer'] as const)('conf of the %s, sizes aside', (mode) => {
    const withoutSizes = (text: string): string => text.replaceAll(/Size=\d+/g, 'Size=');
    expect(withoutSizes(member(mode).answer('conf', null))).toBe(withoutSizes(recorded(`${mode} conf`)));
  });

  test('dump of the follower, which does not know when sessions expire', () => {
    const id = 0x100018567070000n;
    const answer = member('follower', {
      sessionIds: () => [id],
      timeoutMsOf: () => 10_000,
      sessionsWithEphemerals: () => [id],
      ephemeralsOf: () => ['/eph'],
    }).answer('dump', null);
    expect(answer).toBe(recorded('follower dump'));
  });

  test.each(['leader', 'follower', 'observer'] as const)('what mntr of the %s says of its part', (mode) => {
    const lines = member(mode).answer('mntr', null).split('\n');
    const expected = recorded(`${mode} mntr`).trimEnd().split('\n');
    expect(lines.slice(1, 3)).toEqual(expected.slice(0, 2));
    for (const line of expected) expect(lines).toContain(line);
    expect(lines.some((line) => line.startsWith('zk_leader_uptime\t'))).toBe(mode === 'leader');
  });
});
