import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';

/*
 * Every module costs a third of a millisecond at the start, a package up to fifty. So what a command does not need is
 * imported where it is used, `await import(…)`, and not at the head of a file.
 */
const SOURCES = import.meta.dirname;

const IMPORT = /^(?:import (?:([^';]*?) from )?|export ((?:type )?(?:\*|\{[^}]*\})) from )'([^']+)';$/gm;

/** What these files and all that they import at their heads take from other packages. */
function packagesOf(...files: readonly string[]): ReadonlySet<string> {
  const packages = new Set<string>();
  const seen = new Set<string>();
  const visit = (file: string): void => {
    if (seen.has(file)) return;
    seen.add(file);
    const text = readFileSync(file, 'utf8');
    for (const [, imported, exported, from = ''] of text.matchAll(IMPORT)) {
      const names = imported ?? exported ?? '';
      if (isOfTypes(names)) continue;
      if (from.startsWith('.')) visit(join(dirname(file), from));
      else packages.add(from);
    }
  };
  for (const file of files) {
    const path = join(SOURCES, file);
    expect(existsSync(path), path).toBe(true);
    visit(path);
  }
  return packages;
}

/** `type X` or `{ type X, type Y }`: nothing of it is left when it runs. */
function isOfTypes(names: string): boolean {
  if (names.startsWith('type ')) return true;
  const inner = /^\{([^}]*)\}$/s.exec(names.trim())?.[1];
  return inner?.split(',').every((name) => name.trim() === '' || name.trim().startsWith('type ')) === true;
}

function foreign(packages: ReadonlySet<string>): string[] {
  return [...packages].filter((name) => !name.startsWith('node:')).sort();
}

describe('the start of the command', () => {
  test('loads a server only when it is to run one', () => {
    expect(foreign(packagesOf('main.ts'))).toEqual([]);
  });

  test('loads no client for help and for mistakes on the command line', () => {
    expect(foreign(packagesOf('program.ts'))).toEqual(['@meerkat/server/version', 'commander']);
  });

  test('loads the client and nothing else to list znodes', () => {
    const files = ['program.ts', 'commands/ls.ts', 'connection/connection-settings.ts', 'run/process-context.ts'];
    expect(foreign(packagesOf(...files))).toEqual(['@meerkat/client', '@meerkat/server/version', 'commander']);
  });

  test('reads profiles, and what checks them, only when there are some', () => {
    expect(foreign(packagesOf('connection/profiles.ts'))).toContain('valibot');
    expect(foreign(packagesOf('connection/connection-settings.ts', 'connection/profiles-file.ts'))).toEqual([]);
    expect(packagesOf('connection/connection-settings.ts')).not.toContain('node:tls');
  });
});
