import { readFileSync, statSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { type CredentialCache, parseCredentialCache } from './credential-cache.ts';
import { realmOf } from './fields.ts';
import { KerberosError } from './kerberos-error.ts';
import { KDC_SURROUNDINGS, type KdcSurroundings, KeyDistribution } from './key-distribution.ts';
import { type Keytab, parseKeytab } from './keytab.ts';
import { type Krb5Config, readKrb5Config, realmOfHost } from './krb5-config.ts';
import type { ServiceTicket } from './service-ticket.ts';

/** The origin of tickets. */
export interface TicketSourceOptions {
  /**
   * Log in with a key of this file, instead of an existing ticket. Default: the file of `KRB5_CLIENT_KTNAME`, if there
   * is no cache.
   */
  readonly keytab?: string | undefined;
  /** The principal in the keytab, with or without realm. Default: the first one in it. */
  readonly principal?: string | undefined;
  /** The cache written by `kinit`. Default: `KRB5CCNAME`, `default_ccache_name` of krb5.conf, `/tmp/krb5cc_UID`. */
  readonly cache?: string | undefined;
  /** krb5.conf. Default: `KRB5_CONFIG`, `/etc/krb5.conf`. */
  readonly config?: string | undefined;
}

/** A ticket that expires sooner is not used. */
const LIFE_LEFT_MS = 60_000;
/** When a ticket younger than this is refused, no other one is fetched: it would be refused, too. */
const FRESH_MS = 60_000;

/**
 * Service tickets, from a cache or by a keytab. Fetched ones are kept in memory only, and no file is written.
 *
 *     cache:   service ticket                                         used unchanged
 *              ticket-granting ticket        ──► TGS ──► service ticket
 *     keytab:  key ──► AS ──► ticket-granting ticket ──► TGS ──► service ticket
 */
export class TicketSource {
  readonly #options: TicketSourceOptions;
  readonly #env: NodeJS.ProcessEnv;
  readonly #surroundings: KdcSurroundings;
  /** By service. */
  readonly #tickets = new Map<string, ServiceTicket>();
  /** When those of `#tickets` were fetched, unless they are from a cache. */
  readonly #fetchedMs = new WeakMap<ServiceTicket, number>();
  /** The last ones that were refused, by service. */
  readonly #refused = new Map<string, Uint8Array>();
  /** In progress, by service. */
  readonly #pending = new Map<string, Promise<ServiceTicket>>();
  /** Identifies the cache that the tickets came from: another login invalidates them. */
  #stamp = '';

  constructor(
    options: TicketSourceOptions = {},
    env: NodeJS.ProcessEnv = process.env,
    surroundings: KdcSurroundings = KDC_SURROUNDINGS,
  ) {
    this.#options = options;
    this.#env = env;
    this.#surroundings = surroundings;
  }

  /**
   * A ticket that is valid for at least another minute.
   *
   * @param service `zookeeper/host` or `zookeeper/host@REALM`
   * @returns rejects with a KerberosError that says what is missing and what to do
   */
  get(service: string): Promise<ServiceTicket> {
    const pending = this.#pending.get(service);
    if (pending !== undefined) return pending;
    const fetched = this.#fetch(service).finally(() => this.#pending.delete(service));
    this.#pending.set(service, fetched);
    return fetched;
  }

  /** A ticket that was fetched before and is still valid; null when there is none. */
  peek(service: string): ServiceTicket | null {
    const ticket = this.#tickets.get(service);
    return ticket !== undefined && this.#isGood(ticket) ? ticket : null;
  }

  /**
   * Called when the service has refused a ticket: its key may have changed.
   *
   * @returns whether `get` may now return a better one, since this one is not fresh
   */
  refuse(service: string, { ticket }: ServiceTicket): boolean {
    const held = this.#tickets.get(service);
    // Another connection was faster.
    if (held === undefined || !isSame(held.ticket, ticket)) return true;
    const fetchedMs = this.#fetchedMs.get(held);
    if (fetchedMs !== undefined && this.#surroundings.nowMs() < fetchedMs + FRESH_MS) return false;
    this.#tickets.delete(service);
    this.#refused.set(service, ticket);
    return true;
  }

  async #fetch(service: string): Promise<ServiceTicket> {
    const config = readKrb5Config(this.#configPath);
    const keytabPath = this.#options.keytab ?? null;
    const origin = keytabPath === null ? this.#readCache(config) : null;
    const stamp = this.#stamp;
    const known = this.peek(service);
    if (known !== null) return known;
    const ticket =
      origin === null
        ? await this.#fetchByKeytab(service, stripScheme(keytabPath ?? this.#env['KRB5_CLIENT_KTNAME'] ?? ''), config)
        : await this.#fetchByCache(service, origin, config);
    // Another login may have taken its place meanwhile.
    if (stamp === this.#stamp) this.#tickets.set(service, ticket);
    return ticket;
  }

  /** By a ticket-granting ticket. */
  async #fetchService(center: KeyDistribution, service: string, granting: ServiceTicket): Promise<ServiceTicket> {
    const ticket = await center.ticketFor(service, granting);
    this.#fetchedMs.set(ticket, this.#surroundings.nowMs());
    return ticket;
  }

  async #fetchByKeytab(service: string, path: string, config: Krb5Config): Promise<ServiceTicket> {
    const keytab = readKeytab(path);
    const client = this.#clientOf(keytab, path, config);
    const realm = realmOf(client);
    const center = new KeyDistribution(realm, config, this.#surroundings);
    const granting = `krbtgt/${realm}@${realm}`;
    const wanted = resolveService(service, realm, config);
    const held = this.peek(granting);
    // If the key of the realm has changed, a ticket from before is refused until it ends: log in again, which also
    // explains any other failure.
    const fetched = held === null ? null : await this.#fetchService(center, wanted, held).catch(() => null);
    if (fetched !== null) return fetched;
    const ticket = await center.login(client, keytab, path);
    this.#tickets.set(granting, ticket);
    return await this.#fetchService(center, wanted, ticket);
  }

  #clientOf(keytab: Keytab, path: string, { defaultRealm }: Krb5Config): string {
    const { principal = keytab.principals[0] } = this.#options;
    if (principal === undefined)
      throw new KerberosError(`the keytab ${path} has no key: write one with ktadd of kadmin`);
    if (principal.includes('@')) return principal;
    const found = keytab.principals.find((each) => each.startsWith(`${principal}@`));
    if (found !== undefined) return found;
    if (defaultRealm !== null) return `${principal}@${defaultRealm}`;
    throw new KerberosError(
      `the principal ${principal} has no realm: write it with one, or set default_realm in krb5.conf`,
    );
  }

  async #fetchByCache(service: string, { cache, path }: Origin, config: Krb5Config): Promise<ServiceTicket> {
    const { principal, tickets } = cache;
    const realm = realmOf(principal);
    const wanted = resolveService(service, realm, config);
    const find = (name: string): ServiceTicket | undefined =>
      tickets.find((ticket) => ticket.service === name && this.#isGood(ticket));
    const held = find(wanted);
    const refused = this.#refused.get(service);
    if (held !== undefined && (refused === undefined || !isSame(held.ticket, refused))) return held;
    const name = `krbtgt/${realm}@${realm}`;
    const granting = find(name);
    if (granting !== undefined) {
      return await this.#fetchService(new KeyDistribution(realm, config, this.#surroundings), wanted, granting);
    }
    const ended = tickets.find((ticket) => ticket.service === name);
    throw new KerberosError(
      ended === undefined
        ? `the ticket cache ${path} of ${principal} has no ticket for ${wanted}, and none to get one with: run kinit`
        : `the ticket of ${principal} in ${path} ${ended.endsMs < this.#surroundings.nowMs() ? 'ended' : 'ends'} at ${new Date(ended.endsMs).toISOString()}: run kinit`,
    );
  }

  /** Null: there is no cache, but a keytab instead. */
  #readCache(config: Krb5Config): Origin | null {
    const path = this.#cachePath(config);
    if (path === null) return null;
    let bytes: Uint8Array;
    try {
      const { ino, size, mtimeMs } = statSync(path);
      const stamp = `${ino} ${size} ${mtimeMs}`;
      if (stamp !== this.#stamp) this.#tickets.clear();
      this.#stamp = stamp;
      bytes = readFileSync(path);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT' && this.#options.cache === undefined && this.#hasClientKeytab) return null;
      throw new KerberosError(
        code === 'ENOENT'
          ? `there is no ticket cache ${path}: run kinit, set KRB5CCNAME, or give a keytab (KRB5_CLIENT_KTNAME)`
          : `the ticket cache ${path} cannot be read: ${code ?? message}; correct KRB5CCNAME, or the rights of the file`,
      );
    }
    const cache = parseCredentialCache(bytes);
    if (cache === null) throw new KerberosError(`${path} is no ticket cache of format 0x0503 or 0x0504: run kinit`);
    return { cache, path };
  }

  get #hasClientKeytab(): boolean {
    return (this.#env['KRB5_CLIENT_KTNAME'] ?? '') !== '';
  }

  /** Null: the type of the cache of krb5.conf or KRB5CCNAME is not supported, and there is a keytab instead. */
  #cachePath({ defaultCacheName }: Krb5Config): string | null {
    const uid = String(process.getuid?.() ?? '');
    const named = this.#options.cache ?? this.#env['KRB5CCNAME'];
    const name = named ?? defaultCacheName ?? `FILE:/tmp/krb5cc_${uid}`;
    const [, type = 'FILE', rest = ''] = /^(?:([A-Za-z]{2,}):)?(.*)$/.exec(name) ?? [];
    if (type !== 'FILE') {
      if (this.#options.cache === undefined && this.#hasClientKeytab) return null;
      throw new KerberosError(
        `the ticket cache ${name} is of type ${type}; only FILE is read: set KRB5CCNAME=FILE:/path and run kinit, or give a keytab (KRB5_CLIENT_KTNAME)`,
      );
    }
    return rest.replaceAll(/%\{([^}]+)\}/g, (whole, variable: string) => {
      if (variable === 'uid' || variable === 'euid' || variable === 'USERID') return uid;
      if (variable === 'username') return userInfo().username;
      if (variable === 'TEMP') return tmpdir();
      return whole;
    });
  }

  get #configPath(): string {
    return this.#options.config ?? this.#env['KRB5_CONFIG'] ?? '/etc/krb5.conf';
  }

  #isGood({ endsMs }: ServiceTicket): boolean {
    return endsMs > this.#surroundings.nowMs() + LIFE_LEFT_MS;
  }
}

interface Origin {
  readonly cache: CredentialCache;
  readonly path: string;
}

/** With its realm: that of its host by `[domain_realm]`, otherwise that of the client. */
function resolveService(service: string, realm: string, config: Krb5Config): string {
  const named = service.includes('@') ? service : `${service}@${realmOfHost(config, hostOf(service)) ?? realm}`;
  if (realmOf(named) === realm) return named;
  throw new KerberosError(
    `${named} is of another realm than the ticket of ${realm}, and tickets are not fetched across realms: log in to that realm`,
  );
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

function hostOf(service: string): string {
  return service.slice(service.indexOf('/') + 1);
}

function readKeytab(path: string): Keytab {
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new KerberosError(`the keytab ${path} cannot be read: ${code ?? message}; correct its path, or its rights`);
  }
  const keytab = parseKeytab(bytes);
  if (keytab === null)
    throw new KerberosError(`${path} is no keytab of version 0x0502: write one with ktadd of kadmin`);
  return keytab;
}

function stripScheme(path: string): string {
  return path.replace(/^(?:FILE|file):/, '');
}
