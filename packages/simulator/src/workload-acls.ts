import { type Acl, OPEN_ACL, Perm } from '@meerkat/protocol';
import type { Identity } from './checkers/access.ts';
import type { SeededRandom } from './seeded-random.ts';

const NAMES = ['ann:secret', 'bob:secret', null] as const;

/** The first client is ann, the second bob, the third nobody in particular, and so on. */
export function identityOf(client: number): Identity {
  return NAMES[client % NAMES.length]!;
}

const ANYONE = { scheme: 'world', id: 'anyone' } as const;
const ANN = { scheme: 'digest', id: 'ann:secret' } as const;
const BOB = { scheme: 'digest', id: 'bob:secret' } as const;

/** Everything that the permissions of these clients can make a difference about. */
const ACLS: readonly (readonly Acl[])[] = [
  OPEN_ACL,
  [{ ...ANN, perms: Perm.all }],
  [{ ...BOB, perms: Perm.all }],
  [
    { ...ANYONE, perms: Perm.read },
    { ...ANN, perms: Perm.all },
  ],
  // Versions are nobody's business without the permission to read.
  [
    { ...ANYONE, perms: Perm.all & ~Perm.read },
    { ...BOB, perms: Perm.read },
  ],
  [
    { ...ANYONE, perms: Perm.read | Perm.write },
    { ...ANN, perms: Perm.create | Perm.delete | Perm.admin },
    { ...BOB, perms: Perm.admin },
  ],
];

/** Half of them are open. */
export function drawAcl(random: SeededRandom): readonly Acl[] {
  return random.chance(0.5) ? OPEN_ACL : random.pick(ACLS);
}
