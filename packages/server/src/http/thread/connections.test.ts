import { EventEmitter } from 'node:events';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { Connections } from './connections.ts';

test('where something is done for all of them, a stranger displaces the oldest of the address with most, and one of its own goes', () => {
  const { open, ask, closed } = site(3);
  for (const name of ['a1', 'a2', 'b1']) ask(open(name));
  open('c1');
  expect(closed).toEqual(['a1']);
  ask(open('b2'));
  // b has two busy connections, c an idle one, and no host has more than b.
  open('b3');
  expect(closed).toEqual(['a1', 'a2', 'b3']);
});

test('the one that has asked least lately goes first', () => {
  const { open, ask, closed } = site(3);
  const [a1, a2, a3] = [open('a1'), open('a2'), open('a3')];
  ask(a1).end();
  ask(a2);
  ask(a3).end();
  open('a4');
  open('a5');
  expect(closed).toEqual(['a1', 'a3']);
});

test('an answer that is made and not taken holds no place', () => {
  const { open, ask, closed } = site(1);
  const answer = ask(open('a1'));
  open('a2');
  answer.writableEnded = true;
  open('a3');
  expect(closed).toEqual(['a2', 'a1']);
});

/** A server whose connections are of the address that their name begins with. */
function site(max: number): {
  open(name: string): EventEmitter;
  ask(socket: EventEmitter): { writableEnded: boolean; end(): void };
  closed: string[];
} {
  const server = new EventEmitter();
  const closed: string[] = [];
  new Connections(max, () => {}).watch(server as unknown as Server);
  return {
    closed,
    open(name) {
      const socket = Object.assign(new EventEmitter(), { remoteAddress: name[0], destroy: () => closed.push(name) });
      server.emit('connection', socket as unknown as Socket);
      return socket;
    },
    ask(socket) {
      const response = Object.assign(new EventEmitter(), { writableEnded: false, end: () => response.emit('close') });
      server.emit('request', { socket }, response);
      return response;
    },
  };
}
