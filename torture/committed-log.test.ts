import { describe, expect, it } from 'vitest';
import { composeCommitted, type LogsOfServer } from './committed-log.ts';
import { logged, zxid } from './testing/logs.ts';

const NOTHING = new Map<number, number>();

function server(id: number, txns: readonly number[], changes: Partial<LogsOfServer> = {}): LogsOfServer {
  return { id, txns: txns.map((one) => logged(one)), removed: [], isWhole: true, ...changes };
}

function compose(servers: readonly LogsOfServer[], last: number, established = NOTHING, behind = 0) {
  const { entries, violations } = composeCommitted(servers, behind, last, established);
  return { zxids: entries.map(({ header }) => header.zxid), broken: violations.map(({ invariant }) => invariant) };
}

const EPOCH_1 = [zxid(1, 1), zxid(1, 2), zxid(1, 3)];
const EPOCH_2 = [zxid(2, 1), zxid(2, 2)];
const ALL = [...EPOCH_1, ...EPOCH_2];

describe('what was committed', () => {
  it('is the sequence that all logs contain', () => {
    expect(compose([server(1, ALL), server(2, ALL)], zxid(2, 2))).toEqual({ zxids: ALL, broken: [] });
  });

  it('is checked from the last known zxid on', () => {
    const servers = [server(1, ALL, { isWhole: false }), server(2, ALL.slice(2), { isWhole: false })];
    expect(compose(servers, zxid(2, 2), NOTHING, zxid(1, 2))).toEqual({ zxids: ALL.slice(2), broken: [] });
  });

  it('is read from one log when the others begin with a snapshot', () => {
    const late = server(2, EPOCH_2.slice(1), { isWhole: false });
    expect(compose([server(1, ALL), late], zxid(2, 2))).toEqual({ zxids: ALL, broken: [] });
  });

  it('includes removed logs, without the uncommitted tail of an epoch', () => {
    const lost = logged(zxid(1, 4), 'never committed');
    const servers = [
      server(1, EPOCH_2.slice(1), { isWhole: false, removed: [...EPOCH_1.map((one) => logged(one)), lost] }),
      server(2, EPOCH_2, { isWhole: false }),
    ];
    const established = new Map([
      [1, 0],
      [2, zxid(1, 3)],
    ]);
    expect(compose(servers, zxid(2, 2), established)).toEqual({ zxids: ALL, broken: [] });
  });

  it('is violated when a server has a different txn; the majority is taken as committed', () => {
    const other = server(3, EPOCH_1.slice(0, 2), {
      txns: [...EPOCH_1.slice(0, 2).map((one) => logged(one)), logged(zxid(1, 3), 'other')],
    });
    expect(compose([server(1, EPOCH_1), server(2, EPOCH_1), other], zxid(1, 3))).toEqual({
      zxids: EPOCH_1,
      broken: ['Z4'],
    });
  });

  it('is violated when one log lacks a txn in the middle or at its end, or has an extra one', () => {
    const holes = [EPOCH_1[0]!, EPOCH_1[2]!];
    expect(compose([server(1, EPOCH_1), server(2, EPOCH_1), server(3, holes)], zxid(1, 3)).broken).toEqual(['Z4']);
    const short = server(3, EPOCH_1.slice(0, 2));
    expect(compose([server(1, EPOCH_1), server(2, EPOCH_1), short], zxid(1, 3)).broken).toEqual(['Z4']);
    expect(compose([server(1, EPOCH_1), server(2, EPOCH_1.slice(0, 2))], zxid(1, 2)).broken).toEqual(['Z4']);
  });

  it('is violated when all logs lack a txn', () => {
    const holes = [EPOCH_1[0]!, EPOCH_1[2]!];
    expect(compose([server(1, holes), server(2, holes)], zxid(1, 3)).broken).toEqual(['Z16']);
    const none = { isWhole: false };
    expect(compose([server(1, EPOCH_2, none), server(2, EPOCH_2, none)], zxid(2, 2)).broken).toEqual(['Z11']);
  });
});
