import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { NamespaceNetwork } from './namespace-network.ts';
import { isAlive, Namespaces, removeLeftNamespaces, whyNoNamespaces } from './namespaces.ts';
import type { Cut } from './network.ts';

/** Records the rules that a network of three servers sets on the router. */
class RecordedRouter extends Namespaces {
  rules: readonly string[] = [];

  constructor() {
    super('recorded');
  }

  override route(removed: readonly string[], added: readonly string[]): void {
    expect(this.rules).toEqual(expect.arrayContaining([...removed]));
    this.rules = [...this.rules.filter((rule) => !removed.includes(rule)), ...added];
  }
}

describe('cuts between namespaces', () => {
  const whole: Cut = { from: 'zk1', to: 'zk2', port: null };

  it('are rules of the router, one for each direction', () => {
    const router = new RecordedRouter();
    const network = new NamespaceNetwork(router, 3);
    network.setCuts([whole, { from: 'c2', to: 'zk3', port: null }, { from: 'zk3', to: 'c2', port: null }]);
    expect(router.rules).toEqual([
      'pref 100 from 198.18.1.1 to 198.18.2.1 blackhole',
      'pref 100 from 198.18.0.1 to 198.18.3.102 blackhole',
      'pref 100 from 198.18.3.102 to 198.18.0.1 blackhole',
    ]);
    network.setCuts([whole]);
    expect(router.rules).toEqual(['pref 100 from 198.18.1.1 to 198.18.2.1 blackhole']);
    network.setCuts([]);
    expect(router.rules).toEqual([]);
  });

  it('of a port match the port of the listening end', () => {
    const router = new RecordedRouter();
    const port = { host: 'zk2', kind: 'quorum' } as const;
    new NamespaceNetwork(router, 3).setCuts([
      { from: 'zk1', to: 'zk2', port },
      { from: 'zk2', to: 'zk1', port },
    ]);
    expect(router.rules).toEqual([
      'pref 200 from 198.18.1.1 to 198.18.2.1 ipproto tcp dport 2888 blackhole',
      'pref 200 from 198.18.2.1 to 198.18.1.1 ipproto tcp sport 2888 blackhole',
    ]);
  });

  it('resolve the server behind each address that a client connects to', () => {
    const network = new NamespaceNetwork(new RecordedRouter(), 3);
    expect(network.connectString(7, [1, 3])).toBe('198.18.1.107:2181,198.18.3.107:2181');
    expect(network.serverAt('198.18.3.107')).toBe(3);
  });
});

/** Null when namespaces cannot be created: in a container, root may lack the capability. */
function tryToMake(): Namespaces | null {
  try {
    return Namespaces.make(3, 2);
  } catch (error) {
    expect((error as Error).message).toMatch(/^(ip |Command failed)/);
    return null;
  }
}

describe('namespaces', () => {
  const list = (): string => execFileSync('ip', ['netns', 'list'], { encoding: 'utf8' });

  it('apply every cut, lift cuts in any order, and are removed, also after a killed run', () => {
    const reason = whyNoNamespaces();
    if (reason !== null) {
      // The fallback to proxies is covered by torture.test.ts.
      expect(reason).toMatch(/none|root|iproute2/);
      return;
    }
    const namespaces = tryToMake();
    if (namespaces === null) return;
    try {
      const network = new NamespaceNetwork(namespaces, 3);
      const port = { host: 'zk2', kind: 'quorum' } as const;
      const whole: Cut = { from: 'zk1', to: 'zk2', port: null };
      const some: Cut = { from: 'zk1', to: 'zk2', port };
      for (const cuts of [[some], [some, whole], [some], [], [whole], [whole, some], [whole], []])
        network.setCuts(cuts);
      expect(list()).toContain(namespaces.prefix);
      // The owner is alive.
      removeLeftNamespaces();
      expect(list()).toContain(namespaces.prefix);
    } finally {
      namespaces.remove();
    }
    expect(list()).not.toContain(namespaces.prefix);

    const dead = Number(execFileSync(process.execPath, ['-p', 'process.pid'], { encoding: 'utf8' }));
    expect(isAlive(dead)).toBe(false);
    execFileSync('ip', ['netns', 'add', `meerkat-torture-${dead}-zk1`]);
    removeLeftNamespaces();
    expect(list()).not.toContain(`meerkat-torture-${dead}-`);
  });
});
