import { GssapiInitiator, KerberosError, type ServiceTicket, TicketSource } from '@meerkat/client/kerberos';
import type { SaslInitiator, SaslStep } from '@meerkat/core';
import { KeytabFile } from './kerberos/keytab-file.ts';

/** With what this server logs in at others by Kerberos. */
export interface QuorumTicketOptions {
  /** The key of this server, or null for the tickets of `kinit`. */
  readonly keytabPath: string | null;
  /** Whose key of the keytab. */
  readonly principal: string | null;
  /** The file of `kinit`; null: where other programs look for it. */
  readonly cachePath: string | null;
  /** krb5.conf; null: where other programs look for it. */
  readonly configPath: string | null;
  /** `quorum.auth.kerberos.servicePrincipal`. */
  readonly servicePrincipal: string;
}

type TicketStore = Pick<TicketSource, 'get' | 'peek' | 'refuse'>;

/** Tickets for the other servers. They are fetched before a server is dialled: the core does not wait for anything. */
export class QuorumTickets {
  readonly options: QuorumTicketOptions;
  readonly #source: TicketStore;
  /** With which exchanges have begun and not succeeded, by service: the server may have another key since. */
  readonly #doubtful = new Map<string, ServiceTicket>();

  constructor(options: QuorumTicketOptions, source: TicketStore | null = null) {
    this.options = options;
    const { keytabPath, principal, cachePath, configPath } = options;
    this.#source =
      source ??
      new TicketSource({
        ...(keytabPath === null ? {} : { keytab: keytabPath }),
        ...(principal === null || keytabPath === null ? {} : { principal }),
        ...(cachePath === null ? {} : { cache: cachePath }),
        ...(configPath === null ? {} : { config: configPath }),
      });
  }

  /** @throws ServerError when the keytab cannot be used */
  checkKeytab(): void {
    const { keytabPath, principal } = this.options;
    if (keytabPath !== null) new KeytabFile(keytabPath).resolvePrincipal(principal ?? '');
  }

  /** Rejects with what to do, when there is no ticket for the server at this host. */
  async prepare(host: string): Promise<void> {
    const service = this.#serviceAt(host);
    const doubtful = this.#doubtful.get(service);
    if (doubtful !== undefined) this.#source.refuse(service, doubtful);
    this.#doubtful.delete(service);
    await this.#source.get(service);
  }

  /** Starts an exchange with the prepared ticket. @throws KerberosError when it is gone */
  start(host: string): GssapiInitiator {
    const service = this.#serviceAt(host);
    const ticket = this.#source.peek(service);
    if (ticket === null) throw new KerberosError(`the ticket for ${service} is gone`);
    this.#doubtful.set(service, ticket);
    return new GssapiInitiator(ticket);
  }

  /** The server at this host has accepted the ticket. */
  onAccepted(host: string): void {
    this.#doubtful.delete(this.#serviceAt(host));
  }

  /** `_HOST` at the end is the host of the server in lower case, as Apache's servers have it; otherwise it is the name of all. */
  #serviceAt(host: string): string {
    return this.options.servicePrincipal.replace(/\/_HOST$/, `/${host.toLowerCase()}`);
  }
}

/** The end of GSSAPI that begins it, between servers. */
export class GssapiPeer implements SaslInitiator {
  readonly #tickets: QuorumTickets;
  readonly #host: string;
  #initiator: GssapiInitiator | null = null;
  #failure = 'its exchange has not begun';

  constructor(tickets: QuorumTickets, host: string) {
    this.#tickets = tickets;
    this.#host = host;
  }

  start(): Uint8Array {
    try {
      this.#initiator = this.#tickets.start(this.#host);
      return this.#initiator.start();
    } catch (error) {
      this.#fail(error);
      return new Uint8Array(0);
    }
  }

  step(token: Uint8Array): SaslStep {
    const initiator = this.#initiator;
    if (initiator === null) return { kind: 'failure', reason: this.#failure };
    // What agrees has no token.
    if (initiator.isComplete && token.length === 0) {
      this.#tickets.onAccepted(this.#host);
      return { kind: 'success', token: null, identities: [] };
    }
    try {
      return { kind: 'challenge', token: initiator.step(token) };
    } catch (error) {
      this.#fail(error);
      return { kind: 'failure', reason: this.#failure };
    }
  }

  #fail(error: unknown): void {
    if (!(error instanceof KerberosError)) throw error;
    this.#initiator = null;
    this.#failure = error.message;
  }
}

/** Called by the network before it dials. A failure is logged once per host, until it changes or is resolved. */
export function prepareTickets(
  tickets: Pick<QuorumTickets, 'prepare'>,
  warn: (message: string) => void,
): (host: string) => Promise<void> {
  const reported = new Map<string, string>();
  return async (host) => {
    try {
      await tickets.prepare(host);
      reported.delete(host);
    } catch (error) {
      const { message } = error as Error;
      if (message !== reported.get(host)) warn(`cannot log in at the server at ${host}: ${message}`);
      reported.set(host, message);
      throw error;
    }
  };
}
