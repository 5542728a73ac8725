import { count } from '../figures.ts';

/** Changes as they happen. */
export const LIVE_TEXTS = {
  live: {
    title: 'Changes',
    path: 'Under',
    filter: 'Filter',
    filterLabel: 'Show only paths or values with this text',
    start: 'Watch',
    pause: 'Pause',
    resume: 'Continue',
    clear: 'Clear',
    export: 'Export',
    waiting: (path: string): string => `Watching ${path}. Nothing has happened yet.`,
    arming: 'Arming the watch…',
    paused: (n: number): string => `Paused: ${count(n)} changes wait`,
    rate: (n: number): string => `${count(n)} a second`,
    total: (n: number): string => `${count(n)} changes`,
    dropped: 'older ones are dropped',
    gap: (missed: number | null): string =>
      missed === null
        ? 'Changes may be missing here: the connection was away.'
        : `${count(missed)} changes are left out here: they came faster than they could be taken.`,
    oneShot:
      'This service has no persistent watches (before 3.6): changes that follow each other quickly are reported as one.',
    types: { created: 'created', deleted: 'deleted', changed: 'changed', children: 'children', gap: 'gap' } as Readonly<
      Record<string, string>
    >,
    columns: { time: 'Time', type: 'What', path: 'Path', value: 'Value', zxid: 'Zxid' },
    by: (owner: string): string => `by session ${owner}`,
    table: 'Changes, the newest first',
  },
} as const;
