import { setTimeout as sleep } from 'node:timers/promises';
import { NoNodeError } from '@meerkat/client';
import type { Failure, LinesInfo, Subscription } from '../api/messages.ts';
import { ChangeFeed } from './change-feed.ts';
import type { ClusterSession } from './cluster-session.ts';
import { readLines } from './lines.ts';
import type { PageStream } from './page-stream.ts';
import { describeError } from './refusal.ts';
import type { ServersMonitor } from './servers-monitor.ts';
import { sessionIdOf } from './session-id.ts';
import { readSessions } from './session-table.ts';
import { readZnode } from './znode-reader.ts';

/** The receiver of a subscription's messages. */
interface Place {
  readonly stream: PageStream;
  readonly id: number;
  readonly signal: AbortSignal;
}

/** Sends a page the messages of its subscription, until it is cancelled. */
export function subscribe(
  stream: PageStream,
  wanted: Subscription,
  session: ClusterSession,
  monitor: ServersMonitor,
): number {
  const { id, signal: dropped } = stream.begin();
  const signal = AbortSignal.any([dropped, session.ended]);
  signal.addEventListener('abort', () => stream.end(id), { once: true });
  const place = { stream, id, signal };
  run(place, wanted, session, monitor).catch((error) => {
    if (!signal.aborted) stream.send({ kind: 'failed', id, failure: describeError(error).failure });
    stream.end(id);
  });
  return id;
}

async function run(
  place: Place,
  wanted: Subscription,
  session: ClusterSession,
  monitor: ServersMonitor,
): Promise<void> {
  switch (wanted.kind) {
    case 'znode':
      return await followZnode(place, wanted.path, session);
    case 'children':
      return await followChildren(place, wanted.path, session);
    case 'changes':
      return await followChanges(place, wanted.path, session);
    case 'servers':
      return followServers(place, monitor);
    case 'sessions':
      return await followSessions(place, session);
    case 'lines':
      return await followLines(place, session);
    case 'index':
      return await followIndex(place, session);
    case 'state':
      return followState(place, session);
  }
}

async function followZnode({ stream, id, signal }: Place, path: string, session: ClusterSession): Promise<void> {
  const { client } = session;
  const watch = client.watch(path, { signal });
  let zxid: bigint | null = null;
  while (!signal.aborted && !watch.isOver) {
    if (!isConnected(session)) {
      // Displayed data stays; a page that shows nothing yet gets the reason.
      stream.send({ kind: 'failed', id, failure: awayFailure(session) });
      await client.whenConnected({ signal });
    }
    await watch.ready;
    if (stream.isSlow) await stream.drained(signal);
    try {
      const znode = await readZnode(session, path, { timeoutMs: READ_MS });
      stream.send({ kind: 'znode', id, znode, zxid: zxid === null ? null : `0x${zxid.toString(16)}` });
    } catch (error) {
      if (error instanceof NoNodeError) stream.send({ kind: 'znode', id, znode: null, zxid: null });
      else if (isConnected(session)) throw error;
      else continue;
    }
    await watch.arrival();
    // Frequent changes are shown at most five times a second.
    await sleep(PACE_MS);
    for (let event = watch.take(); event !== null; event = watch.take()) if (event.type !== 'gap') zxid = event.zxid;
  }
}

function isConnected({ client: { state } }: ClusterSession): boolean {
  return state === 'connected' || state === 'read-only';
}

function awayFailure({ cluster }: ClusterSession): Failure {
  const servers = cluster.servers.map(({ name }) => name).join(', ');
  const message = `no server of ${cluster.name} answers (${servers}); the console keeps trying`;
  return { code: 'away', message, path: null };
}

async function followChildren({ stream, id, signal }: Place, path: string, session: ClusterSession): Promise<void> {
  const watch = session.client.watch(path, { signal });
  await watch.ready;
  // The page has read before the watch was armed.
  let isChanged = true;
  while (!signal.aborted && !watch.isOver) {
    if (isChanged) stream.send({ kind: 'children', id, path });
    isChanged = false;
    await sleep(PACE_MS);
    await watch.arrival();
    for (let event = watch.take(); event !== null; event = watch.take()) {
      isChanged ||= event.type !== 'changed';
    }
  }
}

async function followChanges({ stream, id, signal }: Place, path: string, session: ClusterSession): Promise<void> {
  const feed = new ChangeFeed(session.client, path, signal);
  await feed.ready;
  stream.send({ kind: 'changes', id, changes: [], isReady: true, mode: feed.mode });
  for await (const changes of feed.batches()) {
    if (signal.aborted) return;
    // Events are buffered in the watch meanwhile, which drops the oldest of too many and reports that.
    if (stream.isSlow) await stream.drained(signal);
    if (signal.aborted) return;
    stream.send({ kind: 'changes', id, changes, isReady: true, mode: feed.mode });
  }
}

function followServers({ stream, id, signal }: Place, monitor: ServersMonitor): void {
  stream.send({ kind: 'servers', id, samples: monitor.history });
  const listening = monitor.listen((sample) => {
    if (!stream.isSlow) stream.send({ kind: 'servers', id, samples: [sample] });
  });
  signal.addEventListener('abort', () => listening[Symbol.dispose](), { once: true });
}

async function followSessions({ stream, id, signal }: Place, session: ClusterSession): Promise<void> {
  while (!signal.aborted) {
    const sessions = await readSessions(session.cluster.servers, sessionIdOf(session));
    if (!stream.isSlow) stream.send({ kind: 'sessions', id, sessions });
    await sleep(SESSIONS_MS, undefined, { signal }).catch(() => {});
  }
}

async function followLines({ stream, id, signal }: Place, session: ClusterSession): Promise<void> {
  const { index } = session;
  let sent = '';
  while (!signal.aborted) {
    await Promise.race([index.whenWalked(), sleep(PATIENCE_MS)]);
    const { sessions } = await readSessions(session.cluster.servers, sessionIdOf(session));
    const { client } = session;
    let lines: LinesInfo;
    try {
      const paths = { [Symbol.iterator]: () => index.sizes.keys() };
      lines = await readLines(client, paths, sessions, index.state, { timeoutMs: READ_MS });
    } catch (error) {
      if (isConnected(session)) throw error;
      await client.whenConnected({ signal });
      continue;
    }
    const text = JSON.stringify(lines);
    if (text !== sent && !stream.isSlow) {
      stream.send({ kind: 'lines', id, lines });
      sent = text;
    }
    await sleep(LINES_MS, undefined, { signal }).catch(() => {});
  }
}

async function followIndex({ stream, id, signal }: Place, session: ClusterSession): Promise<void> {
  let sent = '';
  while (!signal.aborted) {
    const { state } = session.index;
    const text = JSON.stringify(state);
    if (text !== sent) stream.send({ kind: 'index', id, index: state });
    sent = text;
    await sleep(INDEX_MS, undefined, { signal }).catch(() => {});
  }
}

function followState({ stream, id, signal }: Place, session: ClusterSession): void {
  const { client } = session;
  const report = (reason: string): void => {
    const { server } = client;
    stream.send({
      kind: 'state',
      id,
      state: client.state,
      reason,
      server: server === null ? null : `${server.host}:${server.port}`,
      session: sessionIdOf(session),
    });
  };
  report('');
  const listening = client.onState(({ reason }) => report(reason));
  signal.addEventListener('abort', () => listening[Symbol.dispose](), { once: true });
}

const READ_MS = 20_000;
const PACE_MS = 200;
const SESSIONS_MS = 3000;
const LINES_MS = 1500;
const INDEX_MS = 1000;
const PATIENCE_MS = 3000;
