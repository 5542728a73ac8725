import type { ConfiguredMember, MemberState } from '@meerkat/console/membership';
import { readStates } from '../monitoring/server-state.ts';
import type { Context } from '../run/context.ts';

/** Milliseconds for a server that says nothing, unless --timeout says otherwise. */
const ANSWER_MS = 3000;

/** Asks each member at its client port, as this service is spoken to, all at once. */
export async function askMembers(
  context: Context,
  members: readonly ConfiguredMember[],
): Promise<ReadonlyMap<string, MemberState & { readonly zxid: bigint | null }>> {
  const [known] = await context.servers();
  const asked = members.filter(({ client }) => client !== null);
  const servers = asked.map(({ client }) => ({ ...endpointOf(client!), name: client!, tls: known?.tls ?? null }));
  const states = await readStates(servers, context.timeoutMs ?? ANSWER_MS, context.signal);
  const found = new Map(asked.map(({ id }, i) => [id, states[i]!]));
  return new Map(
    members.map(({ id }) => {
      const state = found.get(id);
      if (state === undefined) return [id, { role: null, zxid: null, problem: 'its line names no client port' }];
      return [id, { role: state.role, zxid: state.zxid, problem: state.problem }];
    }),
  );
}

function endpointOf(address: string): { readonly host: string; readonly port: number } {
  const colon = address.lastIndexOf(':');
  return { host: address.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(address.slice(colon + 1)) };
}
