import { NoAuthError } from '@meerkat/client';
import { Perm } from '@meerkat/protocol';
import { expect, test } from 'vitest';
import type { Identity } from './checkers/access.ts';
import { certificateOf, credentialsOf, idOf, SCHEMES } from './users.ts';
import { VirtualWorld } from './virtual-world.ts';

test.each(SCHEMES)(
  'a user of %s is known to each server that its session moves to, and no other user is',
  async (scheme) => {
    const world = new VirtualWorld({ seed: 1 });
    const ensemble = world.startEnsemble({ servers: 3 });
    const connectAs = (host: string, identity: Identity) =>
      world.connect(
        host,
        { servers: ensemble.connectString, connectTimeoutMs: 60_000, ...credentialsOf(identity) },
        null,
        certificateOf(identity),
      );
    await world.run(async () => {
      const ann = { scheme, id: idOf(scheme, 'ann') };
      const owner = await connectAs('ann', ann);
      const others = await Promise.all([
        connectAs('bob', { scheme, id: idOf(scheme, 'bob') }),
        connectAs('nobody', null),
      ]);
      await owner.create('/own', 'secret', { acl: [{ ...ann, perms: Perm.all }] });
      const sessionId = owner.session?.id;
      for (let i = 0; i < 3; i++) {
        await owner.moveTo(null);
        expect((await owner.get('/own')).stat.version).toBe(i);
        await owner.set('/own', 'changed');
        for (const other of others) {
          await other.moveTo(null);
          await expect(other.get('/own', { read: 'linearizable' })).rejects.toThrow(NoAuthError);
        }
      }
      expect(owner.session?.id).toBe(sessionId);
      await Promise.all([owner, ...others].map((client) => client.close()));
    });
  },
);
