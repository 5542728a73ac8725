import type { Client, WatchStream } from '@meerkat/client';
import { describe, expect, test } from 'vitest';
import type { SearchResult } from '../api/messages.ts';
import { TreeIndex } from './tree-index.ts';

type TreeEvent = { readonly type: string; readonly path: string };

/** A tree in memory, whose watch loses events: for events during a walk it only reports that some were dropped. */
class FakeService {
  readonly tree = new Map<string, readonly string[]>([
    ['/', ['a']],
    ['/a', []],
  ]);
  readonly events: TreeEvent[] = [];
  walks = 0;
  watches = 0;
  /** Of the next watch. */
  armed: Promise<void> = Promise.resolve();
  #wake = (): void => {};
  onRead: (path: string) => void = () => {};

  get client(): Client {
    const service = this;
    return {
      watch: () => service.#stream(),
      async children(path: string) {
        if (path === '/') service.walks++;
        const children = service.tree.get(path) ?? [];
        service.onRead(path);
        return { children, stat: { dataLength: 1 } };
      },
    } as unknown as Client;
  }

  /** Events that arrive while nothing is walked. */
  push(event: TreeEvent): void {
    this.events.push(event);
    this.#wake();
  }

  #stream(): WatchStream {
    let isOver = false;
    this.watches++;
    return {
      mode: 'persistent recursive',
      ready: this.armed,
      get isOver() {
        return isOver;
      },
      take: () => this.events.shift() ?? null,
      arrival: () =>
        new Promise<void>((resolve) => {
          this.#wake = resolve;
        }),
      async close() {
        isOver = true;
      },
    } as unknown as WatchStream;
  }
}

describe('the index of a tree', () => {
  test('is walked again when the watch has dropped events during the walk', async () => {
    const service = new FakeService();
    // Once the root has been read, a znode is created, and its event is lost.
    service.onRead = () => {
      service.onRead = () => {};
      service.tree.set('/', ['a', 'late']);
      service.events.push({ type: 'gap', path: '/' });
    };
    const index = new TreeIndex(service.client, 1000);
    await index.whenWalked();
    expect(service.walks).toBe(2);
    expect([...index.sizes.keys()]).toEqual(['/', '/late', '/a']);
    index.stop();
  });

  test('is walked once after a gap, also when it is searched before its watch is armed again', async () => {
    const service = new FakeService();
    const index = new TreeIndex(service.client, 1000);
    await index.whenWalked();
    let arm = (): void => {};
    service.armed = new Promise((resolve) => {
      arm = resolve;
    });
    service.push({ type: 'gap', path: '/' });
    await expect.poll(() => service.watches).toBe(2);
    expect(index.search('a', 10)).toMatchObject({ paths: ['/a'] });
    expect(index.sizes.size).toBe(2);
    arm();
    await index.whenWalked();
    expect([service.watches, service.walks]).toEqual([2, 2]);
    expect(index.state).toMatchObject({ isComplete: true, isLive: true, znodes: 2 });
    index.stop();
  });

  test('reports that it is partial when the tree exceeds the limit', async () => {
    const service = new FakeService();
    service.tree.set('/', ['a', 'b', 'c', 'd']);
    const index = new TreeIndex(service.client, 3);
    await index.whenWalked();
    expect(index.state).toMatchObject({ znodes: 3, isComplete: true });
    expect(index.state.missing).toMatch(/more than 3 znodes/);
    index.stop();
  });

  test('finds the last znodes of a large tree as soon as it reports that it is complete', async () => {
    const service = new FakeService();
    const names = Array.from({ length: 60_000 }, (_, i) => `n-${i}`);
    service.tree.set('/', names);
    let read = 0;
    let before: SearchResult | null = null;
    // Searched while some are still to be read, as while the user types.
    service.onRead = () => {
      if (++read === 59_000) before = index.search('n-0', 10);
    };
    const index = new TreeIndex(service.client, 100_000);
    await index.whenWalked();
    expect(before).toMatchObject({ found: 0, index: { isComplete: false } });
    expect(index.search('n-0', 10)).toMatchObject({ found: 1, paths: ['/n-0'], index: { isComplete: true } });
    index.stop();
  });
});
