import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import type { Io } from '../run/io.ts';
import type { Column } from './column.ts';
import { Paint } from './paint.ts';
import { FORMATS, type Format, parseFormat, Report } from './report.ts';
import { byteCount, count, hex, isoTime } from './stat-columns.ts';

interface Fruit {
  readonly name: string;
  readonly grams: number;
  readonly note: string | null;
}

const COLUMNS: readonly Column<Fruit>[] = [
  { name: 'name', value: ({ name }) => name },
  { name: 'grams', align: 'right', value: ({ grams }) => grams, text: ({ grams }) => `${grams} g` },
  { name: 'note', only: 'data', value: ({ note }) => note },
  { name: 'heavy', only: 'table', value: ({ grams }) => (grams > 500 ? 'yes' : '') },
];

const PLUM: Fruit = { name: 'plum', grams: 30, note: 'a\ttab, a\\ and\na line' };
const MELON: Fruit = { name: '西瓜', grams: 3000, note: null };

function makeReport(format: Format): { report: Report; printed: () => string } {
  const stdout = new PassThrough();
  const io: Io = { stdin: new PassThrough(), stdout, stderr: new PassThrough(), env: {} };
  const chunks: Buffer[] = [];
  stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  return { report: new Report(io, format, new Paint(false)), printed: () => Buffer.concat(chunks).toString() };
}

async function listed(format: Format, fruits: readonly Fruit[]): Promise<string> {
  const { report, printed } = makeReport(format);
  const list = await report.list(COLUMNS);
  for (const fruit of fruits) await list.add(fruit);
  await list.end();
  return printed();
}

describe('a list', () => {
  test('is a table for people: lined up by what a terminal shows, without what is for programs', async () => {
    expect(await listed('table', [PLUM, MELON])).toBe(
      ['name   grams  heavy', 'plum    30 g', '西瓜  3000 g  yes', ''].join('\n'),
    );
    expect(await listed('table', [])).toBe('');
  });

  test('is one array in json, an object a line in ndjson', async () => {
    const objects = [PLUM, MELON];
    expect(JSON.parse(await listed('json', objects))).toEqual(objects);
    expect(await listed('json', [])).toBe('[]\n');
    const lines = (await listed('ndjson', objects)).trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toEqual(objects);
  });

  test('prints one line per item as fields, with tabs, backslashes and newlines escaped', async () => {
    expect(await listed('fields', [PLUM, MELON])).toBe('plum\t30\ta\\ttab, a\\\\ and\\na line\n西瓜\t3000\t\n');
  });

  test('continues as a stream once the widths are settled, and a wider cell moves only its own line', async () => {
    const many = Array.from({ length: 1001 }, (_, i) => ({ ...PLUM, name: i === 1000 ? 'blackberry' : 'plum' }));
    const { report, printed } = makeReport('table');
    const list = await report.list(COLUMNS);
    for (const fruit of many.slice(0, 1000)) await list.add(fruit);
    expect(printed().split('\n')).toHaveLength(1002);
    await list.add(many[1000]!);
    await list.end();
    expect(printed().split('\n').at(-2)).toBe('blackberry   30 g');
  });
});

describe('one thing', () => {
  test.each([
    ['table', 'name   plum\ngrams  30 g\nheavy\n'],
    ['ndjson', `${JSON.stringify(PLUM)}\n`],
    ['fields', 'plum\t30\ta\\ttab, a\\\\ and\\na line\n'],
  ] as const)('in the format %s', async (format, expected) => {
    const { report, printed } = makeReport(format);
    await report.one(COLUMNS, PLUM);
    expect(printed()).toBe(expected);
  });
});

test('a format that does not exist is answered with those that do', () => {
  for (const format of FORMATS) expect(parseFormat(format, '-o')).toBe(format);
  expect(() => parseFormat('yaml', '-o')).toThrow('-o: expected one of table, json, ndjson, fields, found "yaml"');
});

test('writing waits while the reader is slow, and not when the reader has gone', async () => {
  const stdout = new PassThrough({ highWaterMark: 4 });
  const io: Io = { stdin: new PassThrough(), stdout, stderr: new PassThrough(), env: {} };
  const report = new Report(io, 'table', new Paint(false));
  let isWritten = false;
  const writing = Promise.resolve(report.line('more than four bytes')).then(() => {
    isWritten = true;
  });
  await new Promise(setImmediate);
  expect(isWritten).toBe(false);
  stdout.resume();
  await writing;
  stdout.pause();
  const waiting = report.line('more than four bytes');
  stdout.destroy();
  await waiting;
  expect(report.line('to a closed stream')).toBeUndefined();
});

describe('values for people and programs', () => {
  test('bytes, counts, zxids and times', () => {
    expect([0, 1023, 1024, 1536, 20 * 1024, 5 * 1024 ** 3].map(byteCount)).toEqual([
      '0 B',
      '1023 B',
      '1.0 KiB',
      '1.5 KiB',
      '20 KiB',
      '5.0 GiB',
    ]);
    expect(count(1_234_567)).toBe('1,234,567');
    expect(hex(0x1_0000_004dn)).toBe('0x10000004d');
    expect(hex(-1n)).toBe('0xffffffffffffffff');
    expect(isoTime(0)).toBe('1970-01-01T00:00:00.000Z');
    expect(isoTime(Number.MAX_SAFE_INTEGER)).toBeNull();
  });
});
