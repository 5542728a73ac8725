import { type Client, connect } from '@meerkat/client';
import type { Direction } from '@meerkat/testing';
import { afterAll, assert, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../harness/peers.ts';
import { SERVER_KINDS } from '../harness/server-process.ts';
import { EventLog } from './event-log.ts';
import { FaultSite, QUICK } from './fault-site.ts';
import { type Outcome, outcomeOf } from './outcome.ts';

const DIRECTIONS: readonly Direction[] = ['toServer', 'toClient'];
/** Every offset with our server, a sample with Apache's: the client is under test. */
const STEPS = { meerkat: 1, apache: 9 } as const;

/** Where a connection is cut. */
interface Cut {
  readonly direction: Direction;
  readonly bytes: number;
  readonly how: 'reset' | 'end';
}

for (const kind of SERVER_KINDS) {
  describeWith(kind === 'apache' ? ['apache'] : [], `a connection to ${kind}, cut at every byte`, () => {
    let site: FaultSite;
    beforeAll(async () => {
      site = await FaultSite.start(kind, { auth: [{ scheme: 'digest', auth: 'ann:secret' }] });
    });
    afterAll(() => site[Symbol.asyncDispose]());

    test.each(['local', 'linearizable'] as const)('of a %s read: it is answered, its watch is set', async (read) => {
      const { client, observer, states } = site;
      const path = `/read-${read}`;
      await client.create(path, '0');
      const lengths = await measure(site, () => client.get(path, { watch: true, read }));
      const session = client.session?.id;
      for (const cut of cuts(lengths, STEPS[kind])) {
        const cutDone = cutOpenConnection(site, cut);
        const answered = client.get(path, { watch: true, read });
        await cutDone;
        expect(await states.until('connected')).toMatchObject({ sameSession: true });
        const { stat, changed } = await answered;
        expect((await observer.set(path, 'x')).version).toBe(stat.version + 1);
        expect(await changed).toMatchObject({ type: 'changed', path });
      }
      expect(client.session?.id).toBe(session);
    });

    test('of a write: its outcome is correct, an acknowledged one is applied, and older watches survive', async () => {
      const { client, observer, states } = site;
      await client.create('/write');
      await using stream = client.watch('/write', { recursive: true });
      const events = new EventLog(stream);
      await stream.ready;
      const lengths = await measure(site, () => client.create('/write/measured-000', 'data'));
      const outcomes = { acknowledged: 0, 'really there': 0, 'really not there': 0 };
      let round = 0;
      for (const cut of cuts(lengths, STEPS[kind])) {
        const path = `/write/number-${String(++round).padStart(5, '0')}`;
        const { changed } = await client.exists(path, { watch: true });
        const cutDone = cutOpenConnection(site, cut);
        const write = outcomeOf(client.create(path, 'data'));
        await cutDone;
        expect(await states.until('connected')).toMatchObject({ sameSession: true });
        const outcome = await write;
        const isThere = (await observer.exists(path)) !== null;
        checkWrite(outcome, isThere, path);
        // An incomplete request has no effect.
        if (cut.direction === 'toServer' && cut.bytes < lengths.toServer) expect(isThere).toBe(false);
        if (outcome.ok) outcomes.acknowledged++;
        else outcomes[isThere ? 'really there' : 'really not there']++;

        // The one-shot watch and the stream are notified of the creation, by this client or the observer.
        if (!isThere) await observer.create(path);
        expect(await changed).toMatchObject({ type: 'created', path });
        await expectNotified(events, observer, `/write/after-${round}-`);
      }
      // Every kind of outcome has occurred, so the cuts were where they were meant to be.
      expect(outcomes.acknowledged).toBeGreaterThan(0);
      expect(outcomes['really there']).toBeGreaterThan(0);
      expect(outcomes['really not there']).toBeGreaterThan(0);
    });

    test('of the first handshake: connect retries', async () => {
      const { proxy } = site;
      // Traffic of the open client does not count: the proxy's cuts apply to the next connection.
      for (const cut of cuts({ toServer: 4 + 45, toClient: 4 + 37 }, STEPS[kind])) {
        const cutDone = proxy.cutAfter(cut);
        const client = await connect(proxy.connectString, { backOff: QUICK });
        await cutDone;
        // The last cut is after the handshake, so only a request that is retried automatically is sure to succeed.
        expect((await client.get('/')).stat.numChildren).toBeGreaterThan(0);
        await client.close();
      }
    });

    test('of a reconnect: session, credentials, watches and waiting requests survive', async () => {
      const { client, observer, proxy, states } = site;
      await client.create('/again', '', { mode: 'ephemeral' });
      await client.create('/again-children');
      await using stream = client.watch('/again-children', { recursive: true });
      const events = new EventLog(stream);
      await stream.ready;
      let round = 0;

      /** One reconnect, with requests that wait for it. */
      const reconnect = async (): Promise<void> => {
        const path = `/again-children/number-${String(++round).padStart(5, '0')}`;
        const { changed } = await client.exists(path, { watch: true });
        await proxy.cut();
        await states.until('suspended');
        const write = outcomeOf(client.create(path, '', { acl: [{ perms: 31, scheme: 'auth', id: '' }] }));
        const read = client.get('/again');
        // Both may need one more connection than the next one.
        expect((await read).stat.ephemeralOwner).toBe(client.session?.id);
        const outcome = await write;
        const isThere = (await client.exists(path, { read: 'linearizable' })) !== null;
        checkWrite(outcome, isThere, path);
        if (!isThere) await observer.create(path);
        expect(await changed).toMatchObject({ type: 'created', path });
        await expectNotified(events, observer, `/again-children/after-${round}-`);
      };

      const before = { toServer: proxy.bytesToServer, toClient: proxy.bytesToClient };
      await reconnect();
      const lengths = {
        toServer: proxy.bytesToServer - before.toServer,
        toClient: proxy.bytesToClient - before.toClient,
      };
      // Every third offset is enough: the tests above cover cuts within requests.
      for (const cut of cuts(lengths, 3 * STEPS[kind])) {
        // It may fire only after this round: the last bytes of the next connection belong to the following round.
        proxy.cutAfter(cut).catch(() => {});
        await reconnect();
      }
      const transitions = states.changes.filter(({ state }) => state === 'connected' || state === 'lost');
      expect(transitions.every(({ state, sameSession }) => state === 'connected' && sameSession)).toBe(true);
    });
  });
}

/** Bytes of one request and its reply, as seen by the proxy. */
async function measure(site: FaultSite, request: () => Promise<unknown>): Promise<Record<Direction, number>> {
  // Waits for the replies to all earlier requests.
  await site.client.sync();
  const { bytesToServer, bytesToClient } = site.proxy;
  await request();
  return { toServer: site.proxy.bytesToServer - bytesToServer, toClient: site.proxy.bytesToClient - bytesToClient };
}

/** Cuts from before the first byte to after the last. */
function* cuts(lengths: Record<Direction, number>, step: number): Generator<Cut> {
  for (const direction of DIRECTIONS) {
    const length = lengths[direction];
    for (let bytes = 0; bytes < length; bytes += step)
      yield { direction, bytes, how: bytes % 2 === 0 ? 'reset' : 'end' };
    yield { direction, bytes: length, how: 'reset' };
  }
}

function cutOpenConnection({ proxy }: FaultSite, cut: Cut): Promise<void> {
  const connection = proxy.connections.at(-1);
  assert(connection !== undefined, 'the client must be connected');
  return connection.cutAfter(cut);
}

/**
 * Checks that a stream delivers the next change. If its connection just broke, it reports a gap instead, and then later
 * changes.
 */
async function expectNotified(events: EventLog, observer: Client, prefix: string): Promise<void> {
  for (;;) {
    const from = events.events.length;
    const { path } = await observer.create(prefix, '', { sequential: true });
    const event = await events.until((each) => each.type === 'gap' || each.path === path, from);
    if (event.type !== 'gap') return;
  }
}

/** Checks that an acknowledged write is applied, and a 'not-applied' one is not. */
function checkWrite(outcome: Outcome<unknown>, isThere: boolean, path: string): void {
  if (outcome.ok) {
    assert(isThere, `${path} was acknowledged and is not there`);
    return;
  }
  const { error } = outcome;
  expect(error).toMatchObject({ code: 'CONNECTIONLOSS', operation: 'create', path });
  if (error.outcome === 'not-applied') assert(!isThere, `${path} was said not to be applied, and is there`);
}
