import { describe, expect, it } from 'vitest';
import { HELP, parseOptions, REAL_FAULTS } from './options.ts';

describe('the command line', () => {
  it('has a default for every option', () => {
    expect(parseOptions([], 7)).toEqual({
      servers: 3,
      minutes: 5,
      clients: 8,
      seed: 7,
      faults: null,
      usesProxies: false,
      keeps: false,
      summary: null,
    });
  });

  it('names all kinds of faults in its help', () => {
    expect(parseOptions(['--help'], 7)).toBeNull();
    for (const kind of REAL_FAULTS) expect(HELP).toContain(kind);
  });

  it('accepts a list of fault kinds, or none', () => {
    expect(parseOptions(['--faults', 'crash,disk-error'], 7)).toMatchObject({ faults: ['crash', 'disk-error'] });
    expect(parseOptions(['--faults', 'none'], 7)).toMatchObject({ faults: [] });
  });

  it.each([
    [['--servers', '4'], '--servers: expected 3 or 5'],
    [['--minutes', '0'], '--minutes'],
    [['--minutes', 'many'], '--minutes'],
    [['--clients', '1.5'], '--clients'],
    [['--faults', 'rot'], '"rot" only exists in the simulator'],
    [['--faults', 'fire'], 'there is no "fire"'],
    [['--wrong'], "Unknown option '--wrong'"],
  ])('reports what is wrong with %s', (args, message) => {
    expect(parseOptions(args, 7)).toContain(message);
  });
});
