import { expect, test } from 'vitest';
import type { WatchEvent } from './machine/watch-listener.ts';
import { WatchBuffer, type WatchStreamEvent } from './watch-buffer.ts';

test('events are taken in the order in which they were pushed', () => {
  const buffer = new WatchBuffer(10);
  buffer.push(changed('/a'));
  buffer.push(changed('/b'));

  expect(takeAll(buffer)).toEqual(['changed /a', 'changed /b']);
});

test('a full buffer drops the oldest events and reports their number instead', () => {
  const buffer = new WatchBuffer(2);
  for (const path of ['/a', '/b', '/c', '/d', '/e']) buffer.push(changed(path));

  expect(takeAll(buffer)).toEqual(['gap overflow 3', 'changed /d', 'changed /e']);
});

test('events dropped after the gap was taken are counted anew', () => {
  const buffer = new WatchBuffer(1);
  buffer.push(changed('/a'));
  buffer.push(changed('/b'));

  expect(takeAll(buffer, 1)).toEqual(['gap overflow 1']);
  buffer.push(changed('/c'));
  buffer.push(changed('/d'));
  expect(takeAll(buffer)).toEqual(['gap overflow 2', 'changed /d']);
});

test('consecutive gaps are merged into the most severe one', () => {
  const buffer = new WatchBuffer(10);
  buffer.push(changed('/a'));
  buffer.pushGap('reconnected');
  buffer.pushGap('new-session');
  buffer.pushGap('reconnected');
  buffer.push(changed('/b'));
  buffer.pushGap('reconnected');

  expect(takeAll(buffer)).toEqual(['changed /a', 'gap new-session null', 'changed /b', 'gap reconnected null']);
});

test('reconnects while nothing is taken do not fill the buffer', () => {
  const buffer = new WatchBuffer(2);
  buffer.push(changed('/a'));
  for (let i = 0; i < 1000; i++) buffer.pushGap('reconnected');

  expect(takeAll(buffer)).toEqual(['changed /a', 'gap reconnected null']);
});

test('a dropped gap is represented by the overflow, and is not counted as an event', () => {
  const buffer = new WatchBuffer(1);
  buffer.pushGap('reconnected');
  buffer.push(changed('/a'));

  expect(takeAll(buffer)).toEqual(['gap overflow 0', 'changed /a']);
});

test('a cleared buffer is empty, gaps included', () => {
  const buffer = new WatchBuffer(1);
  buffer.push(changed('/a'));
  buffer.push(changed('/b'));
  buffer.pushGap('reconnected');

  buffer.clear();

  expect(takeAll(buffer)).toEqual([]);
});

function changed(path: string): WatchEvent {
  return { type: 'changed', path, zxid: null };
}

function takeAll(buffer: WatchBuffer, max = Number.POSITIVE_INFINITY): string[] {
  const taken: string[] = [];
  while (taken.length < max) {
    const event = buffer.take();
    if (event === null) break;
    taken.push(describe(event));
  }
  return taken;
}

function describe(event: WatchStreamEvent): string {
  return event.type === 'gap' ? `gap ${event.reason} ${event.missed}` : `${event.type} ${event.path}`;
}
