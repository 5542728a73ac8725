import { type Client, connect } from '@meerkat/client';
import { TestServer } from '@meerkat/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { moveAtOnce, moveInSteps, surveyMove } from './tree-move.ts';

describe('a move', () => {
  let server: TestServer;
  let client: Client;

  beforeAll(async () => {
    server = await TestServer.start();
    client = await connect(server.connectString);
  });

  afterAll(async () => {
    await client.close();
    await server[Symbol.asyncDispose]();
  });

  beforeEach(async () => {
    for (const path of ['/from', '/to']) {
      if ((await client.exists(path)) !== null) await client.deleteRecursive(path);
    }
    for (const path of ['/from', '/from/a', '/from/a/x', '/from/b']) await client.create(path, path);
  });

  const names = async (path: string) => (await client.children(path)).children.toSorted();

  test('is one request when data, paths and ACLs are no more than half of one', async () => {
    expect(await surveyMove(client, '/from', '/to', {})).toEqual({ znodes: 4, fitsOneRequest: true });
    await client.set('/from/b', new Uint8Array(600_000));
    expect(await surveyMove(client, '/from', '/to', {})).toEqual({ znodes: 4, fitsOneRequest: false });
  });

  test('keeps data that are null apart from data that are empty', async () => {
    await client.set('/from/a', null);
    await client.set('/from/b', '');
    expect(await moveAtOnce(client, '/from', '/to', {})).toBe(4);
    const codec = { encode: () => null, decode: (data: Uint8Array | null) => data };
    expect((await client.get('/to/a', { codec })).data).toBeNull();
    expect((await client.get('/to/b', { codec })).data).toEqual(new Uint8Array(0));
  });

  test('in steps deletes nothing when the source has changed since it was copied', async () => {
    const moved = moveInSteps(client, '/from', '/to', {}, ({ step, znodes }) => {
      // Sent before the reads of the comparison.
      if (step === 'copied' && znodes === 4) void client.set('/from/a/x', 'newer');
    });
    await expect(moved).rejects.toMatchObject({
      exitCode: 26,
      message:
        'the move stopped: the copy differs from its source at /from/a/x, which may have changed meanwhile; ' +
        '/from is whole, and its copy is in /to: delete one of the two with "rm -r"',
    });
    expect(await names('/from')).toEqual(['a', 'b']);
  });

  test('in steps does not delete what was changed since it was compared', async () => {
    const moved = moveInSteps(client, '/from', '/to', {}, ({ step, znodes }) => {
      if (step === 'compared' && znodes === 4) void client.set('/from/a/x', 'newer');
    });
    await expect(moved).rejects.toMatchObject({
      exitCode: 13,
      message: expect.stringMatching(
        /^the move stopped: cannot delete \/from\/a\/x: .*; the copy in \/to is whole, and up to 3 znodes of \/from are left/,
      ),
    });
    expect(new TextDecoder().decode((await client.get('/from/a/x')).data)).toBe('newer');
    expect(await names('/to')).toEqual(['a', 'b']);
  });

  test('takes no ephemeral znode along that was created after the survey', async () => {
    await surveyMove(client, '/from', '/to', {});
    await client.create('/from/live', null, { mode: 'ephemeral' });
    const message = 'cannot move /from/live: it is ephemeral, and belongs to the session that created it';
    await expect(moveAtOnce(client, '/from', '/to', {})).rejects.toMatchObject({
      exitCode: 18,
      message: `${message}; nothing was moved`,
    });
    expect(await client.exists('/to')).toBeNull();
    await expect(moveInSteps(client, '/from', '/to', {}, () => {})).rejects.toMatchObject({
      exitCode: 18,
      message: expect.stringContaining(message),
    });
    expect(await names('/from')).toEqual(['a', 'b', 'live']);
    expect(await client.exists('/to/live')).toBeNull();
  });

  test('in steps says what is where when it is interrupted', async () => {
    const controller = new AbortController();
    const moved = moveInSteps(client, '/from', '/to', { signal: controller.signal }, ({ step }) => {
      if (step === 'copied') controller.abort(new Error('interrupted'));
    });
    await expect(moved).rejects.toMatchObject({
      exitCode: 130,
      message: expect.stringMatching(/\/from is whole/),
    });
    expect(await names('/from')).toEqual(['a', 'b']);
  });
});
