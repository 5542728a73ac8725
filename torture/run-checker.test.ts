import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '@meerkat/client';
import { type FinalState, History, SeededRandom, Workload, type WorkloadHost } from '@meerkat/simulator';
import { TestEnsemble } from '@meerkat/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LogsOfServer } from './committed-log.ts';
import { linesAbout } from './history-text.ts';
import { readLogsOfServer } from './log-files.ts';
import { type Evidence, RunChecker } from './run-checker.ts';
import { TappedTransport } from './tapped-transport.ts';

const OPERATIONS = 300;

let directory = '';
/** From an ensemble in this process, on real sockets and files, without faults. */
let evidence: Evidence;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'meerkat-checker-'));
  await using ensemble = await TestEnsemble.start({ storage: { directory } });
  const history = new History(() => performance.now());
  const serverAt = (_host: string, port: number): number =>
    ensemble.idOf(ensemble.servers.find((server) => server.port === port)!);
  const host: WorkloadHost = {
    random: new SeededRandom(1, 'judge'),
    connect: (_client, options, makeTap) => {
      const transport = new TappedTransport(serverAt, makeTap);
      return connect({ ...options, servers: ensemble.connectString, transport });
    },
    sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    fail: (error) => expect.unreachable(String(error)),
  };
  const workload = new Workload(host, history, { operationsPerSecond: 40 });
  workload.start();
  await until(() => history.operations.length >= OPERATIONS);
  await workload.stop();
  // A session that is still open expires by itself.
  await until(() => new Set(ensemble.servers.map(({ view }) => `${view.lastZxid} ${view.sessionCount}`)).size === 1);
  await until(() => ensemble.servers.every(({ view }) => view.sessionCount === 0));
  await until(() => new Set(ensemble.servers.map(({ view }) => view.lastZxid)).size === 1);
  const ids = ensemble.servers.map((server) => ensemble.idOf(server));
  evidence = {
    history,
    logs: ids.map((id) => {
      const own = join(directory, String(id));
      return readLogsOfServer({ id, data: join(own, 'version-2'), attic: join(own, 'attic') }, 0);
    }),
    established: new Map([[1, 0]]),
    finalStates: ensemble.servers.map((server): FinalState => {
      const { lastZxid, treeDigest, sessions, znodes } = server.view.database()!;
      const copies = [...znodes()].map(({ path, data, stat }) => ({ path, data: data?.slice() ?? null, stat }));
      return { server: ensemble.idOf(server), lastZxid, treeDigest, znodes: copies, sessions: new Map(sessions) };
    }),
    digests: [],
  };
});

afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Polls without a limit other than the timeout of the test. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 10));
}

function broken(changes: Partial<Evidence>): readonly string[] {
  const violations = new RunChecker().check({ ...evidence, ...changes });
  return [...new Set(violations.map(({ invariant }) => invariant))].sort();
}

/** The last acknowledged write of a key. */
function acknowledged(): number {
  const lastSet = evidence.history.operations.findLast(
    ({ result, request }) => result !== null && request.op === 'set',
  );
  return lastSet!.zxid!;
}

function without(logs: LogsOfServer, lost: number): LogsOfServer {
  return { ...logs, txns: logs.txns.filter(({ zxid }) => zxid !== lost) };
}

describe('the checker of a run', () => {
  it('finds no violation in a correct run with much activity', () => {
    expect(broken({})).toEqual([]);
    const { operations } = evidence.history;
    expect(operations.filter(({ result }) => result !== null).length).toBeGreaterThan(20);
    const checker = new RunChecker();
    checker.check(evidence);
    expect(checker.txns).toBeGreaterThan(20);
    expect(checker.behind).toBe(evidence.finalStates[0]!.lastZxid);
  });

  it('reports a lost acknowledged write and shows its history', () => {
    const lost = acknowledged();
    const violations = new RunChecker().check({ ...evidence, logs: evidence.logs.map((logs) => without(logs, lost)) });
    const found = violations.find(({ invariant }) => invariant === 'D4');
    expect(found?.message).toMatch(
      /set \/w\/\S+ \(operation \d+\) was acknowledged with 0x[0-9a-f]+, which is not committed/,
    );
    const operation = /operation \d+/.exec(found!.message)![0];
    expect(linesAbout(found!, evidence.history.entries, 200).join('\n')).toContain(`(${operation}) answered`);
    expect(linesAbout(found!, evidence.history.entries, 5)).toHaveLength(5);
  });

  it('reports a last write that all servers lost', () => {
    const writes = evidence.history.operations.filter(({ result, request }) => result !== null && request.op === 'set');
    const last = Math.max(...writes.map(({ zxid }) => zxid!));
    const cut = (logs: LogsOfServer): LogsOfServer => ({ ...logs, txns: logs.txns.filter(({ zxid }) => zxid < last) });
    const finalStates = evidence.finalStates.map((state) => ({
      ...state,
      lastZxid: last - 1,
      znodes: null,
      sessions: null,
    }));
    expect(broken({ logs: evidence.logs.map(cut), finalStates })).toContain('D4');
  });

  it('reports a server whose log lacks what the others have', () => {
    const [first, ...others] = evidence.logs;
    expect(broken({ logs: [without(first!, acknowledged()), ...others] })).toEqual(['Z4']);
  });

  it('reports servers that end with different trees, data or digests', () => {
    const [first, ...others] = evidence.finalStates;
    const znodes = [...first!.znodes!].filter(({ path }) => path !== '/w');
    expect(broken({ finalStates: [{ ...first!, znodes }, ...others] })).toEqual(['W6']);
    expect(broken({ finalStates: [{ ...first!, treeDigest: 1n }, ...others] })).toEqual(['L2']);
    const digests = [1, 2].map((server) => ({ server, digests: new Map([[5, `${server}`]]) }));
    expect(broken({ digests })).toEqual(['Z17']);
  });

  it('reports a client that read a state that never existed', () => {
    const read = evidence.history.operations.find(({ result }) => result?.op === 'get')!;
    const { result } = read;
    read.result = { ...result, data: 'never written' } as typeof result;
    expect(broken({})).toEqual(['C3']);
    read.result = result;
  });

  it('continues after what it has already checked', () => {
    const checker = new RunChecker();
    checker.check(evidence);
    const logs = evidence.logs.map((one) => ({ ...one, isWhole: false }));
    expect(checker.check({ ...evidence, logs, history: new History(() => 0) })).toEqual([]);
  });
});
