import { count, size } from '../figures.ts';

/** Sizes of subtrees. */
export const SIZES_TEXTS = {
  sizes: {
    title: 'Sizes',
    by: 'Area by',
    bytes: 'Bytes',
    count: 'Znodes',
    up: 'One level up',
    others: (n: string): string => `${n} others`,
    total: (znodes: number, bytes: number): string => `${count(znodes)} znodes, ${size(bytes)}`,
    table: 'Largest children',
    name: 'Name',
    share: 'Share',
  },
} as const;
