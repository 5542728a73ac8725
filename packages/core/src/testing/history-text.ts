import {
  counterOf,
  epochOf,
  type LeaderPacket,
  makeZxid,
  PacketType,
  type UnknownPacket,
  type Zxid,
} from '@meerkat/protocol';
import type { HistoryEntry } from '../zab/history.ts';
import { makePlaceholder } from '../zab/placeholder.ts';

/** (epoch,counter), as in papers about Zab. */
export function formatPair(zxid: Zxid): string {
  return zxid < 0 ? '−1' : `(${epochOf(zxid)},${counterOf(zxid)})`;
}

export function parsePair(text: string): Zxid {
  const match = /^\((\d+),(\d+)\)$/.exec(text);
  if (match === null) throw new Error(`"${text}" is no zxid like (2,5)`);
  return makeZxid(Number(match[1]), Number(match[2]));
}

/** A history from runs of one epoch: `(1,1)..(1,5) (2,1)`; `(2,2)*` is a placeholder. */
export function parseHistory(text: string): HistoryEntry[] {
  const runs = text.split(' ').filter((run) => run !== '');
  return runs.flatMap((run) => {
    if (run.endsWith('*')) {
      const zxid = parsePair(run.slice(0, -1));
      return [{ zxid, payload: makePlaceholder(zxid).payload }];
    }
    const [first, last = first] = run.split('..').map(parsePair) as [Zxid, Zxid?];
    return Array.from({ length: last - first + 1 }, (_, i) => makeEntry((first + i) as Zxid));
  });
}

export function makeEntry(zxid: Zxid): HistoryEntry {
  return { zxid, payload: new TextEncoder().encode(formatPair(zxid)) };
}

/** COMMIT (2,1) */
export function formatPacket(packet: Exclude<LeaderPacket, UnknownPacket>): string {
  const name = Object.entries(PacketType)
    .find(([, type]) => type === packet.type)![0]
    .toUpperCase();
  return 'zxid' in packet ? `${name} ${formatPair(packet.zxid)}` : name;
}
