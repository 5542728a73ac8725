import { OpCode, PacketType } from '@meerkat/protocol';
import { expect, test } from 'vitest';
import { EnsembleScript, SESSION } from './testing/ensemble-script.ts';

const SYNC = {
  type: PacketType.request,
  sessionId: SESSION,
  cxid: 1,
  op: OpCode.sync,
  body: new Uint8Array(0),
  authInfo: [],
} as const;

function answered(script: EnsembleScript): string[] {
  script.down(3, 1, { type: PacketType.sync });
  return script.broken;
}

test('a sync is answered after a quorum has answered a ping that was sent since', () => {
  const script = new EnsembleScript().serve();
  script.up(1, 3, SYNC);
  script.ping(3, 2);
  expect(answered(script)).toEqual([]);
});

test('C8: a sync is answered before any ping is answered', () => {
  const script = new EnsembleScript().serve();
  script.ping(3, 2);
  script.up(1, 3, SYNC);
  expect(answered(script)).toEqual(['C8']);
});

test('C8: a sync is answered when a ping has been answered that was sent before it came', () => {
  const script = new EnsembleScript().serve();
  script.ping(3, 2);
  script.down(3, 2, { type: PacketType.ping, zxid: script.lastZxid(3) });
  script.up(1, 3, SYNC);
  script.pong(2, 3);
  expect(answered(script)).toEqual(['C8']);
});

test('C8: observers confirm nothing', () => {
  const script = new EnsembleScript().serve([1, 2, 4]);
  script.up(1, 3, SYNC);
  script.ping(3, 4);
  expect(answered(script)).toEqual(['C8']);
});
