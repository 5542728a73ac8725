import { describe, expect, test } from 'vitest';
import { FAULT_KINDS, formatFault, parseFault, planFaults } from './fault.ts';
import { SeededRandom } from './seeded-random.ts';

const OPTIONS = {
  kinds: FAULT_KINDS,
  durationMs: 60_000,
  servers: ['zk1', 'zk2', 'zk3'],
  clients: ['c1', 'c2'],
};

describe('a plan of faults', () => {
  test('is the same for the same seed, and another one for another', () => {
    const plan = planFaults(new SeededRandom(7, 'nemesis'), OPTIONS);
    expect(planFaults(new SeededRandom(7, 'nemesis'), OPTIONS)).toEqual(plan);
    expect(planFaults(new SeededRandom(8, 'nemesis'), OPTIONS)).not.toEqual(plan);
    expect(plan.length).toBeGreaterThan(5);
  });

  test('names moments in order, within the time, and only kinds that were asked for', () => {
    for (let seed = 0; seed < 50; seed++) {
      const plan = planFaults(new SeededRandom(seed), { ...OPTIONS, kinds: ['crash', 'partition'] });
      expect(plan.every(({ kind }) => kind === 'crash' || kind === 'partition')).toBe(true);
      expect(plan.every(({ atMs }) => atMs < OPTIONS.durationMs)).toBe(true);
      expect(plan.map(({ atMs }) => atMs)).toEqual(plan.map(({ atMs }) => atMs).toSorted((a, b) => a - b));
    }
  });

  test('has every kind in some seed, and no empty groups of hosts', () => {
    const kinds = new Set<string>();
    for (let seed = 0; seed < 50; seed++) {
      for (const fault of planFaults(new SeededRandom(seed), OPTIONS)) {
        kinds.add(fault.kind);
        expect(fault.hosts.length).toBeGreaterThan(0);
        if (fault.kind === 'partition') expect(fault.others.length).toBeGreaterThan(0);
      }
    }
    expect([...kinds].toSorted()).toEqual([...FAULT_KINDS].toSorted());
  });

  test('can be printed and read again', () => {
    for (const fault of planFaults(new SeededRandom(9), OPTIONS)) expect(parseFault(formatFault(fault))).toEqual(fault);
    expect(parseFault('now and then something')).toBeNull();
    expect(parseFault('5ms explode zk1 #3')).toBeNull();
  });

  test('reads in one line', () => {
    const fault = {
      kind: 'partition',
      atMs: 1200,
      durationMs: 300,
      hosts: ['zk1'],
      others: ['zk2', 'zk3'],
      chance: 5,
    } as const;
    expect(formatFault(fault)).toBe('1200ms partition zk1 | zk2,zk3 for 300ms #5');
  });
});
