import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { AdminEvent } from '../audit/audit-line.ts';
import { SILENT_LOGGER } from '../logger.ts';
import { SessionEnds } from '../session-ends.ts';
import { AdminAudit } from './admin-audit.ts';
import { EndSessionCommand, type EndSessionCommandParts } from './end-session-command.ts';

const CALLER = { authorization: 'digest ann:x', remote: '10.0.0.9', forwardedFor: null, certificate: null };
const ID = 0x100000000000001n;
const QUERY = { session: '0x100000000000001' };

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const nobody = (): null => null;

interface World {
  readonly command: EndSessionCommand;
  readonly ends: SessionEnds;
  readonly asked: bigint[];
  readonly audited: AdminEvent[];
}

function make(
  view: Partial<EndSessionCommandParts['core']['view']> = {},
  { knows = true, endsSessions = [true], refusal = null as { status: number; error: string } | null } = {},
): World {
  const ends = new SessionEnds();
  const asked: bigint[] = [];
  const audited: AdminEvent[] = [];
  const command = new EndSessionCommand({
    authorization: { refusalOf: () => refusal },
    core: {
      // What is so when it is asked for, and in the turn that does it.
      get endsSessions() {
        return endsSessions.length > 1 ? endsSessions.shift()! : endsSessions[0]!;
      },
      view: {
        isServing: true,
        lastZxid: 0x30000000a,
        timeoutMsOf: (id) => (id === ID ? 30_000 : null),
        ephemeralCountOf: () => 25,
        ephemeralsOf: () => Array.from({ length: 25 }, (_, i) => `/e${i}`),
        ...view,
      },
      expireSession: (id, cause) => {
        expect(cause).toBe('operator');
        asked.push(id);
        return knows;
      },
    },
    sessionEnds: ends,
    audit: new AdminAudit(
      { describe: () => ({ users: ['ann'], host: '10.0.0.9' }) },
      { add: (event) => audited.push(event) },
    ),
    logger: SILENT_LOGGER,
    confirmMs: 5000,
    deliver: (event) => event(),
  });
  return { command, ends, asked, audited };
}

test('a session has ended once its closeSession is applied, not when it was asked for', async () => {
  const { command, ends, asked, audited } = make();
  let isAnswered = false;
  const answer = command.run(true, QUERY, CALLER).finally(() => {
    isAnswered = true;
  });
  await vi.advanceTimersByTimeAsync(4999);
  expect([asked, isAnswered]).toEqual([[ID], false]);
  ends.emit({ kind: 'session-closed', sessionId: ID + 1n });
  ends.emit({ kind: 'session-closed', sessionId: ID });
  expect(await answer).toMatchObject({ sessionId: ID, ephemerals: 25, isEnded: true });
  expect(audited).toEqual([
    { operation: 'endSession', sessionId: ID, caller: { users: ['ann'], host: '10.0.0.9' }, result: 'success' },
  ]);
  expect(vi.getTimerCount()).toBe(0);
});

test('an inspection does not end the session, and lists its first ephemerals', async () => {
  const { command, asked, audited } = make();
  const found = await command.run(false, QUERY, CALLER);
  expect(found).toMatchObject({ sessionId: ID, ephemerals: 25, isEnded: false });
  expect((found as { paths: readonly string[] }).paths).toHaveLength(20);
  expect([asked, audited]).toEqual([[], []]);
});

test('an end that no quorum confirms within the limit is in doubt, and the next wait is for another end', async () => {
  const { command, ends, audited } = make();
  const answer = command.run(true, QUERY, CALLER);
  await vi.advanceTimersByTimeAsync(5000);
  expect(await answer).toMatchObject({ status: 504, error: expect.stringContaining('no quorum has confirmed it') });
  expect(audited).toMatchObject([{ result: 'invoked' }]);
  const again = command.run(true, QUERY, CALLER);
  ends.emit({ kind: 'session-closed', sessionId: ID });
  expect(await again).toMatchObject({ isEnded: true });
});

test('two requests to end the same session are independent: one times out, the other continues to wait', async () => {
  const { command, ends } = make();
  const first = command.run(true, QUERY, CALLER);
  await vi.advanceTimersByTimeAsync(3000);
  const second = command.run(true, QUERY, CALLER);
  await vi.advanceTimersByTimeAsync(2000);
  expect(await first).toMatchObject({ status: 504 });
  ends.emit({ kind: 'session-closed', sessionId: ID });
  expect(await second).toMatchObject({ isEnded: true });
});

test('a server that ends meanwhile leaves the end in doubt', async () => {
  const { command, ends } = make();
  const answer = command.run(true, QUERY, CALLER);
  ends.fail(new Error('the server was stopped'));
  expect(await answer).toMatchObject({ status: 504 });
});

test.each([
  ['without a quorum nothing is asked for', {}, { endsSessions: [false] }, 503],
  ['a leader that hands over when the turn comes is asked for nothing', {}, { endsSessions: [true, false] }, 503],
  ['a session that is not known is not found', { timeoutMsOf: nobody }, {}, 404],
  ['a session that ends before its turn is not found', {}, { knows: false }, 404],
  ['without all permissions of the root: refused', {}, { refusal: { status: 403, error: 'Not authorized' } }, 403],
])('%s', async (_title, view, options, status) => {
  const { command, asked } = make(view, options);
  expect(await command.run(true, QUERY, CALLER)).toMatchObject({ status });
  expect(asked).toHaveLength(status === 404 && 'knows' in options ? 1 : 0);
  expect(vi.getTimerCount()).toBe(0);
});

test('who is refused, and what is not done, stands in the audit log as a failure', async () => {
  const refused = make({}, { refusal: { status: 401, error: 'Not authenticated' } });
  await refused.command.run(true, QUERY, CALLER);
  const unknown = make({ timeoutMsOf: nobody });
  await unknown.command.run(true, QUERY, CALLER);
  const alone = make({}, { endsSessions: [false] });
  await alone.command.run(true, QUERY, CALLER);
  const misspelt = make();
  await misspelt.command.run(true, { session: 'all' }, CALLER);
  const audited = [refused, unknown, alone, misspelt].flatMap((world) => world.audited);
  expect(audited.map(({ sessionId, result }) => [sessionId, result])).toEqual([
    [ID, 'failure'],
    [ID, 'failure'],
    [ID, 'failure'],
    [null, 'failure'],
  ]);
});

test('who is refused is told nothing of the server, a quorum or not', async () => {
  const refusal = { status: 401, error: 'Not authenticated' };
  const { command } = make({}, { refusal, endsSessions: [false] });
  expect(await command.run(true, QUERY, CALLER)).toEqual(refusal);
  expect(await command.run(false, { session: 'all' }, CALLER)).toEqual(refusal);
});

test.each([
  ['0x100000000000001', ID],
  ['72057594037927937', ID],
  ['0XFFFFFFFFFFFFFFFF', -1n],
  ['-1', -1n],
])('the id %s is hexadecimal as cons has it, or decimal as admin commands have it', async (text, id) => {
  const { command } = make({ timeoutMsOf: () => 1 });
  expect(await command.run(false, { session: text }, CALLER)).toMatchObject({ sessionId: id });
});

test.each(['', '0x', '0x1g', '1.5', '9223372036854775808', '0x10000000000000000', 'all'])(
  'rejects the session id "%s"',
  async (text) => {
    const { command, asked } = make();
    expect(await command.run(true, { session: text }, CALLER)).toMatchObject({ status: 400 });
    expect(asked).toEqual([]);
  },
);
