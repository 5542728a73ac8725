import { expect, test } from 'vitest';
import { readConnectedClients } from './connected-clients.ts';

test('the answer of `connections` tells the addresses of sessions, whose ids are longer than the numbers of JSON', () => {
  const answer = `{
    "connections" : [ { "remote_socket_address" : "10.0.0.5:50212", "session_id" : 72057594037927937, "est" : 1 },
      { "remote_socket_address" : "10.0.0.6:1" } ],
    "secure_connections" : [ { "remote_socket_address" : "10.0.0.7:2", "session_id" : -9223372036854775807 } ],
    "command" : "connections", "error" : null }`;
  expect([...readConnectedClients(answer)]).toEqual([
    [0x100000000000001n, '10.0.0.5:50212'],
    [0x8000000000000001n, '10.0.0.7:2'],
  ]);
  expect(readConnectedClients('{"command":"connections","error":"not serving"}').size).toBe(0);
});
