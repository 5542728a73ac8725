import type { SessionEndInfo } from '../api/messages.ts';
import type { ClusterSession } from './cluster-session.ts';
import type { Fields } from './fields.ts';
import type { AdminPorts, MonitoredServer } from './options.ts';
import { Refusal } from './refusal.ts';
import { type AdminIdentity, endSession, type FoundSession, lookAtSession, type NotEnded } from './session-end.ts';
import { sessionIdOf } from './session-id.ts';

/** What is needed to end the session of a request. */
interface Order {
  readonly id: string;
  readonly servers: readonly MonitoredServer[];
  readonly ports: AdminPorts;
  readonly identity: AdminIdentity;
}

/**
 * Whether another client's session can be ended, and what would be deleted with it.
 *
 * @throws Refusal that says why not
 */
export async function lookAtEnd(session: ClusterSession, fields: Fields): Promise<SessionEndInfo> {
  return describe(await find(readOrder(session, fields)));
}

/** Ends it. @throws Refusal when it has not ended, or the result is not known */
export async function takeEnd(session: ClusterSession, fields: Fields): Promise<SessionEndInfo> {
  const order = readOrder(session, fields);
  const ended = await endSession(await find(order), order.ports, order.identity, order.id);
  if ('message' in ended) throw refusalOf(ended);
  return describe(ended);
}

async function find({ servers, ports, identity, id }: Order): Promise<FoundSession> {
  const found = await lookAtSession(servers, ports, identity, id);
  if ('message' in found) throw refusalOf(found);
  return found;
}

function readOrder(session: ClusterSession, fields: Fields): Order {
  const id = fields.text('session');
  if (!/^0x[0-9a-f]{1,16}$/.test(id)) throw new Refusal(400, 'bad-session', 'expected the id of a session, 0x…');
  if (id === sessionIdOf(session)) throw new Refusal(409, 'end-ours', 'it is the session of this page');
  const { cluster, adminIdentity: identity } = session;
  const { admin: ports, servers } = cluster;
  if (ports === undefined) {
    throw new Refusal(501, 'end-nowhere', 'the console was not told of admin ports');
  }
  if (identity === null) {
    throw new Refusal(409, 'end-sasl', 'the console is logged in with SASL, which admin ports do not take');
  }
  // The client's own server knows it for certain.
  const at = fields.text('server', '');
  const nearest = servers.filter(({ name }) => name === at);
  return { id, servers: [...nearest, ...servers.filter(({ name }) => name !== at)], ports, identity };
}

function describe({ kind, server, ephemerals, paths }: FoundSession): SessionEndInfo {
  return { server: server.name, ephemerals, paths, isEnded: kind === 'ended' };
}

function refusalOf({ kind, message }: NotEnded): Refusal {
  return new Refusal(STATUS[kind], `end-${kind}`, message);
}

const STATUS: Readonly<Record<NotEnded['kind'], number>> = {
  unknown: 404,
  refused: 403,
  plain: 409,
  'no-quorum': 503,
  unsupported: 501,
  unreachable: 503,
  unconfirmed: 504,
};
