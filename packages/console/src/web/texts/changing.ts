import { count, size } from '../figures.ts';

/** Changing znodes. */
export const CHANGING_TEXTS = {
  actions: {
    edit: 'Edit',
    create: 'Create child',
    delete: 'Delete',
    copy: 'Copy to…',
    move: 'Move to…',
    upload: 'Upload value',
    download: 'Download value',
    export: 'Export tree',
    import: 'Import here',
    undo: 'Undo',
    copyPath: 'Copy path',
    more: 'More',
    watch: 'Watch changes',
  },
  edit: {
    title: (path: string): string => `Edit ${path}`,
    label: (path: string): string => `New value of ${path}`,
    review: 'Review',
    save: 'Save',
    back: 'Edit again',
    saved: (path: string): string => `${path} is saved.`,
    diff: 'What would change',
    same: 'Nothing would change.',
    conflict: (version: number): string =>
      `Another client has changed it: it is now at version ${version}. The difference to that is shown below; saving replaces it.`,
    badJson: (reason: string): string => `It is no longer valid JSON: ${reason}`,
    binary: 'This value is not text: upload a file to replace it.',
    packed: 'This value was packed; it would be saved unpacked. Upload a file to keep the packing.',
  },
  create: {
    title: (path: string): string => `Create a child of ${path}`,
    name: 'Name',
    kind: 'Kind',
    kinds: {
      persistent: 'Persistent',
      container: 'Container: goes when its last child has gone',
      ttl: 'With a time to live',
      ephemeral: 'Ephemeral: goes when this console logs out',
    } as Readonly<Record<string, string>>,
    sequential: 'Append a number',
    parents: 'Create missing parents',
    ttl: 'Time to live, milliseconds',
    value: 'Value',
    submit: 'Create',
    done: (path: string): string => `${path} is created.`,
  },
  remove: {
    title: (path: string): string => `Delete ${path}?`,
    counting: 'Counting what would go…',
    what: (znodes: number, bytes: number, isCut: boolean): string =>
      `${isCut ? 'More than ' : ''}${count(znodes)} ${znodes === 1 ? 'znode' : 'znodes'} with ${size(bytes)} would go.`,
    ephemerals: (n: number): string =>
      `${count(n)} of them ${n === 1 ? 'is' : 'are'} ephemeral: their sessions are at work.`,
    type: (name: string): string => `Type ${name} to confirm`,
    submit: 'Delete',
    done: (path: string, znodes: number): string =>
      `${path} is deleted${znodes > 1 ? `, with ${count(znodes - 1)} below it` : ''}.`,
  },
  relocate: {
    copy: (path: string): string => `Copy ${path}`,
    move: (path: string): string => `Move ${path}`,
    to: 'To',
    moveHint: 'ZooKeeper has no move: it is copied and then deleted. Versions and times start over.',
    copySubmit: 'Copy',
    moveSubmit: 'Move',
    done: (path: string, znodes: number): string => `${count(znodes)} ${znodes === 1 ? 'znode' : 'znodes'}: ${path}.`,
  },
  import: { done: (path: string, znodes: number): string => `${count(znodes)} znodes created below ${path}.` },
  undo: {
    done: (text: string): string => `Undone: ${text}.`,
    offer: (text: string): string => `Undo would ${text}.`,
    not: (reason: string): string => `This cannot be undone: ${reason}.`,
  },
} as const;
