import { describe, expect, test } from 'vitest';
import { parseConfig } from './ensemble-config.ts';
import { type MemberState, planSteps, survives, weightLine } from './plan.ts';

const THREE = parseConfig([1, 2, 3].map((id) => `server.${id}=zk${id}:2888:3888:participant;0.0.0.0:2181`).join('\n'));
const UP: MemberState = { role: 'follower', problem: null };
const DOWN: MemberState = { role: null, problem: 'nothing listens there' };

function states(...up: readonly string[]): ReadonlyMap<string, MemberState> {
  return new Map(['1', '2', '3', '4'].map((id) => [id, up.includes(id) ? UP : DOWN]));
}

describe('a plan of members', () => {
  test('reports that a step would lose the quorum', () => {
    const [step] = planSteps(THREE, [{ id: '2', line: null }], states('1', '2'));
    expect(step).toMatchObject({ voters: ['1', '3'], quorum: 2, up: 1 });
    expect(survives(step!)).toBe(false);
    expect(step!.first).toBe('start more of 1, 3: 1 answer, and 2 are needed');
  });

  test('adds before it removes, and requires the new server to be up', () => {
    const changes = [
      { id: '1', line: null },
      { id: '4', line: 'zk4:2888:3888;2181' },
    ];
    const steps = planSteps(THREE, changes, states('1', '2', '3'));
    expect(steps.map(({ what }) => what)).toEqual(['add server 4 as a participant', 'remove server 1']);
    expect(steps[0]!.first).toMatch(/^start server 4 .*: nothing listens there$/);
  });

  test('does not make the last participant an observer', () => {
    const one = parseConfig('server.1=zk1:2888:3888:participant;2181');
    const [step] = planSteps(one, [{ id: '1', line: 'zk1:2888:3888:observer;2181' }], states('1'));
    expect(step!.first).toBe('keep a participant: without one there is no quorum');
  });

  test('supports no groups or weights: a majority is not a quorum there', () => {
    expect(weightLine(parseConfig(`${THREE.text}\ngroup.1=1:2:3\nweight.1=1`))).toBe('group.1=1:2:3');
    expect(weightLine(THREE)).toBeNull();
  });
});
