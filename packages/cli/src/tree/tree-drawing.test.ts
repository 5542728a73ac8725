import { describe, expect, test } from 'vitest';
import { TreeDrawing } from './tree-drawing.ts';

/** The tree of the tests, as it is walked through: depth, path, children. */
const WALK: readonly (readonly [number, string, readonly string[]])[] = [
  [0, '/app', ['jobs', 'web']],
  [1, '/app/jobs', ['a', 'b', 'c']],
  [2, '/app/jobs/a', []],
  [2, '/app/jobs/b', []],
  [2, '/app/jobs/c', []],
  [1, '/app/web', ['config']],
  [2, '/app/web/config', []],
  [0, '/other', []],
];

describe('the drawing of a tree', () => {
  const drawn = (depthMax: number, childrenMax: number): string => {
    const drawing = new TreeDrawing({ depthMax, childrenMax }, ({ children }, text) => `${text} ${children.length}`);
    const visited = WALK.filter(([depth, path]) => depth <= depthMax && (path !== '/app/jobs/c' || childrenMax > 2));
    return visited.map(([depth, path, children]) => drawing.add({ depth, path, children })).join('') + drawing.end();
  };

  test('has a branch for each child and a corner for the last one', () => {
    expect(drawn(Infinity, Infinity)).toBe(
      [
        '/app 2',
        '├── jobs 3',
        '│   ├── a 0',
        '│   ├── b 0',
        '│   └── c 0',
        '└── web 1',
        '    └── config 0',
        '/other 0',
        '',
      ].join('\n'),
    );
  });

  test('says how many children it leaves out, and nothing of those that are too deep', () => {
    expect(drawn(Infinity, 2)).toContain('│   ├── a 0\n│   ├── b 0\n│   └── … 1 more\n└── web 1\n');
    expect(drawn(1, 2)).toBe('/app 2\n├── jobs 3\n└── web 1\n/other 0\n');
  });
});
