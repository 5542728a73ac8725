import type { ConnectionLine } from '../api/messages.ts';

/** Parses the answer to `cons`; connections without a session are left out. */
export function parseConnections(server: string, text: string): ConnectionLine[] {
  return [...text.matchAll(/^ \/(\S+?)\[[0-9a-f]+\]\((.*)\)$/gm)].flatMap(([, client = '', list = '']) => {
    const fields = new Map(list.split(',').map((field) => field.split('=', 2) as [string, string]));
    const session = fields.get('sid');
    if (session === undefined) return [];
    const numberOf = (name: string): number => Number(fields.get(name) ?? 0);
    return [
      {
        session,
        client,
        server,
        timeoutMs: numberOf('to'),
        establishedMs: numberOf('est'),
        lastZxid: fields.get('lzxid') ?? '',
        operation: fields.get('lop') ?? '',
        latencyAverageMs: numberOf('avglat'),
        latencyMaxMs: numberOf('maxlat'),
      },
    ];
  });
}

/** The ephemeral znodes or watches of a session at a server. */
export interface Held {
  readonly session: string;
  readonly path: string;
  readonly server: string;
}

/** Parses the answer to `wchc`, and the part of `dump` with ephemerals: a line per session, followed by its paths. */
export function parseHeld(server: string, text: string): Held[] {
  const part = text.includes('Sessions with Ephemerals')
    ? text.split('Sessions with Ephemerals')[1]?.split('Connections dump:')[0]
    : text;
  let session = '';
  return (part ?? '').split('\n').flatMap((line) => {
    const heading = /^(0x[0-9a-f]+):?$/.exec(line);
    if (heading !== null) session = heading[1] ?? '';
    return line.startsWith('\t') && session !== '' ? [{ session, path: line.slice(1), server }] : [];
  });
}
