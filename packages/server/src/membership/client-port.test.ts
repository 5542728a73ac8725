import type { TraceEvent } from '@meerkat/core';
import { expect, test } from 'vitest';
import { type ClientAddress, ClientPortWatch } from './client-port.ts';

/** What the watch of server 1 reports for these client addresses of it, in turn. */
function movesOf(configured: ClientAddress | null, ...listed: readonly (ClientAddress | null)[]): string[] {
  const moves: string[] = [];
  const watch = new ClientPortWatch(1, configured, ({ host, port }) => moves.push(`${host}:${port}`));
  for (const client of listed) {
    const members = [
      { serverId: 2, client: { host: '10.0.0.2', port: 9 } },
      { serverId: 1, client },
    ];
    watch.emit({ kind: 'membership-changed', committed: { members } } as unknown as TraceEvent);
  }
  return moves;
}

test('the client port moves to each new address of this server, also back to the configured one', () => {
  const first = { host: '10.0.0.1', port: 1 };
  const second = { host: '10.0.0.1', port: 2 };
  const third = { host: '10.0.0.3', port: 1 };
  expect(movesOf(first, first, second, second, first, third)).toEqual(['10.0.0.1:2', '10.0.0.1:1', '10.0.0.3:1']);
});

test('a list without an address, or with all addresses of the machine, moves nothing', () => {
  const configured = { host: '10.0.0.1', port: 1 };
  expect(movesOf(configured, null, { host: '0.0.0.0', port: 1 })).toEqual([]);
  expect(movesOf(configured, { host: '0.0.0.0', port: 2 }, { host: '0.0.0.0', port: 2 })).toEqual(['null:2']);
});
