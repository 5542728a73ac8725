import { beforeAll, expect, test } from 'vitest';
import { describeCli, type Ended } from './harness.ts';
import { SESSION_SCRIPT } from './shell/session-script.ts';

/** Command whose output, `3 - history 1`, marks the end of the previous line's output. */
const MARKER = 'history 1';

describeCli('meerkat shell', (site) => {
  let ended: Ended;
  /** Standard output of each line of the script, without events. */
  let answers: readonly string[];
  let messages: ReadonlyMap<number, string>;
  /** The number of the first line of each command in the input. */
  const lineNumbers: number[] = [];

  beforeAll(async () => {
    let input = '';
    for (const { line } of SESSION_SCRIPT) {
      lineNumbers.push(input.split('\n').length);
      input += `${line}\n${MARKER}\n`;
    }
    ended = await site.run(['shell'], { input: `${input}quit\nls /` });
    answers = ended.stdout.replaceAll(/^WATCHER:: .*\n/gm, '').split(new RegExp(`^\\d+ - ${MARKER}\n`, 'm'));
    messages = messagesOf(ended.stderr);
  });

  test.each(SESSION_SCRIPT.map(({ line }, i) => [i, line] as const))('line %i, %s, prints what it should', (i) => {
    const { prints = '', fails } = SESSION_SCRIPT[i] ?? { line: '' };
    const message = messages.get(lineNumbers[i] ?? 0) ?? '';
    if (typeof prints === 'string') expect(answers[i]).toBe(prints);
    else expect(answers[i]).toMatch(prints);
    if (fails === undefined) expect(message).toBe('');
    else expect(message).toMatch(fails);
  });

  test('prints the events of watches, and no others', () => {
    const watchLines = ended.stdout.split('\n').filter((line) => line.includes('WATCHER::'));
    const expected = SESSION_SCRIPT.flatMap(({ events = [] }) => events);
    expect(watchLines.map((line) => /type:\S+ path:\S+/.exec(line)?.[0])).toEqual(expected);
  });

  test('exits with the code of the last line that failed, and runs nothing after quit', () => {
    expect(ended.exitCode).toBe(3);
    expect(answers).toHaveLength(SESSION_SCRIPT.length + 1);
    expect(answers.at(-1)).toBe('');
  });
});

/** Messages on standard error, by line. */
function messagesOf(stderr: string): ReadonlyMap<number, string> {
  const messages = new Map<number, string>();
  for (const part of stderr.split(/^meerkat: line (?=\d+: )/m).slice(1)) {
    const end = part.indexOf(': ');
    messages.set(Number(part.slice(0, end)), part.slice(end + 2));
  }
  return messages;
}
