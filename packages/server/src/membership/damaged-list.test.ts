import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { formatMembership, type Membership, parseMembership, parseZxid } from '@meerkat/protocol';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { ConfigurationError, readZooCfg } from '../config/zoo-cfg.ts';
import { formatDynamicFile } from './static-file.ts';

const directory = mkdtempSync(join(tmpdir(), 'meerkat-list-'));
const dynamicFile = join(directory, 'zoo.cfg.dynamic.100000007');
const FIVE = membership(
  [1, 2, 3, 4, 5].map((id) => `server.${id}=zk${id}.example:2888:3888;2181`).join('\n'),
  '100000007',
);

beforeEach(() => {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(join(directory, 'data'), { recursive: true });
  writeFileSync(join(directory, 'data', 'myid'), '1');
});

afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** @returns the list with which a server starts, or the lines that it ends with */
function start(readFile?: (path: string) => string): string | readonly string[] {
  const text = `dataDir=${directory}/data\ninitLimit=10\nsyncLimit=5\ndynamicConfigFile=${dynamicFile}\n`;
  const source = { text, file: join(directory, 'zoo.cfg'), workingDirectory: directory };
  try {
    const { core } = readZooCfg(readFile === undefined ? source : { ...source, readFile });
    return core.ensemble === null ? 'a server of its own' : formatMembership(core.ensemble.membership);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.message.split('\n');
    throw error;
  }
}

function startWith(bytes: Uint8Array): string | readonly string[] {
  writeFileSync(dynamicFile, bytes);
  return start();
}

describe('a list of members that this server has written', () => {
  const whole = new TextEncoder().encode(formatDynamicFile(FIVE));
  const right = formatMembership(FIVE);

  test('is read', () => {
    expect(startWith(whole)).toBe(right);
  });

  test('cut at any byte stops the start, with the file', () => {
    for (let length = 0; length < whole.length; length++) {
      const found = startWith(whole.subarray(0, length));
      expect(found, `${length} of ${whole.length} bytes`).toBeInstanceOf(Array);
      expect((found as readonly string[])[0]).toContain(dynamicFile);
    }
  });

  test('with any bit flipped stops the start, or means the same', () => {
    for (let bit = 0; bit < whole.length * 8; bit++) {
      const bytes = Uint8Array.from(whole);
      bytes[bit >> 3]! ^= 1 << (bit & 7);
      const found = startWith(bytes);
      if (typeof found === 'string') expect(found, `bit ${bit}`).toBe(right);
      else expect(found[0], `bit ${bit}`).toContain(dynamicFile);
    }
  });

  test('that has what another version says, or a line more, stops the start, and says what to do', () => {
    const four = membership(
      [1, 2, 3, 4].map((id) => `server.${id}=zk${id}.example:2888:3888;2181`).join('\n'),
      '100000005',
    );
    expect(startWith(new TextEncoder().encode(formatDynamicFile(four)))).toEqual([
      `${dynamicFile}, line 1: found "version 100000005", expected version 100000007, as the name of the file says. Copy the list of a running member (\`config\` in a client) into it, without this line`,
    ]);
    const more = `${new TextDecoder().decode(whole)}server.6=zk6.example:2888:3888;2181\n`;
    const [fault, ...others] = startWith(new TextEncoder().encode(more)) as readonly string[];
    expect(others).toEqual([]);
    expect(fault).toMatch(
      /zoo\.cfg\.dynamic\.100000007, line 1: found "crc32 [0-9a-f]{8}", expected [0-9a-f]{8}, which is that of the lines below: .* damaged or edited\. .* remove this line$/,
    );
  });

  test.each([
    ['nothing', ''],
    ['zeros', '\0'.repeat(300)],
    ['a zoo.cfg', 'dataDir=/data\nclientPort=2181\n'],
    ['bytes of a log', 'ZKLG\0\0\0\x02\0\0\0\0\0\0\0\0'],
  ])('with %s in its place stops the start', (_what, text) => {
    const found = startWith(new TextEncoder().encode(text));
    expect(found).toBeInstanceOf(Array);
    expect((found as readonly string[]).join()).toContain(dynamicFile);
  });
});

describe('a list of members that is not there', () => {
  const EXPECTED =
    'expected a file that lists the members, with lines such as server.1=host:2888:3888;2181. Copy the list of a running member (`config` in a client) into it';

  test('stops the start', () => {
    expect(start()).toEqual([
      `${directory}/zoo.cfg, line 4: dynamicConfigFile: found "no file ${dynamicFile}", ${EXPECTED}`,
    ]);
  });

  test('but a directory stops the start', () => {
    mkdirSync(dynamicFile);
    expect(start()).toEqual([
      `${directory}/zoo.cfg, line 4: dynamicConfigFile: found "${dynamicFile}: it is a directory", ${EXPECTED}`,
    ]);
  });

  test('because it must not be read stops the start', () => {
    const readFile = (path: string): string => {
      if (path !== dynamicFile) return readFileSync(path, 'utf8');
      throw Object.assign(new Error('EACCES: permission denied, open'), { code: 'EACCES' });
    };
    const [fault, ...others] = start(readFile);
    expect(others).toEqual([]);
    expect(fault).toContain(
      `${directory}/zoo.cfg, line 4: dynamicConfigFile: found "${dynamicFile}: permission denied: `,
    );
    expect(fault).toContain(EXPECTED);
  });
});

test('a list of members that Apache or an operator has written has no checksum', () => {
  const lines = [1, 2, 3].map((id) => `server.${id}=zk${id}.example:2888:3888:participant;0.0.0.0:2181\n`).join('');
  expect(startWith(new TextEncoder().encode(lines))).toContain('server.3=zk3.example');
});

function membership(text: string, version: string): Membership {
  const parsed = parseMembership(text);
  if ('fault' in parsed) throw new Error(parsed.fault);
  return { ...parsed, version: parseZxid(version)! };
}
