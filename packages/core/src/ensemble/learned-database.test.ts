import { ZXID_ZERO } from '@meerkat/protocol';
import { beforeEach, expect, it } from 'vitest';
import { onDisk } from '../base/durable.ts';
import type { Database } from '../tree/database.ts';
import { LearnedDatabase } from './learned-database.ts';
import type { RecoveredState } from './member.ts';

const OWN = { name: 'own' } as unknown as Database;
const EMPTY = { name: 'empty' } as unknown as Database;
const SENT = { name: 'sent' } as unknown as Database;

let installed: Database[];
let ready: Database[];
let deferred: (() => void)[];

beforeEach(() => {
  installed = [];
  ready = [];
  deferred = [];
});

function learned(startsEmpty: boolean): LearnedDatabase {
  const storage = {
    installSnapshot(database: Database, done: (lastZxid: unknown) => void) {
      installed.push(database);
      done(onDisk(ZXID_ZERO));
    },
    truncate: (_zxid: number, { onTruncateRefused }: { onTruncateRefused(reason: string): void }) =>
      onTruncateRefused('it is gone'),
  };
  const host = {
    storage,
    turn: { defer: (run: () => void) => deferred.push(run) },
    servings: { makeDatabase: () => EMPTY },
  };
  const state = { database: OWN, history: { lastZxid: onDisk(ZXID_ZERO) } } as unknown as RecoveredState;
  return new LearnedDatabase(host as never, state, startsEmpty, {
    onReady: (database) => ready.push(database),
    onTruncateRefused: () => {},
  });
}

it('keeps what is on disk, and is ready in a separate event', () => {
  learned(false).keep();
  expect(ready).toEqual([]);
  for (const run of deferred) run();
  expect([installed, ready]).toEqual([[], [OWN]]);
});

it('that starts empty replaces what is on disk before it is ready', () => {
  learned(true).keep();
  expect([installed, ready]).toEqual([[EMPTY], [EMPTY]]);
});

it('becomes the received snapshot once that is on disk', () => {
  const database = learned(false);
  database.receive(SENT);
  expect(database.current).toBe(OWN);
  database.installReceived();
  expect([database.current, installed, ready]).toEqual([SENT, [SENT], [SENT]]);
});

it('reports a refused truncation, and is not ready', () => {
  const database = learned(false);
  database.truncate(ZXID_ZERO);
  expect([database.wasTruncateRefused, ready]).toEqual([true, []]);
});
