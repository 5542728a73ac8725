import { describe, expect, test } from 'vitest';
import { type JaasFault, type JaasSections, parseJaas } from './jaas.ts';
import { parseUsersFile } from './users-file.ts';

function sections(text: string): JaasSections {
  const parsed = parseJaas(text, new Map([['user.home', '/home/zk']]));
  if ('fault' in parsed) throw new Error(JSON.stringify(parsed.fault));
  return parsed.sections;
}

function fault(text: string): JaasFault | null {
  const parsed = parseJaas(text);
  return 'fault' in parsed ? parsed.fault : null;
}

const MODULE = 'org.apache.zookeeper.server.auth.DigestLoginModule';

describe('a JAAS file', () => {
  test('has sections of login modules with options', () => {
    const text = `
      // who may connect
      Server {
        ${MODULE} required
          user_bob="bobsecret" /* the boss */
          "user_a@b"='x';
      };`.replace("'x'", '"x y"');
    expect([...sections(text)]).toEqual([
      [
        'Server',
        [
          {
            module: MODULE,
            options: new Map([
              ['user_bob', 'bobsecret'],
              ['user_a@b', 'x y'],
            ]),
            line: 4,
          },
        ],
      ],
    ]);
  });

  test('may have several sections and modules, flags in any case, and a last value that counts', () => {
    const found = sections(
      'A { a.B Required x=1x; c.D OPTIONAL; }; B { e.F sufficient k=v k=w; };'.replace('1x', 'x1'),
    );
    expect(found.get('A')?.map(({ module }) => module)).toEqual(['a.B', 'c.D']);
    expect(found.get('B')?.[0]?.options.get('k')).toBe('w');
  });

  test('has Java escapes and properties in its values', () => {
    const found = sections(`A { a.B required q="say \\"hi\\" \\\\ \\101\\n" p="\${user.home}/x\${/}y"; };`);
    expect(found.get('A')?.[0]?.options).toEqual(
      new Map([
        ['q', 'say "hi" \\ A\n'],
        ['p', '/home/zk/x/y'],
      ]),
    );
  });

  test.each([
    ['a missing semicolon behind a section', 'A { a.B required; }', 1, 'the end of the file', /";" behind the "}"/],
    ['a missing semicolon behind an entry', 'A {\n a.B required x="y"\n};', 3, '}', /an option of a.B, or ";"/],
    ['an unknown flag', 'A { a.B needed; };', 1, 'a word', /required, requisite/],
    ['a comma between options', 'A { a.B required x=y, z=w; };', 1, ',', /an option/],
    ['a bare number', 'A { a.B required x=123; };', 1, 'a number', /double quotes/],
    ['single quotes', "A { a.B required x='y'; };", 1, "'", /double quotes/],
    ['a comment of a shell', '# users\nA { };', 1, '#', /name of a section/],
    [
      'a text over two lines',
      'A { a.B required x="y\n"; };',
      1,
      'a quoted text that does not end on its line',
      /closing/,
    ],
    ['a section twice', 'A { };\nA { };', 2, 'section A again', /once/],
    ['an unknown property', `A { a.B required x="\${nope}"; };`, 1, `\${nope}`, /system property/],
  ])('with %s is refused with its line', (_, text, line, found, expected) => {
    expect(fault(text)).toEqual({ line, found, expected: expect.stringMatching(expected) });
  });

  test('shows no password in what it says about a fault', () => {
    const faults = ['x="secret', 'x=secret1 2', 'x="a"secret="', 'secret', 'x "secret"', 'x=5ecret'].map((options) =>
      fault(`A { a.B required ${options}; };`),
    );
    for (const found of faults) {
      expect(found).not.toBeNull();
      expect(JSON.stringify(found)).not.toContain('secret');
    }
  });
});

describe('a file of users', () => {
  test('has a name and a password on each line', () => {
    expect(parseUsersFile('# users\nbob:secret\r\n\na@b:with:colons \n')).toEqual({
      users: new Map([
        ['bob', 'secret'],
        ['a@b', 'with:colons '],
      ]),
    });
  });

  test.each(['bob', ':secret', 'bob:', 'a:b\na:c'])('%j is refused, without showing a password', (text) => {
    const parsed = parseUsersFile(text);
    expect(parsed).toHaveProperty('fault.line');
    expect(JSON.stringify(parsed)).not.toContain('secret');
  });
});
