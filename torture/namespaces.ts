/**
 * Separate hosts on one machine: Linux network namespaces, joined by a router that is a namespace too.
 *
 *     zk1 198.18.1.1 ──┐
 *     zk2 198.18.2.1 ──┼── router (198.18.N.254)       the clients and the torture process: 198.18.0.1
 *     zk3 198.18.3.1 ──┘       │
 *                           clients
 *
 * No traffic reaches the machine's network: the namespaces have no route out, and the addresses are reserved
 * (RFC 2544). Each client has its own address at every server, 198.18.<server>.<100 + client>, so that it can be cut
 * off alone. The router silently drops cut traffic, by routing rules.
 */
import { execFileSync } from 'node:child_process';

const PREFIX = 'meerkat-torture';
const ROUTER = 'router';
export const CLIENTS = 'clients';

/** The namespaces of one run, named after the process that created them. */
export class Namespaces {
  readonly prefix: string;

  constructor(prefix: string) {
    this.prefix = prefix;
  }

  /**
   * Creates the namespaces, links and routes.
   *
   * @throws Error when the system does not allow it; nothing is left behind
   */
  static make(servers: number, clients: number): Namespaces {
    const namespaces = new Namespaces(`${PREFIX}-${process.pid}`);
    try {
      namespaces.#make(servers, clients);
    } catch (error) {
      namespaces.remove();
      throw error;
    }
    return namespaces;
  }

  nameOf(host: string): string {
    return `${this.prefix}-${host}`;
  }

  /** Command prefix that runs a program on a host. */
  commandOf(host: string): readonly string[] {
    return ['ip', 'netns', 'exec', this.nameOf(host)];
  }

  /** Adds and removes rules of the router, each in the syntax of `ip rule`. */
  route(removed: readonly string[], added: readonly string[]): void {
    const lines = [...removed.map((rule) => `rule del ${rule}`), ...added.map((rule) => `rule add ${rule}`)];
    if (lines.length > 0) ip(['-n', this.nameOf(ROUTER), '-batch', '-'], `${lines.join('\n')}\n`);
  }

  /** Kills the processes still running there, and removes the namespaces. */
  remove(): void {
    for (const name of listNamespaces()) {
      if (!name.startsWith(`${this.prefix}-`)) continue;
      for (const pid of ip(['netns', 'pids', name]).split('\n').filter(Boolean)) {
        if (Number(pid) === process.pid) continue;
        try {
          process.kill(Number(pid), 'SIGKILL');
        } catch {
          // Already exited.
        }
      }
      ip(['netns', 'delete', name]);
    }
  }

  #make(servers: number, clients: number): void {
    ip(['netns', 'add', this.nameOf(ROUTER)]);
    this.#join(CLIENTS, 0, []);
    const others = Array.from({ length: clients }, (_, i) => 101 + i);
    for (let id = 1; id <= servers; id++) this.#join(`zk${id}`, id, others);
    // No reverse path filter: one direction may be cut while the other is open.
    const settings = 'echo 1 > ip_forward; for file in conf/*/rp_filter; do echo 0 > $file; done';
    const shell = ['sh', '-ec', `cd /proc/sys/net/ipv4; ${settings}`];
    execFileSync('ip', ['netns', 'exec', this.nameOf(ROUTER), ...shell], { stdio: ['ignore', 'ignore', 'pipe'] });
    // Fails here on a kernel without rules by port.
    const probe = ruleOf('198.18.0.1', '198.18.1.1', 'dport 1');
    this.route([], [probe]);
    this.route([probe], []);
  }

  #join(host: string, net: number, others: readonly number[]): void {
    const name = this.nameOf(host);
    ip(['netns', 'add', name]);
    const peer = ['type', 'veth', 'peer', 'name', 'eth0', 'netns', name];
    ip(['link', 'add', 'name', host, 'netns', this.nameOf(ROUTER), ...peer]);
    ip(['-n', this.nameOf(ROUTER), 'address', 'add', `198.18.${net}.254/24`, 'dev', host]);
    ip(['-n', this.nameOf(ROUTER), 'link', 'set', 'dev', host, 'up']);
    const addresses = [1, ...others].map((last) => `address add 198.18.${net}.${last}/24 dev eth0`);
    const lines = [
      ...addresses,
      'link set dev lo up',
      'link set dev eth0 up',
      `route add default via 198.18.${net}.254`,
    ];
    ip(['-n', name, '-batch', '-'], `${lines.join('\n')}\n`);
  }
}

/** An `ip rule` that drops packets. */
export function ruleOf(from: string, to: string, port: string | null): string {
  const pair = `from ${from} to ${to}`;
  // `ip rule del` matches by the given fields: without a port it would also match rules with one, hence the other pref.
  return port === null ? `pref 100 ${pair} blackhole` : `pref 200 ${pair} ipproto tcp ${port} blackhole`;
}

/** Removes the namespaces of runs that were killed. */
export function removeLeftNamespaces(): void {
  if (whyNoNamespaces() !== null) return;
  const prefixes = new Set<string>();
  for (const name of listNamespaces()) {
    const found = new RegExp(`^(${PREFIX}-(\\d+))-`).exec(name);
    if (found !== null && !isAlive(Number(found[2]))) prefixes.add(found[1]!);
  }
  for (const prefix of prefixes) new Namespaces(prefix).remove();
}

/** Why this process cannot create namespaces, as far as it is known without trying; null when it may. */
export function whyNoNamespaces(): string | null {
  if (process.platform !== 'linux') return `${process.platform} has none`;
  if (process.getuid?.() !== 0) return 'only root may make them';
  try {
    ip(['-V']);
  } catch {
    return 'there is no command "ip" (Debian: iproute2)';
  }
  return null;
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function listNamespaces(): readonly string[] {
  // One per line: "name (id: 3)".
  return ip(['netns', 'list'])
    .split('\n')
    .flatMap((line) => /^\S+/.exec(line) ?? []);
}

/** @throws Error with the output of the command */
function ip(args: readonly string[], input = ''): string {
  try {
    return execFileSync('ip', [...args], { input, encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe'] });
  } catch (error) {
    const { stderr = '', message } = error as Error & { readonly stderr?: string };
    throw new Error(`ip ${args.join(' ')}: ${stderr.trim() || message}`);
  }
}
