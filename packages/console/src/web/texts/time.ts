import { count, time } from '../figures.ts';

/** Past trees. */
export const TIME_TEXTS = {
  time: {
    title: 'Tree of the past',
    slider: 'Moment',
    moment: 'Zxid or time',
    momentExample: '0x100000004d, 14:05, 10m ago',
    show: 'Show',
    compare: 'Compare with',
    compareSubmit: 'Compare',
    noCompare: 'End comparison',
    asOf: (zxid: string, atMs: number | null): string => `as of ${zxid}${atMs === null ? '' : `, ${time(atMs)}`}`,
    tree: 'Znodes as they were',
    absent: 'It was not there.',
    withheld: 'This is not shown: you may not read it now, or its ACL was another one and not open to all.',
    more: (n: number): string => `and ${count(n)} more`,
    between: (from: string, to: string): string => `From ${from} to ${to}:`,
    compared: (compared: number, found: number): string =>
      `${count(found)} ${found === 1 ? 'difference' : 'differences'} in ${count(compared)} ${compared === 1 ? 'znode' : 'znodes'}.`,
    cut: 'There are more znodes than are compared at once: choose a subtree.',
    withheldSome: (n: number): string => `${count(n)} may not be read: what was below them is left out.`,
    differences: 'Differences',
    path: 'Path',
    change: 'What',
    changes: {
      created: 'created',
      deleted: 'deleted',
      recreated: 'deleted and created again',
      changed: 'changed',
      acl: 'ACL changed',
    },
  },
} as const;
