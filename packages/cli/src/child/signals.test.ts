import { expect, test } from 'vitest';
import { takeSignals } from './signals.ts';

test('keeps signals from their former listeners, and restores these', () => {
  const received: string[] = [];
  const before = (name: NodeJS.Signals): void => void received.push(`before ${name}`);
  process.on('SIGHUP', before);
  try {
    {
      using _ = takeSignals((name) => received.push(`taken ${name}`));
      process.emit('SIGHUP', 'SIGHUP');
    }
    process.emit('SIGHUP', 'SIGHUP');
  } finally {
    process.off('SIGHUP', before);
  }
  expect(received).toEqual(['taken SIGHUP', 'before SIGHUP']);
});
