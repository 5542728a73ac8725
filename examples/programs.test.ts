import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { format } from 'node:util';
import { type Client, connect, joinPath } from '@meerkat/client';
import { TestServer } from '@meerkat/testing';
import { afterEach, describe, expect, test, vi } from 'vitest';

/** Not programs: the runner, and files that need a server with TLS or SASL. */
const OTHERS = ['run.ts', 'tls.ts', 'sasl.ts'];

const PROGRAMS = readdirSync(import.meta.dirname).filter(
  (name) => name.endsWith('.ts') && !name.endsWith('.test.ts') && !OTHERS.includes(name),
);

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

describe('examples', () => {
  test.each(PROGRAMS)('%s prints the output listed at its end', async (name) => {
    await using server = await TestServer.start();
    vi.stubEnv('ZOOKEEPER', server.connectString);
    const printed: string[] = [];
    vi.spyOn(console, 'log').mockImplementation((...args) => void printed.push(...format(...args).split('\n')));
    await import(join(import.meta.dirname, name));
    expect(withGaps(printed, promisedBy(name))).toEqual(promisedBy(name));
    // Leftover znodes and sessions would affect the next run against the same server.
    expect(server.sessions()).toEqual([]);
    await using client = await connect(server.connectString);
    expect((await pathsBelow(client, '/')).toSorted()).toEqual(EMPTY_TREE);
  });
});

const EMPTY_TREE = ['/zookeeper', '/zookeeper/config', '/zookeeper/quota'];

async function pathsBelow(client: Client, path: string): Promise<string[]> {
  const { children } = await client.children(path);
  const paths = children.map((name) => joinPath(path, name));
  return [...paths, ...(await Promise.all(paths.map((each) => pathsBelow(client, each)))).flat()];
}

/** The lines of the comment at the end of a program. */
function promisedBy(name: string): string[] {
  const source = readFileSync(join(import.meta.dirname, name), 'utf8');
  const [, promised] = source.split('\n// Prints:\n');
  if (promised === undefined) throw new Error(`${name} does not say what it prints`);
  return promised
    .trimEnd()
    .split('\n')
    .map((line) => line.slice(PROMISE_INDENT));
}

/** `//` and three spaces. */
const PROMISE_INDENT = 5;

/** The output, with `…` wherever the expected output has one. */
function withGaps(printed: readonly string[], promised: readonly string[]): string[] {
  return printed.map((line, i) => {
    const pattern = (promised[i] ?? '').split('…').map((part) => escaped(part));
    return new RegExp(`^${pattern.join('.+')}$`).test(line) ? (promised[i] ?? '') : line;
  });
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}
