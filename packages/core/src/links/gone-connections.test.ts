/** Connections whose client is gone, at every stage of what they do. */
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { AddWatchMode, OpCode, type Request } from '@meerkat/protocol';
import { expect, test } from 'vitest';
import { DEFAULT_CORE_OPTIONS } from '../base/options.ts';
import { create } from '../testing/core-requests.ts';
import { type TestClient, TestServer } from '../testing/test-server.ts';

/** `--expose-gc`, without a separate process. */
const collectGarbage = ((): (() => void) => {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
})();

const list: Request = { op: OpCode.getChildren, path: '/many', watch: false };
const exists: Request = { op: OpCode.exists, path: '/many', watch: true };

/** Leaves a client in some state, in which its connection will be lost. */
type Stage = (server: TestServer, client: TestClient) => void;

function withSession(stage: Stage): Stage {
  return (server, client) => {
    client.connect({ timeoutMs: 4000 });
    server.run();
    stage(server, client);
  };
}

const heldWrite: Stage = (server, client) => {
  server.isDiskHeld = true;
  client.send(create('/a'));
  server.core.onTurnEnd();
};

const STAGES: Readonly<Record<string, Stage>> = {
  'before it sends anything': () => {},
  'before its session is created': (server, client) => {
    server.isDiskHeld = true;
    client.connect({ timeoutMs: 4000 });
    server.core.onTurnEnd();
  },
  'with a session': withSession(() => {}),
  'with a write in progress': withSession(heldWrite),
  'with reads behind a write': withSession((server, client) => {
    heldWrite(server, client);
    client.sendTogether([exists, list, { op: OpCode.sync, path: '/' }]);
    server.core.onTurnEnd();
  }),
  'with watches': withSession((server, client) => {
    const watch: Request = { op: OpCode.addWatch, path: '/', mode: AddWatchMode.persistentRecursive };
    client.sendTogether([exists, { ...list, watch: true }, watch]);
    server.run();
  }),
  'in a long read': withSession((server, client) => {
    client.send(list);
    server.core.onTurnEnd();
  }),
  'while its replies are not read': withSession((server, client) => {
    client.isDeaf = true;
    for (let i = 0; i < 100; i++) client.send(list);
    server.run();
  }),
  'in the middle of a request': withSession((_server, client) =>
    client.sendBytes(new Uint8Array([0, 0, 0, 100, 1, 2])),
  ),
  'in the middle of a large request': withSession((_server, client) =>
    client.sendBytes(new Uint8Array([0, 1, 0, 0, 1, 2])),
  ),
  'after it has ended its session': withSession((server, client) => {
    client.send({ op: OpCode.closeSession });
    server.run();
  }),
  'in the middle of a four-letter word': (_server, client) => client.sendBytes(new Uint8Array([114, 117])),
};

function makeServer(children = 3000): TestServer {
  const limits = { ...DEFAULT_CORE_OPTIONS.limits, largeRequestBytes: 1000 };
  const server = new TestServer({ limits, frameBytesMax: 2 ** 20 });
  const writer = server.connect();
  writer.send(create('/many'));
  for (let i = 0; i < children; i += 1000) {
    writer.send({ op: OpCode.multi, ops: Array.from({ length: 1000 }, (_, j) => create(`/many/child-${i + j}`)) });
    server.run();
    // Behind a long multi its client pauses.
    server.advance(1000);
  }
  writer.send({ op: OpCode.closeSession });
  server.run();
  return server;
}

/** Loses the connection of a client in that stage. The client is not reachable from here any more. */
function lose(server: TestServer, stage: Stage): WeakRef<TestClient> {
  const client = server.open();
  stage(server, client);
  client.drop();
  return new WeakRef(client);
}

/** Waits until the sessions of these clients have ended as well. */
async function expectNothingLeft(server: TestServer, lost: readonly WeakRef<TestClient>[]): Promise<void> {
  server.run();
  server.advance(20_000);
  server.trace.length = 0;
  // A WeakRef keeps its target until the end of the job that has made it.
  await setImmediate();
  collectGarbage();
  expect(lost.filter((client) => client.deref() !== undefined)).toHaveLength(0);
  expect(server.core.view.connectionCount).toBe(0);
}

test.each(Object.entries(STAGES))('a connection that is lost %s leaves nothing in memory', async (_when, stage) => {
  const server = makeServer();
  const lost = Array.from({ length: 20 }, () => {
    const client = lose(server, stage);
    server.isDiskHeld = false;
    return client;
  });
  await expectNothingLeft(server, lost);
  const survivor = server.connect();
  survivor.sendTogether([list, exists, create('/b')]);
  server.run();
  expect(survivor.takeArrivals()).toHaveLength(3);
});

test('connections that are lost while their long reads wait for others leave nothing in memory, and no read waits', async () => {
  const server = makeServer(20_000);
  const lost = ((): WeakRef<TestClient>[] => {
    const clients = Array.from({ length: 100 }, () => server.connect(4000));
    for (const client of clients) client.send(list);
    for (let turns = 0; turns < 5; turns++) server.core.onTurnEnd();
    expect(clients.filter(({ arrivals }) => arrivals.length > 0).length).toBeLessThan(10);
    // Those that wait first, then those that are read.
    for (const client of clients.reverse()) client.drop();
    return clients.map((client) => new WeakRef(client));
  })();
  await expectNothingLeft(server, lost);
  const survivor = server.connect();
  survivor.sendTogether([list, exists]);
  server.run();
  expect(survivor.takeArrivals()).toHaveLength(2);
});
