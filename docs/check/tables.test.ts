import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isClientOp, OpCode, type Request } from '@meerkat/protocol';
import { describe, expect, test } from 'vitest';
import { FAULTS } from '../../packages/cli/src/doctor/faults.ts';
import { ERRORS, isRetryable } from '../../packages/client/src/error-table.ts';
import type { AttemptFailure } from '../../packages/client/src/machine/ports.ts';
import { isRepeatable } from '../../packages/client/src/machine/replies.ts';
import {
  ABSENT,
  COUNTER_SETS,
  COUNTERS,
  GAUGE_SETS,
  GAUGES,
  SUMMARIES,
  SUMMARY_SETS,
} from '../../packages/server/src/metrics/catalogue.ts';
import { formatList, IS_RECORDING, ROOT, readPage, readPart, writePart } from './pages.ts';

/** Parts of pages generated from the sources. RECORD=1 rewrites them. */
const PARTS: readonly (readonly [page: string, name: string, make: () => string])[] = [
  ['docs/client/connecting.md', 'options of connect', makeOptions],
  ['docs/client/connecting.md', 'failures of an attempt', makeAttemptFailures],
  ['docs/client/errors.md', 'errors', makeErrors],
  ['docs/client/outcomes.md', 'what is sent again', makeRepeatables],
];

describe('tables', () => {
  test.each(PARTS)('%s: the part "%s" matches the sources', (page, name, make) => {
    const content = make();
    if (IS_RECORDING) writePart(page, name, content);
    expect(readPart(page, name)).toBe(content);
  });
});

test('keys named in client errors are keys of zoo.cfg', () => {
  const keys = Object.values(ERRORS).flatMap(({ text }) => text.match(/\b[a-zA-Z.]+(?==true)/g) ?? []);
  expect(keys).toContain('reconfigEnabled');
  const page = readPage('docs/configuration.md');
  for (const key of keys) expect(page).toContain(`\n- \`${key}\` (`);
});

test('docs/metrics.md: every ZooKeeper metric on the page is reported', () => {
  const page = readPage('docs/metrics.md');
  const known = new Set(
    [...GAUGES, ...GAUGE_SETS, ...COUNTERS, ...COUNTER_SETS, ...SUMMARIES, ...SUMMARY_SETS]
      .map(({ name }) => name)
      .filter((name) => !ABSENT.includes(name)),
  );
  const [, differences = ''] = page.split("## ZooKeeper's names");
  const named = [...differences.matchAll(/`([a-z][a-z0-9]*(?:_[a-z0-9]+)+)`/g)].map(([, name = '']) => name);
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter((name) => !known.has(name))).toEqual([]);
});

test('docs/protocol/client.md: every operation with requests or txns is listed with its number and name', () => {
  const operations = readPage('docs/protocol/client.md').split('## Operations')[1]?.split('## Errors')[0] ?? '';
  const written = new Set([...operations.matchAll(/(−?\d+) ([a-z]\w+)/g)].map(([, op, name]) => `${op} ${name}`));
  const { notification: _, error: __, ...named } = OpCode;
  const missing = Object.entries(named).filter(([name, op]) => !written.has(`${op} ${name}`.replace('-', '−')));
  expect(missing).toEqual([]);
});

test("docs/metrics.md: every metric of Meerkat's own is on the page, and no other", () => {
  const namesIn = (text: string): string[] => [...new Set(text.match(/\bmeerkat_[a-z_]+/g))].toSorted();
  const written = readFileSync(join(ROOT, 'packages/server/src/metrics/exposition.ts'), 'utf8');
  expect(namesIn(readPage('docs/metrics.md'))).toEqual(namesIn(written));
});

test('each fault that the doctor reports is staged in a test, all but three on running servers', () => {
  const directory = join(ROOT, 'interop/doctor');
  const staged = readdirSync(directory).map((name) => readFileSync(join(directory, name), 'utf8'));
  const probed = readFileSync(join(ROOT, 'packages/cli/src/doctor/probes.test.ts'), 'utf8');
  const isIn = (texts: readonly string[], fault: string): boolean =>
    texts.some((text) => new RegExp(`['"^]${fault}['"\\\\]`).test(text));
  const others = Object.keys(FAULTS).filter((fault) => !isIn(staged, fault));
  expect(Object.keys(FAULTS).length - others.length).toBeGreaterThan(60);
  expect(others.toSorted()).toEqual(['quorum-login-refused', 'server-behind', 'tls-failed']);
  for (const fault of others) expect(isIn([probed], fault), fault).toBe(true);
});

