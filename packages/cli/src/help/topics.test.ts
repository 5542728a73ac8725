import { expect, test } from 'vitest';
import { FAULTS } from '../doctor/faults.ts';
import { describeFaults } from './topics.ts';

test('the topic of faults has every fault that the doctor names, with what it means and what to do', () => {
  const text = describeFaults(FAULTS);
  for (const [name, { meaning, advice, isNote }] of Object.entries(FAULTS))
    expect(text).toContain(`  ${name}${isNote === true ? ' (note)' : ''}\n      ${meaning}: ${advice}`);
});
