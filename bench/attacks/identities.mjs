// Attacks with credentials and long ACLs.
import { createWithLongAcl, flood, ipOf, pathsOf, session } from './preparation.mjs';
import { Bytes, createRecord, FRAME_BYTES_MAX, frameOf, Op, watchableRecord } from './wire.mjs';

/** @type {import('./attacks.mjs').Attack[]} */
export const IDENTITIES = [
  {
    name: 'auth packets of 1 MB',
    async make({ port }) {
      const credentials = Buffer.alloc(FRAME_BYTES_MAX - 64, 'a');
      const frame = frameOf(Op.auth, new Bytes().int(0).text('digest').data(credentials), -4);
      return { client: await session(port), frames: [frame], depth: 8 };
    },
    attack: flood,
  },
  {
    name: 'create with `auth` entries of 90 identities',
    async make({ port }) {
      const client = await session(port);
      for (let i = 0; i < 90; i++) {
        client.send(
          frameOf(
            Op.auth,
            new Bytes()
              .int(0)
              .text('digest')
              .data(Buffer.from(`u${i}:p`)),
            -4,
          ),
        );
      }
      await client.answered(client.requests);
      const entries = pathsOf(FRAME_BYTES_MAX - 200, (i) => `auth${i}`, 12).map((id, i) => ({
        perms: (i % 31) + 1,
        scheme: 'auth',
        id,
      }));
      return {
        client,
        frames: [frameOf(Op.create, createRecord('/auth/none', undefined, { acl: entries }))],
        depth: 2,
      };
    },
    attack: flood,
  },
  {
    name: 'create with 1 MB of `ip` entries',
    async make({ port }) {
      const acl = pathsOf(FRAME_BYTES_MAX - 200, ipOf, 14).map((id) => ({ perms: 31, scheme: 'ip', id }));
      return {
        client: await session(port),
        frames: [frameOf(Op.create, createRecord('/none/none', undefined, { acl }))],
        depth: 2,
      };
    },
    attack: flood,
  },
  {
    name: 'reads behind a long ACL',
    async make({ port }) {
      const client = await session(port);
      const path = await createWithLongAcl(client);
      const frames = new Array(200).fill(frameOf(Op.getData, watchableRecord(path)));
      return { client, frames: [Buffer.concat(frames)], together: frames.length, depth: 5 * frames.length };
    },
    attack: flood,
  },
];
