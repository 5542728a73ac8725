import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Client, connect } from '@meerkat/client';
import { expect, test } from 'vitest';
import { RunningCommand } from './cli/harness.ts';
import { Ensemble } from './ensemble/ensemble.ts';
import { startWriter } from './ensemble/load.ts';

/* Maintenance: a server is drained before it stops, and clients are rebalanced later; the pause is measured. */

test('clients leave a drained server with their sessions, and return on rebalancing', async () => {
  const place = { kind: 'meerkat', hasAdmin: true } as const;
  const ensemble = await Ensemble.start([place, place, place], { maxClientCnxns: 0 });
  const run = (...args: string[]) => new RunningCommand(args, {}, false).ended;
  const clients: Client[] = [];
  try {
    for (let i = 0; i < 30; i++) {
      const client = await connect(ensemble.connectString, { sessionTimeoutMs: 30_000 });
      await client.create(`/mine-${i}`, '', { mode: 'ephemeral' });
      clients.push(client);
    }
    const sessions = clients.map((client) => client.session?.id);
    const places = ensemble.members.map(({ server }) => `127.0.0.1:${server.port}`);
    const [one, two, three] = ensemble.members;
    const [first = ''] = places;

    // A client that writes continuously, to measure the longest time without a reply.
    let [longestMs, isOver, writes] = [0, false, 0];
    const writer = await connect(ensemble.connectString, {
      sessionTimeoutMs: 30_000,
      backOff: { minMs: 5, maxMs: 50 },
    });
    await writer.create('/written');
    const writing = (async () => {
      for (let lastMs = performance.now(); !isOver; ) {
        await writer.set('/written', 'x').then(
          () => writes++,
          () => {},
        );
        longestMs = Math.max(longestMs, performance.now() - lastMs);
        lastMs = performance.now();
      }
    })();

    const drained = await run('drain', '--server', first, '--http-port', String(one?.server.adminPort));
    expect(drained, drained.stderr).toMatchObject({ exitCode: 0, stdout: `${first} has no clients left\n` });
    const ready = await fetch(`http://127.0.0.1:${one?.server.adminPort}/readyz`);
    expect([ready.status, await ready.text()]).toEqual([503, expect.stringContaining('[-]draining failed')]);
    const pauseOfDrainMs = longestMs;
    longestMs = 0;
    await one?.server.restart();
    await expect.poll(() => ensemble.modeOf(one!)).not.toBeNull();
    const pauseOfRestartMs = longestMs;
    isOver = true;
    await writing;
    await writer.close();
    console.log(
      `drain: a writer waited ${Math.round(pauseOfDrainMs)} ms at most, ${Math.round(pauseOfRestartMs)} ms while the drained server was restarted (${writes} writes)`,
    );

    // No client has returned by itself; each other server has more than its third.
    const ports = [one, two, three].map((member) => member?.server.adminPort).join(',');
    const even = ['rebalance', '--server', places.join(','), '--http-port', ports, '-o', 'json'];
    const before = JSON.parse((await run(...even, '--dry-run')).stdout) as { connections: number; closed: number }[];
    expect(before[0]).toMatchObject({ connections: 0, closed: 0 });
    expect(before.reduce((sum, { connections }) => sum + connections, 0)).toBe(30);
    for (const { connections, closed } of before) expect(closed).toBe(Math.max(0, connections - 10));
    await expect
      .poll(
        async () => {
          const ended = await run(...even);
          const found = JSON.parse(ended.stdout) as { connections: number }[];
          return Math.min(...found.map(({ connections }) => connections));
        },
        { timeout: 60_000 },
      )
      .toBeGreaterThan(6);

    // Sessions and their ephemerals are unchanged.
    for (const [i, client] of clients.entries()) {
      expect((await client.get(`/mine-${i}`)).stat.ephemeralOwner).toBe(sessions[i]);
    }
    expect(clients.map((client) => client.session?.id)).toEqual(sessions);
  } finally {
    await Promise.all(clients.map((client) => client.close({ timeoutMs: 2000 }).catch(() => {})));
    await ensemble.dispose();
  }
});

