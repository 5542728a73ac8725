import type { TicketSourceOptions } from '../kerberos/ticket-source.ts';
import type { HostPort, SaslExchange } from '../machine/ports.ts';

/** The origin of tickets, and the service. */
export interface KerberosOptions extends TicketSourceOptions {
  /**
   * The principal of the servers, with `_HOST` for the host of the connect string. Default `zookeeper/_HOST`. Names are
   * not looked up: the host is that of the connect string, in lower case.
   */
  readonly servicePrincipal?: string | undefined;
}

/**
 * SASL GSSAPI with Kerberos (RFC 4752): for the option `sasl` of `connect`. No Kerberos library has to be installed.
 *
 * The ticket comes from the cache of `kinit`, or by a keytab from the key distribution center of krb5.conf; it is
 * fetched before the connection is opened, and renewed before it expires. The server is authenticated, too. Later
 * messages are neither signed nor encrypted; TLS does that.
 *
 * @example
 * const client = await connect('zk1.example.org:2181', { sasl: kerberos({ keytab: '/etc/app.keytab' }) });
 */
export function kerberos(options: KerberosOptions = {}): (server: HostPort) => Promise<SaslExchange> {
  const { servicePrincipal = 'zookeeper/_HOST', ...login } = options;
  let parts: Promise<KerberosParts> | null = null;
  return async ({ host }) => {
    parts ??= load(login);
    const { source, GssapiInitiator } = await parts;
    const service = servicePrincipal.replace('_HOST', host.toLowerCase());
    const ticket = await source.get(service);
    const initiator = new GssapiInitiator(ticket);
    return {
      start: () => initiator.start(),
      respond: (token) => initiator.step(token),
      get isComplete() {
        return initiator.isComplete;
      },
      onRefused: () => source.refuse(service, ticket),
      whyRefused: `it does not take the ticket of ${ticket.client} for ${service}; its log says why`,
    };
  };
}

type Kerberos = typeof import('../kerberos/index.ts');
interface KerberosParts extends Pick<Kerberos, 'GssapiInitiator'> {
  readonly source: InstanceType<Kerberos['TicketSource']>;
}

/** Loaded only when used. */
async function load(login: TicketSourceOptions): Promise<KerberosParts> {
  const { TicketSource, GssapiInitiator } = await import('../kerberos/index.ts');
  return { source: new TicketSource(login), GssapiInitiator };
}
