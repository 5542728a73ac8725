import { formatMembership } from '@meerkat/protocol';
import type { VirtualServer } from './virtual-server.ts';

const CONFIG_PATH = '/zookeeper/config';

/**
 * R5: a serving server shows in `/zookeeper/config` the membership that it has in force.
 *
 * A leader puts a change in force before it has applied its txn, so a tree behind the change is not checked.
 */
export class ShownMembership {
  /** Epoch and version at which each server was last checked: the znode changes with no other txn. */
  readonly #looked: Map<VirtualServer, string> = new Map();

  /** Called after each turn. @returns what is wrong, as text, or null */
  findFault(server: VirtualServer): string | null {
    const { core, epoch } = server;
    const membership = core?.view.ensemble?.membership;
    if (core === null || core === undefined || membership === undefined || !server.options.reconfigEnabled) return null;
    if (core.view.isReadOnly || core.view.lastZxid < membership.version) return null;
    const moment = `${epoch} ${membership.version}`;
    if (this.#looked.get(server) === moment) return null;
    this.#looked.set(server, moment);
    return faultOf(server);
  }

  onStarted(server: VirtualServer): void {
    this.#looked.delete(server);
  }
}

function faultOf({ core, host }: VirtualServer): string | null {
  const membership = core?.view.ensemble?.membership;
  if (membership === undefined) return null;
  const expected = formatMembership(membership);
  for (const { path, data } of core?.view.database()?.znodes() ?? []) {
    if (path !== CONFIG_PATH) continue;
    const shown = new TextDecoder().decode(data ?? new Uint8Array(0));
    return shown === expected ? null : `${host} shows the membership "${shown}", and has "${expected}" in force`;
  }
  return `${host} has no ${CONFIG_PATH}`;
}
