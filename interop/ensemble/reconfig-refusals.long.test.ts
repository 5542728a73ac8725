import { type Client, connect, type ReconfigOptions } from '@meerkat/client';
import { afterEach, expect, onTestFailed, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import type { ServerKind } from '../harness/server-process.ts';
import { ChangingEnsemble } from './changing-ensemble.ts';

const ensembles: ChangingEnsemble[] = [];

afterEach(async () => {
  for (const ensemble of ensembles.splice(0)) await ensemble.dispose();
});

const LONG_MS = 300_000;
const text = (data: Uint8Array): string => new TextDecoder().decode(data);

/** A requested change; `line` returns the current line of a member. */
interface Attempt {
  readonly what: string;
  /** The result of Apache's server: an error, or `done`. */
  readonly apache: string;
  /** The result of ours, if it differs (docs/differences-from-apache-zookeeper.md). */
  readonly ours?: string;
  readonly change: (line: (id: number, role?: 'participant' | 'observer') => string) => ReconfigOptions;
  /** Requested by a client without permission. */
  readonly isStranger?: boolean;
}

const DEAD = [7, 8, 9].map((id) => `server.${id}=127.0.0.1:${id}:1${id};2${id}`);
const OTHER_3 = 'server.3=127.0.0.1:1:2;3';
/** Loopback addresses never clash, because they mean a different machine to each server. */
const CLASHING = ['server.4=10.255.255.1:1:2;3', 'server.5=10.255.255.1:2:4;5', 'server.6=10.255.255.1:6:7;8'];

const ATTEMPTS: readonly Attempt[] = [
  { what: 'would lose the quorum', apache: 'NEWCONFIGNOQUORUM', change: () => ({ joining: DEAD }) },
  {
    what: 'would lose the quorum, as a whole list',
    apache: 'NEWCONFIGNOQUORUM',
    change: (line) => ({ members: [line(1), ...DEAD] }),
  },
  { what: 'an old version', apache: 'BADVERSION', change: () => ({ leaving: [3], fromVersion: 5n }) },
  { what: 'a version to come', apache: 'BADVERSION', change: () => ({ leaving: [3], fromVersion: 0x7f_0000_0000n }) },
  { what: 'one who may not', apache: 'NOAUTH', change: () => ({ leaving: [3] }), isStranger: true },
  {
    what: 'one who may not, with a syntax error',
    apache: 'BADARGUMENTS',
    change: () => ({ joining: ['server.4=x'] }),
    isStranger: true,
  },
  {
    what: 'one who may not, with an old version',
    apache: 'BADVERSION',
    change: () => ({ leaving: [3], fromVersion: 5n }),
    isStranger: true,
  },
  {
    what: 'one who may not, with an id that ours does not have',
    apache: 'NOAUTH',
    change: () => ({ joining: ['server.999=127.0.0.1:1:2:observer;3'] }),
    isStranger: true,
  },
  {
    what: 'no role that exists',
    apache: 'BADARGUMENTS',
    change: () => ({ joining: ['server.4=127.0.0.1:1:2:leader;3'] }),
  },
  {
    what: 'a port that is no number',
    apache: 'BADARGUMENTS',
    change: () => ({ joining: ['server.4=127.0.0.1:x:2;3'] }),
  },
  { what: 'one port only', apache: 'BADARGUMENTS', change: () => ({ joining: ['server.4=127.0.0.1:1;3'] }) },
  { what: 'no client port', apache: 'BADARGUMENTS', change: () => ({ joining: ['server.4=127.0.0.1:1:2'] }) },
  { what: 'no server at all', apache: 'BADARGUMENTS', change: () => ({ joining: ['nonsense'] }) },
  {
    what: 'an id that is no number',
    apache: 'MARSHALLINGERROR',
    ours: 'BADARGUMENTS',
    change: () => ({ joining: ['server.x=127.0.0.1:1:2;3'] }),
  },
  { what: 'another key', apache: 'BADARGUMENTS', change: () => ({ joining: ['group.1=1:2:3'] }) },
  {
    what: 'a syntax error in a whole list',
    apache: 'BADARGUMENTS',
    change: (line) => ({ members: [line(1), line(2), 'server.3=x'] }),
  },
  {
    what: 'another key in a whole list',
    apache: 'BADARGUMENTS',
    change: (line) => ({ members: [line(1), line(2), line(3), 'tickTime=1'] }),
  },
  {
    what: 'a server twice in a whole list',
    apache: 'done',
    ours: 'BADARGUMENTS',
    change: (line) => ({ members: [line(1), line(2), OTHER_3, line(3)] }),
  },
  { what: 'a server twice among those that join', apache: 'done', change: (line) => ({ joining: [OTHER_3, line(3)] }) },
  { what: 'the address of another member', apache: 'BADARGUMENTS', change: () => ({ joining: CLASHING }) },
  {
    what: 'one port for two purposes',
    apache: 'BADARGUMENTS',
    change: () => ({ joining: ['server.4=127.0.0.1:1:1;3'] }),
  },
  {
    what: 'an id that is too large',
    apache: 'MARSHALLINGERROR',
    ours: 'BADARGUMENTS',
    change: () => ({ joining: ['server.999999999999999999999=127.0.0.1:1:2;3'] }),
  },
  { what: 'an empty list', apache: 'MARSHALLINGERROR', ours: 'BADARGUMENTS', change: () => ({ members: [] }) },
  {
    what: 'a removed id that is no number',
    apache: 'MARSHALLINGERROR',
    ours: 'BADARGUMENTS',
    change: () => ({ leaving: ['x' as unknown as number] }),
  },
  { what: 'the last voter removed', apache: 'BADARGUMENTS', change: () => ({ leaving: [1, 2, 3] }) },
  {
    what: 'observers only',
    apache: 'BADARGUMENTS',
    change: (line) => ({ joining: [1, 2, 3].map((id) => line(id, 'observer')) }),
  },
  {
    what: 'observers only, as a whole list',
    apache: 'MARSHALLINGERROR',
    ours: 'BADARGUMENTS',
    change: (line) => ({ members: [1, 2, 3].map((id) => line(id, 'observer')) }),
  },
  { what: 'an unknown id removed', apache: 'done', change: () => ({ leaving: [77] }) },
  { what: 'an empty change', apache: 'done', change: () => ({}) },
  { what: 'a member that joins as it is', apache: 'done', change: (line) => ({ joining: [line(2)] }) },
  { what: 'a member that leaves and joins', apache: 'done', change: (line) => ({ leaving: [2], joining: [line(2)] }) },
  {
    what: 'joining and a whole list',
    apache: 'done',
    change: (line) => ({ joining: DEAD, members: [1, 2, 3].map((id) => line(id)) }),
  },
  {
    what: 'leaving and a whole list',
    apache: 'done',
    change: (line) => ({ leaving: [1, 2, 3], members: [1, 2, 3].map((id) => line(id)) }),
  },
];

/** The error of each attempt, or `done`, and whether the members changed. */
async function outcomesAt(kind: ServerKind): Promise<ReadonlyMap<string, string>> {
  const ensemble = await ChangingEnsemble.start([kind, kind, kind]);
  ensembles.push(ensemble);
  await using operator = await ensemble.connect();
  await using stranger = await connect(ensemble.connectString());
  const line = (id: number, role?: 'participant' | 'observer'): string =>
    `server.${id}=${ensemble.server(id).line(role)}`;
  const before = await membersOf(operator);
  const outcomes = new Map<string, string>();
  for (const { what, change, isStranger } of ATTEMPTS) {
    const client = isStranger === true ? stranger : operator;
    const outcome = await client.reconfig(change(line)).then(
      () => 'done',
      (error: { code?: string }) => error.code ?? String(error),
    );
    outcomes.set(what, (await membersOf(operator)) === before ? outcome : `${outcome}, and the members are others`);
  }
  outcomes.set(DURING, await outcomeDuringAnother(ensemble, { joining: [line(2)] }));
  return outcomes;
}

const DURING = 'another one while one is under way';

/** The result of a change requested while the leader has no quorum for the previous one, which must succeed. */
async function outcomeDuringAnother(ensemble: ChangingEnsemble, change: ReconfigOptions): Promise<string> {
  const leader = await ensemble.leader();
  const others = [...ensemble.servers.values()].filter((server) => server !== leader);
  await using client = await ensemble.connect([leader.id]);
  const events = client.watch('/zookeeper/config')[Symbol.asyncIterator]();
  // The watch is set once a later request is answered.
  const next = events.next();
  await client.config();
  for (const server of others) server.signal('SIGSTOP');
  const first = client.reconfig(change);
  const second = client.reconfig(change).catch((error: { code?: string }) => error.code ?? String(error));
  while (!/^Outstanding: ([2-9]|\d\d)/m.test(await leader.srvr()))
    await new Promise((resolve) => setTimeout(resolve, 5));
  for (const server of others) server.signal('SIGCONT');
  const { stat } = await first;
  const outcome = await second;
  const { value: event } = await next;
  expect([event?.type, stat.mzxid]).toEqual(['changed', (await client.config()).stat.mzxid]);
  return typeof outcome === 'string' ? outcome : 'done';
}

/** The members in force, without the version. */
async function membersOf(client: Client): Promise<string> {
  await client.sync();
  return text((await client.config()).data).replace(/\nversion=.*/, '');
}

async function compare(kind: ServerKind): Promise<void> {
  onTestFailed(() => console.log(ensembles.map(({ logs }) => logs).join('\n')));
  const expected = ATTEMPTS.map(({ what, apache, ours = apache }) => [what, kind === 'apache' ? apache : ours]);
  expected.push([DURING, 'RECONFIGINPROGRESS']);
  expect([...(await outcomesAt(kind))]).toEqual(expected);
}

test('an invalid reconfig is refused, and nothing changes', () => compare('meerkat'), LONG_MS);

describeWith(['apache'], 'the server of Apache', () => {
  test('refuses the same with the same errors', () => compare('apache'), LONG_MS);
});
