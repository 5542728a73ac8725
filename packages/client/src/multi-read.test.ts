import { describe, expect, expectTypeOf, test } from 'vitest';
import { NoNodeError } from './errors.ts';
import type { MultiResult, Znode } from './machine/replies.ts';
import { MultiRead, type ReadResult, type ReadValue } from './multi-read.ts';
import { makeStat, ScriptedService } from './testing/fake-service.ts';

const nothing = { path: null, stat: null, data: null, children: null } as const;
const znode = (data: Uint8Array | null): MultiResult => ({ ok: true, op: 4, ...nothing, data, stat: makeStat() });
const names = (...children: string[]): MultiResult => ({ ok: true, op: 8, ...nothing, children });

describe('a multi-read', () => {
  test('returns a typed result for each read', async () => {
    const service = new ScriptedService([znode(new Uint8Array([1])), names('x', 'y')], '/app');
    const results = await new MultiRead(service).get('/config').children('/members').run();

    expectTypeOf(results).toEqualTypeOf<readonly [ReadResult<Znode>, ReadResult<readonly string[]>]>();
    const [config, members] = results;
    expect(config.ok && config.value.data).toEqual(new Uint8Array([1]));
    expect(members).toEqual({ ok: true, value: ['x', 'y'] });
    expect(service.requests).toEqual([
      {
        op: 22,
        ops: [
          { op: 4, path: '/app/config' },
          { op: 8, path: '/app/members' },
        ],
      },
    ]);
  });

  test('lets each read fail by itself', async () => {
    const service = new ScriptedService([{ ok: false, code: -101 }, znode(null)]);
    const [missing, found] = await new MultiRead(service).get('/missing').get('/found').run();
    expect(missing).toMatchObject({ ok: false, error: { code: 'NONODE', path: '/missing', operation: 'get' } });
    expect(!missing.ok && missing.error).toBeInstanceOf(NoNodeError);
    expect(found.ok && found.value.data).toHaveLength(0);
  });

  test('built in a loop has a list of results', async () => {
    const multiRead: MultiRead<ReadValue[]> = new MultiRead(new ScriptedService([names(), names()]));
    for (const path of ['/a', '/b']) multiRead.children(path);
    const results = await multiRead.run();
    expectTypeOf(results).toEqualTypeOf<readonly ReadResult<ReadValue>[]>();
    expect(results).toHaveLength(2);
  });

  test('with an invalid path rejects, and nothing is sent', async () => {
    const service = new ScriptedService([]);
    await expect(new MultiRead(service).get('a').run()).rejects.toMatchObject({ code: 'BADARGUMENTS', path: 'a' });
    expect(service.requests).toEqual([]);
  });

  test('treats results of another number or kind as a bad reply', async () => {
    await expect(new MultiRead(new ScriptedService([])).get('/a').run()).rejects.toMatchObject({ code: 'BADREPLY' });
    const other = new MultiRead(new ScriptedService([names()])).get('/a').run();
    await expect(other).rejects.toMatchObject({ code: 'BADREPLY', outcome: 'not-applied' });
  });
});
