import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DEFAULT_ENSEMBLE_OPTIONS, type EnsembleOptions, type TraceEvent } from '@meerkat/core';
import { type Membership, parseMembership } from '@meerkat/protocol';
import { findFreePorts } from '@meerkat/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Configuration, makeConfiguration } from './config/options.ts';
import { TextLogger } from './logger.ts';
import type { RunningServer, StartOptions } from './running-server.ts';
import { startServer } from './server.ts';

let directory = '';
const servers: RunningServer[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'meerkat-ensemble-'));
});

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()));
  rmSync(directory, { recursive: true, force: true });
});

/** The configuration of each member of an ensemble on free ports of the loopback interface. */
async function configureEnsemble(size: number): Promise<readonly Configuration[]> {
  const ports = await findFreePorts(2 * size);
  const lines = Array.from({ length: size }, (_, i) => `server.${i + 1}=127.0.0.1:${ports[2 * i]}:${ports[2 * i + 1]}`);
  const membership = parseMembership([...lines, 'version=0'].join('\n')) as Membership;
  const ensemble: EnsembleOptions = { ...DEFAULT_ENSEMBLE_OPTIONS, membership };
  return lines.map((_line, i) =>
    makeConfiguration(join(directory, String(i + 1)), {
      core: { serverId: i + 1, tickTimeMs: 200, ensemble },
      server: { clientHost: '127.0.0.1', clientPort: 0, fourLetterWordsAllowed: ['*'] },
    }),
  );
}

async function start(configuration: Configuration, options: StartOptions = {}): Promise<RunningServer> {
  const server = await startServer(configuration, options);
  servers.push(server);
  return server;
}

async function ask(server: RunningServer, word: string): Promise<string> {
  const socket = connect(server.address.port, server.address.host);
  socket.write(word);
  let answer = '';
  for await (const chunk of socket) answer += chunk;
  return answer;
}

test('a member without a quorum starts, reports that it is not serving and what it waits for, and stops', async () => {
  const [configuration] = await configureEnsemble(3);
  let resolveNotified = (): void => {};
  const notified = new Promise<void>((resolve) => {
    resolveNotified = resolve;
  });
  const logger = new TextLogger('info', (line) => {
    if (line.includes('looks for a leader: 1 of 3 voting servers is reachable')) resolveNotified();
  });
  const server = await start(configuration!, { logger });
  expect(server.view.ensemble).toMatchObject({ role: 'looking', leader: null, connectedServers: [] });
  expect(await ask(server, 'ruok')).toBe('imok');
  expect(await ask(server, 'isro')).toBe('null');
  expect(await ask(server, 'srvr')).toBe('This ZooKeeper instance is not currently serving requests\n');
  await notified;
  await server.stop();
  await expect(server.serving).rejects.toThrow();
});

test('members that reach each other serve, and one that is stopped leaves the lead to another', async () => {
  const configurations = await configureEnsemble(3);
  const established: number[] = [];
  const trace = {
    emit: (event: TraceEvent) => void (event.kind === 'epoch-established' && established.push(event.epoch)),
  };
  const all = await Promise.all(configurations.map((configuration) => start(configuration, { trace })));
  await Promise.all(all.map((server) => server.serving));
  const leaders = all.filter(({ view }) => view.ensemble?.role === 'leading');
  expect(leaders).toHaveLength(1);
  const leader = leaders[0]!;
  expect(await ask(leader, 'srvr')).toContain('Mode: leader\n');
  const others = all.filter((server) => server !== leader);
  for (const server of others) expect(await ask(server, 'srvr')).toContain('Mode: follower\n');

  const before = Math.max(...established);
  const isElected = new Promise<void>((resolve) => {
    const push = established.push.bind(established);
    established.push = (epoch) => {
      if (epoch > before && others.some(({ view }) => view.ensemble?.role === 'leading')) resolve();
      return push(epoch);
    };
  });
  await leader.stop();
  await isElected;
});

test('an ensemble of one leads itself', async () => {
  const [configuration] = await configureEnsemble(1);
  const server = await start(configuration!);
  await server.serving;
  expect(await ask(server, 'mntr')).toContain('zk_server_state\tleader\nzk_peer_state\tleading - broadcast\n');
});
