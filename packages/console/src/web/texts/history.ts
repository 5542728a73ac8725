import { count, size } from '../figures.ts';

/** The history of a znode. */
export const HISTORY_TEXTS = {
  history: {
    slider: 'State',
    none: 'The retained log has nothing of this znode.',
    at: (n: number, all: number): string => `${n} of ${count(all)}`,
    by: (session: string, client: string | null): string =>
      session === '0x0' ? 'by the server' : `by session ${session}${client === null ? '' : ` of ${client}`}`,
    changes: { created: 'created', changed: 'changed', deleted: 'deleted', acl: 'ACL changed' } as Readonly<
      Record<string, string>
    >,
    compare: 'Compared with',
    before: 'the state before',
    now: 'the newest state',
    nothing: 'nothing',
    withheld: 'This value is not shown: its ACL was another one than now, and was not open to all.',
    binary: (bytes: number): string => `bytes, ${size(bytes)}`,
    cut: 'Older ones are left out.',
    label: 'Difference',
  },
} as const;
