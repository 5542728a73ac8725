import type { Client, Watched } from '@meerkat/client';

/** A client that counts its one-shot watches: armed, and neither fired nor removed. */
export class WatchCounter {
  readonly client: Client;
  #kept = 0;

  constructor(client: Client) {
    this.client = new Proxy(client, {
      get: (target, key) => {
        const member: unknown = Reflect.get(target, key, target);
        if (typeof member !== 'function') return member;
        if (key !== 'get' && key !== 'exists' && key !== 'children') return member.bind(target);
        return (path: string, options?: { readonly watch?: boolean }) => {
          const reading = Reflect.apply(member, target, [path, options]) as Promise<Watched>;
          return options?.watch === true ? reading.then((watched) => this.#count(watched)) : reading;
        };
      },
    });
  }

  get kept(): number {
    return this.#kept;
  }

  #count<W extends Watched>(watched: W): W {
    this.#kept++;
    let isKept = true;
    const drop = (): void => {
      if (isKept) this.#kept--;
      isKept = false;
    };
    watched.changed.then(drop, drop);
    const takeOff = watched[Symbol.dispose].bind(watched);
    return Object.defineProperty({ ...watched }, Symbol.dispose, {
      value: () => {
        drop();
        takeOff();
      },
    });
  }
}
