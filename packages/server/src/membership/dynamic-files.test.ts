import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type DiskError, MemoryDisk } from '@meerkat/core';
import { type Membership, parseMembership } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { parseProperties } from '../config/properties.ts';
import { readZooCfg } from '../config/zoo-cfg.ts';
import { copyMode } from './copy-mode.ts';
import { DynamicFiles } from './dynamic-files.ts';
import { editStaticFile } from './static-file.ts';

const STATIC = `# ours
dataDir=/data
clientPort=2181
initLimit=10
syncLimit=5
reconfigEnabled=true
server.1=a:2888:3888
server.2=b:2888:3888
server.3=c:2888:\\
  3888
`;

describe('a zoo.cfg that lists its members', () => {
  test('names a file in their place, and keeps everything else', () => {
    expect(editStaticFile(STATIC, '/conf/zoo.cfg.dynamic.100000000', false)).toBe(
      '# ours\ndataDir=/data\nclientPort=2181\ninitLimit=10\nsyncLimit=5\nreconfigEnabled=true\n' +
        'dynamicConfigFile=/conf/zoo.cfg.dynamic.100000000\n',
    );
  });

  test('loses its client port once the list of members has it, and the reference to an older file', () => {
    const edited = editStaticFile(`${STATIC}dynamicConfigFile=/old\npeerType=observer\n`, '/new', true);
    expect(edited).not.toMatch(/clientPort|peerType|old/);
    expect(edited.match(/dynamicConfigFile/g)).toHaveLength(1);
  });
});

test('a directory with a backslash in its name is still found', () => {
  const edited = editStaticFile(STATIC, '/a\\b/zoo.cfg.dynamic.1', false);
  expect(parseProperties(edited).properties.at(-1)?.value).toBe('/a\\b/zoo.cfg.dynamic.1');
});

