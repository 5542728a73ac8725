import type { Client } from '@meerkat/client';
import { expect, test } from 'vitest';
import { changeMember } from './change-member.ts';
import { parseConfig } from './ensemble-config.ts';

const LIST = 'server.1=a:2:3:participant;4\nserver.2=b:2:3:participant;4\nversion=';
const BEFORE = parseConfig(`${LIST}100000001`);
const MOVE = { id: '2', line: 'c:2:3:participant;4' };

/** The reply to its reconfig is lost, and this is the configuration afterwards. */
function clientOf(list: string): Client {
  return {
    reconfig: () => Promise.reject(Object.assign(new Error('lost'), { outcome: 'unknown' })),
    config: () => Promise.resolve({ data: new TextEncoder().encode(list) }),
  } as unknown as Client;
}

test('a move in doubt counts as made only if the configuration has changed', async () => {
  await expect(changeMember(clientOf(BEFORE.text), BEFORE, MOVE, {})).rejects.toThrow('lost');
  const moved = `${LIST.replace('b:', 'c:')}100000002`;
  expect(await changeMember(clientOf(moved), BEFORE, MOVE, {})).toEqual(parseConfig(moved));
});
