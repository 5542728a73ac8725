import type { ServerView } from '@meerkat/core';
import { modeOf } from './roles.ts';

/** One thing that was looked at. */
export interface HealthCheck {
  readonly name: string;
  readonly isOk: boolean;
  /** How it is, or what is wrong, for people. */
  readonly detail: string;
}

export interface Health {
  /** Whether the process is worth keeping; the thread that answers by HTTP adds whether this one answers at all. */
  readonly live: readonly HealthCheck[];
  /** Whether clients can be sent here. */
  readonly ready: readonly HealthCheck[];
}

export interface HealthSource {
  readonly view: ServerView;
  /** Why the server has failed; null while it has not. */
  failure(): string | null;
  isStopping(): boolean;
  /** Clients are sent to other servers. */
  isDraining(): boolean;
}

/** What `/livez` and `/readyz` look at. A member without a quorum is alive, and not ready. */
export function checkHealth({ view, failure, isStopping, isDraining }: HealthSource): Health {
  const failed = failure();
  const storage: HealthCheck = {
    name: 'storage',
    isOk: failed === null,
    detail: failed ?? `recovered up to zxid 0x${view.lastZxid.toString(16)}`,
  };
  const loop: HealthCheck = { name: 'event-loop', isOk: true, detail: 'it answers' };
  const stopping: HealthCheck = {
    name: 'stopping',
    isOk: !isStopping(),
    detail: isStopping() ? 'the server is being stopped' : 'not requested',
  };
  const draining: HealthCheck = {
    name: 'draining',
    isOk: !isDraining(),
    detail: isDraining() ? 'clients are sent to other servers' : 'clients are taken',
  };
  return { live: [loop, storage], ready: [loop, storage, stopping, draining, checkServing(view)] };
}

function checkServing(view: ServerView): HealthCheck {
  const { ensemble, isServing } = view;
  if (ensemble === null) {
    return { name: 'serving', isOk: isServing, detail: isServing ? 'standalone' : 'the data directory is being read' };
  }
  const name = 'quorum';
  if (view.isReadOnly) return { name, isOk: false, detail: 'no quorum: only reads are answered (read-only)' };
  if (isServing)
    return { name, isOk: true, detail: `${modeOf(view)}, led by server ${ensemble.leader ?? view.serverId}` };
  const { connectedServers, leader, role } = ensemble;
  const others =
    connectedServers.length === 0 ? 'no other server is connected' : `connected to ${connectedServers.join(', ')}`;
  const what = role === 'looking' || leader === null ? 'looking for a leader' : `synchronizing with server ${leader}`;
  return { name, isOk: false, detail: `${what}; ${others}` };
}