test('a rolling restart by the command loses no session or acknowledged write, and ends with the leader', async () => {
  const place = { kind: 'meerkat', hasAdmin: true } as const;
  const ensemble = await Ensemble.start([place, place, place, { ...place, isObserver: true }]);
  const restarted: number[] = [];
  const restart = async (port: number): Promise<void> => {
    const { id, server } = ensemble.members.find((member) => member.server.port === port)!;
    restarted.push(id);
    // Drains every second server first.
    if (restarted.length % 2 === 1) {
      const args = ['drain', '--server', `127.0.0.1:${port}`, '--http-port', String(server.adminPort)];
      const { exitCode, stderr } = await new RunningCommand(args, {}, false).ended;
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    }
    await server.stop();
    await server.restart();
  };
  // The command runs a shell script, but this process controls the servers.
  const control = createServer((request, response) => {
    restart(Number(request.url?.slice(1))).then(
      () => response.end(),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  await once(control.listen(0, '127.0.0.1'), 'listening');
  try {
    const { connectString } = ensemble;
    const leader = await ensemble.leader();
    const writer = await startWriter(connectString, '/load', 30_000);
    const url = `http://127.0.0.1:${(control.address() as AddressInfo).port}`;
    const script = `const r=await fetch("${url}/{port}");if(!r.ok)throw new Error(await r.text())`;
    const command = `'${process.execPath}' --input-type=module -e '${script}'`;
    const words = ['roll', '--server', connectString, '--probe', '/probe', '--command', command, '-o', 'json'];
    const rolled = await new RunningCommand(words, {}, false).ended;
    expect(rolled, rolled.stderr).toMatchObject({ exitCode: 0 });
    const rows = JSON.parse(rolled.stdout) as { role: string; pauseMs: number; requests: number; failures: number }[];
    const pauses = rows.map(({ role, pauseMs, failures }) => `${role} ${pauseMs} ms (${failures} failed)`);
    console.log(`roll, the first and the third drained before: ${pauses.join(', ')}`);
    expect(rows.map(({ role }) => role)).toEqual(['observer', 'follower', 'follower', 'leader']);
    expect(restarted).toHaveLength(4);
    expect(restarted.at(-1)).toBe(leader.id);
    const written = await writer.finish();
    await using client = await connect(connectString);
    const { children } = await client.children('/load');
    expect(children.filter((name) => !['register', 'mine'].includes(name))).toHaveLength(written.count);
    expect((await client.get('/load/mine')).stat.ephemeralOwner).toBe(written.session);
    await writer[Symbol.asyncDispose]();
  } finally {
    control.close();
    await ensemble.dispose();
  }
});

test('draining requires all permissions on the root', async () => {
  const ensemble = await Ensemble.start([{ kind: 'meerkat', hasAdmin: true }]);
  const [one] = ensemble.members;
  const client = await connect(ensemble.connectString);
  try {
    await client.setAcl('/', [{ perms: 31, scheme: 'digest', id: 'ann:zEwfeoXyQEqGJtBYXPZ1QbDpXZI=' }]);
    const args = ['drain', '--server', `127.0.0.1:${one?.server.port}`, '--http-port', String(one?.server.adminPort)];
    const ended = await new RunningCommand(args, {}, false).ended;
    expect(ended.exitCode).toBe(4);
    expect(ended.stderr).toContain('give credentials with all permissions of the root');
    expect(client.session).not.toBeNull();
    const nobody = await new RunningCommand([...args.slice(0, 3), '--http-port', '1'], {}, false).ended;
    expect(nobody).toMatchObject({ exitCode: 3 });
  } finally {
    await client.close();
    await ensemble.dispose();
  }
});
