import type { ReactNode } from 'react';
import type { ZnodeInfo } from '../../api/messages.ts';
import { ask, clusterUrl } from '../api.ts';
import { useResource, useSession } from '../session.ts';
import { TEXTS } from '../texts.ts';
import { toBytes } from '../znode/unpack.ts';

/** The members of the ensemble, as its configuration has them. */
export function Members(): ReactNode {
  const { cluster } = useSession();
  const read = useResource(cluster.name, (signal) =>
    ask<ZnodeInfo>(clusterUrl(cluster.name, 'znode', { path: '/zookeeper/config' }), undefined, signal),
  );
  const text =
    read.value?.data === null || read.value === null ? '' : new TextDecoder().decode(toBytes(read.value.data));
  const lines = text.split('\n').filter((line) => line !== '');
  return (
    <section>
      <h2>{TEXTS.servers.members}</h2>
      {lines.length === 0 ? (
        <p className="dim">{read.value === null ? TEXTS.servers.membersNone : TEXTS.servers.membersAlone}</p>
      ) : (
        <pre className="mono members">{lines.join('\n')}</pre>
      )}
    </section>
  );
}
