import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, expect, test, vi } from 'vitest';
import { PageStream } from './page-stream.ts';

/** A response whose client does not read: everything written stays buffered. */
class FullResponse extends EventEmitter {
  writableLength = 0;
  writableEnded = false;
  destroyed = false;

  write(text: string): boolean {
    this.writableLength += text.length;
    return false;
  }

  destroy(): void {
    this.destroyed = true;
    this.emit('close');
  }

  end(): void {
    this.writableEnded = true;
  }
}

function openStream() {
  const response = new FullResponse();
  return { response, stream: new PageStream(response as unknown as ServerResponse) };
}

const LARGE = { kind: 'children', id: 1, path: `/${'x'.repeat(1 << 20)}` } as const;

describe('a page that does not read', () => {
  test('is disconnected after 32 MiB, with all its subscriptions', () => {
    const { response, stream } = openStream();
    const { signal } = stream.begin();
    for (let i = 0; i < 100 && !response.destroyed; i++) stream.send(LARGE);
    expect(response.destroyed).toBe(true);
    expect(response.writableLength).toBeLessThan(34 << 20);
    expect(signal.aborted).toBe(true);
  });

  test('leaves no listeners behind while it is awaited, however long', async () => {
    vi.useFakeTimers();
    try {
      const { response, stream } = openStream();
      stream.send(LARGE);
      stream.send(LARGE);
      const controller = new AbortController();
      const drained = stream.drained(controller.signal);
      await vi.advanceTimersByTimeAsync(60_000);
      expect(response.listenerCount('drain')).toBe(1);
      controller.abort();
      await drained;
      expect(response.listenerCount('drain')).toBe(0);
      stream.close();
    } finally {
      vi.useRealTimers();
    }
  });
});
