import { Command, Option } from 'commander';
import { describe, expect, test } from 'vitest';
import { candidatesFor, completionOf, cursorOf, escapeWord, splitPath, wordEnd } from './completion.ts';
import { scan } from './words.ts';

describe('the word at the cursor', () => {
  test('is a command where a command begins', () => {
    expect(cursorOf('')).toEqual({ slot: { kind: 'command', typed: '' }, quote: null });
    expect(cursorOf('ls /; ge')).toEqual({ slot: { kind: 'command', typed: 'ge' }, quote: null });
  });

  test('is told without its quotes and escapes, with the quote that is open', () => {
    expect(cursorOf('get -s "/with bl')).toEqual({
      slot: { kind: 'word', command: 'get', before: ['-s'], typed: '/with bl' },
      quote: '"',
    });
    expect(cursorOf('get /with\\ bl')).toMatchObject({ slot: { typed: '/with bl' }, quote: null });
    expect(cursorOf('get /a ')).toMatchObject({ slot: { before: ['/a'], typed: '' } });
  });
});

describe('what can stand there', () => {
  const line = new Command().option('-o, --output <format>', '');
  const command = new Command('addWatch')
    .argument('<path>')
    .addOption(new Option('-m, --mode <mode>').choices(['PERSISTENT', 'PERSISTENT_RECURSIVE']))
    .option('-q, --quick');

  test('are options behind a "-", those of all lines too', () => {
    expect(candidatesFor(command, line, [], '--')).toEqual({
      texts: ['--mode', '--quick', '--output'],
      mayBePath: false,
    });
  });

  test('are choices behind an option that has them', () => {
    expect(candidatesFor(command, line, ['-m'], 'P').texts).toEqual(['PERSISTENT', 'PERSISTENT_RECURSIVE']);
    expect(candidatesFor(command, line, ['/a', '--output'], '').texts).toContain('ndjson');
  });

  test('are paths otherwise, for a command that takes arguments', () => {
    expect(candidatesFor(command, line, ['-q'], '/a')).toEqual({ texts: [], mayBePath: true });
    expect(candidatesFor(new Command('pwd'), line, [], '')).toEqual({ texts: [], mayBePath: false });
  });
});

describe('a completion', () => {
  test('of one name is the whole name, with what goes behind it', () => {
    expect(completionOf(['config'], 'co', null, '/')).toEqual({ texts: ['config/'], on: 'co' });
    expect(completionOf(['a b'], 'a', '"', wordEnd('"'))).toEqual({ texts: ['a b" '], on: 'a' });
    expect(completionOf([], 'x', null, ' ')).toEqual({ texts: [], on: 'x' });
  });

  test('of several is what they have in common, and then a list with an end', () => {
    expect(completionOf(['job-1', 'job-2'], 'j', null, '')).toEqual({ texts: ['job-'], on: 'j' });
    expect(completionOf(['job-1', 'job-2'], 'job-', null, '')).toEqual({ texts: ['job-1', 'job-2'], on: 'job-' });
    const many = Array.from({ length: 5000 }, (_, i) => `job-${i}`);
    const { texts } = completionOf(many, 'job-', null, '');
    expect(texts).toHaveLength(101);
    expect(texts.at(-1)).toBe('… 4900 more');
  });

  test.each([null, '"', "'"] as const)('is escaped so that it is read as the name again, behind %s', (quote) => {
    for (const name of ['plain', 'with blank', 'back\\slash', "'quoted'", '#1', 'a;', 'a"b']) {
      if (quote === "'" && name.includes("'")) continue;
      const [command] = scan(`get ${quote ?? ''}${escapeWord(name, quote)}${wordEnd(quote)}`).commands;
      expect(command?.words).toEqual(['get', name]);
    }
  });
});

test('a path is completed from the children of what stands before its last slash', () => {
  expect(splitPath('/app/co')).toEqual({ parent: '/app/', start: 'co' });
  expect(splitPath('co')).toEqual({ parent: '.', start: 'co' });
  expect(splitPath('/')).toEqual({ parent: '/', start: '' });
});
