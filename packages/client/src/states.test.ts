import { TestServer } from '@meerkat/testing';
import { expect, test } from 'vitest';
import { connect } from './connect.ts';
import { makeDeferred } from './deferred.ts';
import type { StateChange } from './machine/state.ts';
import type { ZooKeeperError } from './zookeeper-error.ts';

test('a caller that requests several changes of state at once gets them in order, and the end', async () => {
  await using server = await TestServer.start();
  const client = await connect(server.connectString);
  const changes = client.states();
  const asked = Array.from({ length: 4 }, () => changes.next());

  await server.restart();
  await asked[1];
  await client.close();

  const received = (await Promise.all(asked)).map(({ value, done }) => (done === true ? 'end' : value.state));
  expect(received).toEqual(['suspended', 'connected', 'closed', 'end']);
});

test('a caller that waits during a notification does not get the change that another caller waited for', async () => {
  await using server = await TestServer.start();
  const client = await connect(server.connectString);
  const changes = client.states();
  const first = changes.next();
  const { promise: second, resolve } = makeDeferred<IteratorResult<StateChange>>();
  using _ = client.onState(() => resolve(changes.next()));

  await client.close();

  expect((await first).value).toMatchObject({ state: 'closed' });
  expect(await second).toEqual({ done: true, value: undefined });
});

test('a listener of lostSignal may call close on the client that is being closed, without effect', async () => {
  await using server = await TestServer.start();
  const client = await connect(server.connectString);
  const received: string[] = [];
  using _ = client.onState(({ state }) => received.push(state));
  const again: Promise<unknown>[] = [];
  client.lostSignal.addEventListener('abort', () => {
    received.push(`lost while ${client.state}, sure until ${client.lostAtMs}`);
    again.push(
      client.close(),
      client.get('/').catch((error: ZooKeeperError) => error.code),
    );
  });
  const inFlight = client.get('/').then(() => received.push('answered'));

  await client.close();

  await inFlight;
  expect(received).toEqual(['lost while connected, sure until -Infinity', 'answered', 'closed']);
  expect(await Promise.all(again)).toEqual([undefined, 'CLOSED']);
});
