import type { Client, WatchStream, WatchStreamEvent } from '@meerkat/client';
import { expect, onTestFinished, test } from 'vitest';
import type { StreamMessage } from '../api/messages.ts';
import type { ClusterSession } from './cluster-session.ts';
import type { PageStream } from './page-stream.ts';
import type { ServersMonitor } from './servers-monitor.ts';
import { subscribe } from './subscriptions.ts';

/** A watch that the test arms, with injected events. */
class FakeWatch {
  readonly events: WatchStreamEvent[] = [];
  readonly isOver = false;
  readonly ready: Promise<void>;
  arm: () => void = () => {};
  #wake: () => void = () => {};

  constructor() {
    this.ready = new Promise((resolve) => {
      this.arm = resolve;
    });
  }

  push(event: WatchStreamEvent): void {
    this.events.push(event);
    this.#wake();
  }

  take(): WatchStreamEvent | null {
    return this.events.shift() ?? null;
  }

  arrival(): Promise<void> {
    if (this.events.length > 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

function followChildren() {
  const watch = new FakeWatch();
  const sent: StreamMessage[] = [];
  const controller = new AbortController();
  onTestFinished(() => controller.abort());
  const stream = {
    begin: () => ({ id: 1, signal: controller.signal }),
    send: (message: StreamMessage) => void sent.push(message),
    end() {},
  } as unknown as PageStream;
  const client = { watch: () => watch as unknown as WatchStream } as unknown as Client;
  const session = { client, ended: controller.signal } as unknown as ClusterSession;
  subscribe(stream, { kind: 'children', cluster: 'service', path: '/app' }, session, null as unknown as ServersMonitor);
  return { watch, sent };
}

test('lines that changed while the page did not read are sent once it reads again', async () => {
  const controller = new AbortController();
  onTestFinished(() => controller.abort());
  const sent: StreamMessage[] = [];
  let isSlow = true;
  let looks = 0;
  const stream = {
    begin: () => ({ id: 1, signal: controller.signal }),
    send: (message: StreamMessage) => void sent.push(message),
    get isSlow() {
      looks++;
      return isSlow;
    },
    end() {},
  } as unknown as PageStream;
  const index = { whenWalked: () => Promise.resolve(), sizes: new Map(), state: {} };
  const client = { state: 'connected' } as unknown as Client;
  const cluster = { servers: [] };
  const session = { client, cluster, index, ended: controller.signal } as unknown as ClusterSession;
  subscribe(stream, { kind: 'lines', cluster: 'service' }, session, null as unknown as ServersMonitor);
  await expect.poll(() => looks).toBeGreaterThan(0);
  expect(sent).toEqual([]);
  isSlow = false;
  await expect.poll(() => sent).toMatchObject([{ kind: 'lines', id: 1 }]);
});

const AGAIN: StreamMessage = { kind: 'children', id: 1, path: '/app' };

test('a page reads children again once their watch is armed: they may have changed since it read them', async () => {
  const { watch, sent } = followChildren();
  watch.arm();
  await expect.poll(() => sent).toEqual([AGAIN]);
});

test('a page reads children again after events that change them, and after a gap', async () => {
  const { watch, sent } = followChildren();
  watch.arm();
  await expect.poll(() => sent).toEqual([AGAIN]);
  watch.push({ type: 'changed', path: '/app', zxid: 5n });
  watch.push({ type: 'children', path: '/app', zxid: 6n });
  await expect.poll(() => sent).toEqual([AGAIN, AGAIN]);
  watch.push({ type: 'gap', reason: 'new-session', missed: null });
  await expect.poll(() => sent).toEqual([AGAIN, AGAIN, AGAIN]);
});