function readClientSource(name: string): string {
  return readFileSync(join(ROOT, 'packages/client/src', name), 'utf8');
}

/** Every field of ConnectOptions, with its doc comment. */
function makeOptions(): string {
  const [, fields = ''] =
    /export interface ConnectOptions \{\n([\s\S]*?)\n\}/.exec(readClientSource('options.ts')) ?? [];
  const rows = [...fields.matchAll(/\/\*\*([\s\S]*?)\*\/\s*readonly (\w+)\??: /g)].map(
    ([, comment = '', name = '']) => [`\`${name}\``, comment.replaceAll(/\s*\n\s*\*\s*/g, ' ').trim()],
  );
  expect(rows.length).toBe([...fields.matchAll(/^ {2}readonly \w+/gm)].length);
  return formatList(rows);
}

const ATTEMPT_FAILURES: Readonly<Record<AttemptFailure, string>> = {
  dns: 'dns',
  refused: 'refused',
  unreachable: 'unreachable',
  'timed-out': 'timed-out',
  tls: 'tls',
  'not-zookeeper': 'not-zookeeper',
  'not-serving': 'not-serving',
  sasl: 'sasl',
};

/** The kinds of failure. The message states what happened and what to check. */
function makeAttemptFailures(): string {
  const names = Object.keys(ATTEMPT_FAILURES).map((failure) => `\`${failure}\``);
  return `\nKinds of \`failure\`: ${names.join(', ')}.\n\n`;
}

/** The error classes with their codes, by the outcome of a write that was sent. The message states what to do. */
function makeErrors(): string {
  const sources = readClientSource('errors.ts') + readClientSource('codec/decode-error.ts');
  const classes = new Map(
    [...sources.matchAll(/export class (\w+) extends ZooKeeperError \{[^}]*?declare readonly code: '(\w+)'/g)].map(
      ([, name, code]) => [code, name],
    ),
  );
  const groups = new Map<string, string[]>([
    ['`not-applied`', []],
    ['`not-applied`, retryable', []],
    ['`unknown`', []],
    ['`unknown`, retryable', []],
  ]);
  for (const [code, { number, outcome }] of Object.entries(ERRORS)) {
    const name = classes.get(code);
    if (name === undefined) throw new Error(`no class has the code ${code}`);
    const group = `\`${outcome === 'unknown' ? outcome : 'not-applied'}\`${isRetryable(code as keyof typeof ERRORS) ? ', retryable' : ''}`;
    groups.get(group)?.push(`\`${name}\` (\`${code}\`${number === null ? '' : ` ${number}`})`);
  }
  return `\n${[...groups].map(([group, names]) => `- ${group}: ${names.join(', ')}`).join('\n')}\n\n`;
}

/** Methods of the client, and the op code that they send. */
const METHODS: Readonly<Record<string, Request['op']>> = {
  get: OpCode.getData,
  exists: OpCode.exists,
  children: OpCode.getChildren2,
  getAcl: OpCode.getACL,
  descendantCount: OpCode.getAllChildrenNumber,
  ephemerals: OpCode.getEphemerals,
  multiRead: OpCode.multiRead,
  sync: OpCode.sync,
  whoAmI: OpCode.whoAmI,
  checkWatches: OpCode.checkWatches,
  watch: OpCode.addWatch,
  create: OpCode.create2,
  set: OpCode.setData,
  delete: OpCode.delete,
  setAcl: OpCode.setACL,
  transaction: OpCode.multi,
  reconfig: OpCode.reconfig,
  removeWatches: OpCode.removeWatches,
};

test('each client operation has its method in METHODS, or a reason why not', () => {
  const listed = new Set<number>(Object.values(METHODS));
  const others = Object.entries(OpCode).flatMap(([name, op]) => (isClientOp(op) && !listed.has(op) ? [name] : []));
  const ofTheSession = ['setWatches', 'setWatches2', 'auth', 'sasl', 'ping', 'closeSession'];
  const ofOptionsOfCreate = ['createContainer', 'createTTL'];
  const neverSent = ['create', 'getChildren'];
  expect(others.toSorted()).toEqual([...ofTheSession, ...ofOptionsOfCreate, ...neverSent].toSorted());
});

/** Two lists: operations sent again after a lost connection, and those that reject. */
function makeRepeatables(): string {
  const names = (isWanted: boolean): string =>
    Object.entries(METHODS)
      // The session only checks the op code.
      .filter(([, op]) => isRepeatable({ op } as Request) === isWanted)
      .map(([name]) => `\`${name}\``)
      .join(', ');
  return `\n- Sent again: ${names(true)}.\n- Not sent again: ${names(false)}.\n\n`;
}
