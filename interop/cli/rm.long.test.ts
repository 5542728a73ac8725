import { beforeEach, expect, test } from 'vitest';
import { describeRequests } from './harness.ts';

describeRequests('meerkat rm', (site) => {
  beforeEach(async () => {
    for (const path of ['/rm', '/rm/a', '/rm/a/b', '/rm/a/b/c', '/rm/job-1', '/rm/job-2', '/rm/keep']) {
      await site.client.create(path, 'data').catch(() => {});
    }
  });

  const children = async (path: string) => (await site.client.children(path)).children.toSorted();

  test('deletes znodes without children, by name, pattern and version', async () => {
    expect(await site.run(['rm', '/rm/keep', '-v', '3'])).toMatchObject({ exitCode: 13, stdout: '' });
    expect(await site.run(['rm', '/rm/keep', '-v', '0'])).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
    const several = await site.run(['rm', '/rm/job-*', '/rm/a/b/c', '-o', 'ndjson']);
    expect(several).toMatchObject({ exitCode: 0, stderr: '' });
    expect(several.stdout.split('\n').toSorted()).toEqual([
      '',
      '{"path":"/rm/a/b/c","znodes":1}',
      '{"path":"/rm/job-1","znodes":1}',
      '{"path":"/rm/job-2","znodes":1}',
    ]);
    expect(await children('/rm')).toEqual(['a']);
    const parent = await site.run(['rm', '/rm/a']);
    expect(parent).toMatchObject({ exitCode: 12, stdout: '' });
    expect(parent.stderr).toBe('meerkat: cannot delete /rm/a: the znode has children; -r deletes them too\n');
  });

  test('deletes trees, reports the number of znodes, and shows a preview', async () => {
    const dry = await site.run(['rm', '-rn', '/rm/a', '/rm/a/b', '/rm/job-*']);
    expect(dry).toMatchObject({ exitCode: 0, stdout: '/rm/a\n/rm/a/b\n/rm/a/b/c\n/rm/job-1\n/rm/job-2\n' });
    expect(dry.stderr).toBe('5 znodes would be deleted; nothing was\n');
    const shallow = await site.run(['rm', '-n', '/rm/a', '-o', 'json']);
    expect(JSON.parse(shallow.stdout)).toMatchObject([{ path: '/rm/a', numChildren: 1, version: 0 }]);
    expect(await children('/rm')).toEqual(['a', 'job-1', 'job-2', 'keep']);

    expect(await site.run(['rm', '-r', '/rm/a', '--if-version', '2'])).toMatchObject({ exitCode: 13 });
    expect(await children('/rm/a')).toEqual(['b']);
    expect(await site.run(['rm', '-r', '/rm/a', '--if-version', '0'])).toMatchObject({
      exitCode: 0,
      stdout: '',
      stderr: 'deleted 3 znodes\n',
    });
    const json = await site.run(['rm', '-r', '-q', '/rm', '-o', 'json']);
    expect(JSON.parse(json.stdout)).toEqual([{ path: '/rm', znodes: 4 }]);
    expect(json.stderr).toBe('');
  });

  test('reports missing znodes, deletes the others, and ignores missing ones with -f', async () => {
    const some = await site.run(['rm', '/rm/no', '/rm/keep', '/rm/none']);
    expect(some).toMatchObject({ exitCode: 10, stdout: '' });
    expect(some.stderr).toBe(
      'meerkat: cannot delete /rm/no: there is no such znode\n' +
        'deleted 1 of 3 znodes\n' +
        'meerkat: cannot delete /rm/none: there is no such znode\n',
    );
    expect(await site.run(['rm', '-f', '/rm/no', '/rm/keep'])).toMatchObject({ exitCode: 0, stderr: '' });
    expect(await site.run(['rm', '-r', '/rm/no'])).toMatchObject({ exitCode: 10 });
    expect(await site.run(['rm', '-rf', '/rm/no'])).toMatchObject({ exitCode: 0 });
    const noMatch = await site.run(['rm', '/rm/no-*']);
    expect(noMatch).toMatchObject({
      exitCode: 10,
      stderr: 'meerkat: there is no znode like /rm/no-*: nothing was deleted\n',
    });
  });

  test('refuses the root and the znodes of the service, also below a chroot', async () => {
    expect(await site.run(['rm', '-r', '/'])).toMatchObject({
      exitCode: 2,
      stderr: "meerkat: the root cannot be deleted; name the znodes below it, as '/*' does all of them\n",
    });
    const system = await site.run(['rm', '-r', '/zookeeper']);
    expect(system).toMatchObject({ exitCode: 2 });
    expect(system.stderr).toMatch(/\/zookeeper cannot be deleted: it belongs to the service/);
    expect(await site.run(['rm', '/quota', '--chroot', '/zookeeper'])).toMatchObject({ exitCode: 2 });
    expect(await site.run(['rm', '/a', '/b', '-v', '1'])).toMatchObject({ exitCode: 2 });
    const all = await site.run(['rm', '-rn', '/*']);
    expect(all.stdout).toMatch(/^\/rm\n/);
    expect(all.stdout).not.toContain('/zookeeper');
  });

  test('reports that no server answers', async () => {
    const away = await site.run(['rm', '/rm', '--server', '127.0.0.1:1', '--connect-timeout', '200ms']);
    expect(away).toMatchObject({ exitCode: 3 });
  });

  test.each([
    [
      ['rm', '-r', '/rm/a'],
      /^deleted at least ([\d,]+) znodes; of \/rm\/a, at most ([\d,]+) are left\nmeerkat: interrupted\n$/,
    ],
    [
      ['shell', '-c', 'deleteall /rm/a'],
      /^stopped: deleted at least ([\d,]+) znodes; of \/rm\/a, at most ([\d,]+) are left\n/,
    ],
  ])('%j reports its progress when interrupted', async (words, expected) => {
    for (let i = 0; i < 5; i++) {
      await Promise.all(Array.from({ length: 1000 }, (_, j) => site.client.create(`/rm/a/${i}-${j}`)));
    }
    const childrenOfA = async () => (await site.client.exists('/rm/a'))?.numChildren ?? 0;
    const all = await childrenOfA();
    const running = site.start(words);
    while ((await childrenOfA()) === all);
    running.child.kill('SIGINT');
    const ended = await running.ended;
    expect(ended.exitCode).toBe(130);
    const left = await childrenOfA();
    // A fast machine may have finished; the exit code reports the interruption anyway.
    if (left > 0) {
      expect(ended.stderr).toMatch(expected);
      const numbers = (expected.exec(ended.stderr) ?? []).slice(1).map((text) => Number(text.replaceAll(',', '')));
      const [deletedMin, leftMax] = numbers;
      expect(deletedMin).toBeLessThanOrEqual(all - left);
      // The znode itself is one more.
      expect(leftMax).toBeGreaterThanOrEqual(left + 1);
    }
    await site.client.deleteRecursive('/rm');
  });
});