describe('the files of the dynamic configuration', () => {
  const first = membership(
    'server.1=a:1:2;0.0.0.0:3\nserver.2=b:1:2;0.0.0.0:3\nserver.3=c:1:2;0.0.0.0:3\nversion=100000000',
  );
  const second = membership('server.1=a:1:2;0.0.0.0:3\nserver.2=b:1:2;0.0.0.0:3\nversion=100000007');

  test('are a generation for each version, the next one while it is proposed, and the zoo.cfg of before', () => {
    const disk = new MemoryDisk();
    put(disk, '/conf/zoo.cfg', STATIC);
    const files = new DynamicFiles(disk, { serverId: 1, staticFile: '/conf/zoo.cfg' });
    keep(disk, files, first, second);
    expect(namesIn(disk)).toEqual(['zoo.cfg', 'zoo.cfg.bak', 'zoo.cfg.dynamic.100000000', 'zoo.cfg.dynamic.next']);
    expect(get(disk, '/conf/zoo.cfg.bak')).toBe(STATIC);
    expect(get(disk, '/conf/zoo.cfg.dynamic.next')).toContain('version=100000007');
    keep(disk, files, second, null);
    expect(namesIn(disk)).toEqual(['zoo.cfg', 'zoo.cfg.bak', 'zoo.cfg.dynamic.100000000', 'zoo.cfg.dynamic.100000007']);
    expect(get(disk, '/conf/zoo.cfg')).toContain('dynamicConfigFile=/conf/zoo.cfg.dynamic.100000007\n');
  });

  test('start a server wherever the machine ends, with the membership of before or of after', () => {
    const outcomes = new Set<number>();
    for (let effects = 0; ; effects++) {
      for (const survivors of ['nothing', 'everything'] as const) {
        const disk = new MemoryDisk();
        put(disk, '/conf/zoo.cfg', STATIC);
        const files = new DynamicFiles(disk, { serverId: 1, staticFile: '/conf/zoo.cfg' });
        let isDone = false;
        files.keep(first, second, () => {
          files.keep(second, null, () => {
            isDone = true;
          });
        });
        for (let i = 0; i < effects; i++) disk.deliver();
        disk.crash(survivors);
        const version = start(disk);
        outcomes.add(version);
        if (isDone && survivors === 'nothing') {
          expect(version).toBe(second.version);
          expect([...outcomes].sort()).toEqual([0, first.version, second.version]);
          return;
        }
      }
    }
  });

  test('have the permissions of zoo.cfg before there is anything in them, for it may have passwords', () => {
    const directory = mkdtempSync(join(tmpdir(), 'meerkat-mode-'));
    const staticFile = join(directory, 'zoo.cfg');
    writeFileSync(staticFile, STATIC, { mode: 0o600 });
    const disk = new MemoryDisk();
    put(disk, staticFile, STATIC);
    const sizes: number[] = [];
    const files = new DynamicFiles(disk, {
      serverId: 1,
      staticFile,
      copyMode: (source, target) => {
        sizes.push(get(disk, target).length);
        writeFileSync(target, '', { mode: 0o666 });
        copyMode(source, target);
      },
    });
    keep(disk, files, first, second);
    expect(sizes).toEqual([0, 0, 0, 0]);
    const modes = readdirSync(directory).map((name) => (statSync(join(directory, name)).mode & 0o777).toString(8));
    rmSync(directory, { recursive: true });
    expect(new Set(modes)).toEqual(new Set(['600']));
  });

  test('tell what is wrong when they cannot be written, and leave what was there', () => {
    const disk = new MemoryDisk();
    put(disk, '/conf/zoo.cfg', STATIC);
    const files = new DynamicFiles(disk, { serverId: 1, staticFile: '/conf/zoo.cfg' });
    disk.failNext({ operation: 'sync', code: 'ENOSPC', isLasting: true });
    let fault: Error | null = null;
    files.keep(first, null, (error) => {
      fault = error;
    });
    disk.deliverAll();
    expect(fault).toMatchObject({ code: 'ENOSPC' });
    expect(get(disk, '/conf/zoo.cfg')).toBe(STATIC);
  });

  /** What a server finds when it starts with these files. */
  function start(disk: MemoryDisk): number {
    const configuration = readZooCfg({
      text: get(disk, '/conf/zoo.cfg'),
      file: '/conf/zoo.cfg',
      workingDirectory: '/',
      readFile: (path) => (path.endsWith('myid') ? '1' : get(disk, path)),
    });
    return configuration.core.ensemble?.membership.version ?? -1;
  }
});

function membership(text: string): Membership {
  const parsed = parseMembership(text);
  if ('fault' in parsed) throw new Error(parsed.fault);
  return parsed;
}

function keep(disk: MemoryDisk, files: DynamicFiles, committed: Membership, proposed: Membership | null): void {
  let fault: Error | null | undefined;
  files.keep(committed, proposed, (error) => {
    fault = error;
  });
  disk.deliverAll();
  expect(fault).toBeNull();
}

function put(disk: MemoryDisk, path: string, text: string): void {
  disk.makeDirectory(dirname(path), () => {});
  disk.create(path, (_error, file) => {
    file.write(0, new TextEncoder().encode(text), () => file.sync(() => file.close()));
  });
  disk.syncDirectory(dirname(path), () => {});
  disk.deliverAll();
  disk.syncDirectory(dirname(path), () => {});
  disk.deliverAll();
}

function get(disk: MemoryDisk, path: string): string {
  let text = '';
  let failure: DiskError | null = null;
  disk.open(path, { readOnly: true }, (error, file) => {
    failure = error;
    if (error === null)
      file.read(0, file.size, (_readError, bytes) => {
        text = new TextDecoder().decode(bytes);
      });
  });
  disk.deliverAll();
  if (failure !== null) throw failure;
  return text;
}

function namesIn(disk: MemoryDisk): readonly string[] {
  let names: readonly string[] = [];
  disk.list('/conf', (_error, entries) => {
    names = entries.map(({ name }) => name).sort();
  });
  disk.deliverAll();
  return names;
}
