import { type Acl, OPEN_ACL, Perm } from '@meerkat/protocol';
import type { Identity } from './checkers/access.ts';
import type { SeededRandom } from './seeded-random.ts';
import { idOf, SCHEMES } from './users.ts';

/** The users of one world, and the lists of permissions in which they make a difference. */
export class WorkloadAcls {
  readonly #users: readonly Identity[];
  readonly #acls: readonly (readonly Acl[])[];

  /** How each user authenticates is drawn. */
  constructor(random: SeededRandom) {
    const draw = (name: string): NonNullable<Identity> => {
      const scheme = random.pick(SCHEMES);
      return { scheme, id: idOf(scheme, name) };
    };
    const ann = draw('ann');
    const bob = draw('bob');
    this.#users = [ann, bob, null];
    this.#acls = [
      OPEN_ACL,
      [{ ...ann, perms: Perm.all }],
      [{ ...bob, perms: Perm.all }],
      [
        { ...ANYONE, perms: Perm.read },
        { ...ann, perms: Perm.all },
      ],
      // Without the permission to read, versions are hidden.
      [
        { ...ANYONE, perms: Perm.all & ~Perm.read },
        { ...bob, perms: Perm.read },
      ],
      [
        { ...ANYONE, perms: Perm.read | Perm.write },
        { ...ann, perms: Perm.create | Perm.delete | Perm.admin },
        { ...bob, perms: Perm.admin },
      ],
    ];
  }

  /** The first client is ann, the second bob, the third anonymous, and so on. */
  identityOf(client: number): Identity {
    return this.#users[client % this.#users.length]!;
  }

  /** Half of them are open. */
  draw(random: SeededRandom): readonly Acl[] {
    return random.chance(0.5) ? OPEN_ACL : random.pick(this.#acls);
  }
}

const ANYONE = { scheme: 'world', id: 'anyone' } as const;
