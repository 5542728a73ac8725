import { SeededRandom } from '@meerkat/simulator';
import { expect, test } from 'vitest';
import { drawChange, type MemberChange, parseRoles } from './operator.ts';
import type { Role } from './server-files.ts';

const IDS = [1, 2, 3, 4, 5];

function draw(seed: number, roles: ReadonlyMap<number, Role>): MemberChange | null {
  return drawChange(new SeededRandom(seed, 'draw'), roles, IDS, 1, (id, role) => `server.${id}=${role}`);
}

function participantsAfter(roles: ReadonlyMap<number, Role>, change: MemberChange): number {
  const after = new Map('members' in change ? [] : roles);
  if (!('members' in change)) for (const id of change.leaving ?? []) after.delete(id);
  for (const line of 'members' in change ? change.members : (change.joining ?? [])) {
    const [id, role] = line.slice('server.'.length).split('=');
    after.set(Number(id), role as Role);
  }
  return [...after.values()].filter((role) => role === 'participant').length;
}

test('draws every kind of change, and none that leaves fewer than two participants', () => {
  const roles = new Map<number, Role>([
    [1, 'participant'],
    [2, 'participant'],
    [3, 'participant'],
    [4, 'observer'],
  ]);
  const changes = Array.from({ length: 200 }, (_, seed) => draw(seed, roles)).filter((change) => change !== null);
  const texts = changes.map((change) => JSON.stringify(change));
  for (const expected of ['"leaving":[1]', '"leaving":[4]', 'server.1=observer', 'server.5=participant', '"members"']) {
    expect(
      texts.some((text) => text.includes(expected)),
      expected,
    ).toBe(true);
  }
  for (const change of changes) expect(participantsAfter(roles, change)).toBeGreaterThanOrEqual(2);
  const two = new Map<number, Role>([
    [1, 'participant'],
    [2, 'participant'],
  ]);
  for (let seed = 0; seed < 200; seed++) {
    const change = draw(seed, two);
    if (change !== null) expect(participantsAfter(two, change)).toBeGreaterThanOrEqual(2);
  }
});

test('reads the member list in force', () => {
  const data = 'server.1=a:1:2:participant\nserver.2=b:1:2:observer;c:3\nversion=100000000';
  expect([...parseRoles(new TextEncoder().encode(data))]).toEqual([
    [1, 'participant'],
    [2, 'observer'],
  ]);
});
