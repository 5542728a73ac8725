import { TestServer } from '@meerkat/testing';
import { expect, test } from 'vitest';
import { connect } from './connect.ts';

test('whoever asks for several changes of state at once gets them in their order, and the end', async () => {
  await using server = await TestServer.start();
  const client = await connect(server.connectString);
  const changes = client.states();
  const asked = Array.from({ length: 4 }, () => changes.next());

  await server.restart();
  await asked[1];
  await client.close();

  const told = (await Promise.all(asked)).map(({ value, done }) => (done === true ? 'end' : value.state));
  expect(told).toEqual(['suspended', 'connected', 'closed', 'end']);
});
