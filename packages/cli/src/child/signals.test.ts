import { expect, test } from 'vitest';
import { takeSignals } from './signals.ts';

test('keeps signals from their former listeners, and restores these', () => {
  const heard: string[] = [];
  const before = (name: NodeJS.Signals): void => void heard.push(`before ${name}`);
  process.on('SIGHUP', before);
  try {
    {
      using _ = takeSignals((name) => heard.push(`taken ${name}`));
      process.emit('SIGHUP', 'SIGHUP');
    }
    process.emit('SIGHUP', 'SIGHUP');
  } finally {
    process.off('SIGHUP', before);
  }
  expect(heard).toEqual(['taken SIGHUP', 'before SIGHUP']);
});
