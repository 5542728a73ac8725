import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { ArchiveFiles } from '@meerkat/server/archive';
import { fileFailure } from '../run/command-failure.ts';

/** Where the clients of sessions are or were, as far as anybody knows. By session id, unsigned. */
export type Addresses = ReadonlyMap<bigint, string>;

/** Of the clients that are connected to the server whose files they are; of none when they are a directory. */
export async function connectedAddresses(files: ArchiveFiles, signal: AbortSignal): Promise<Map<bigint, string>> {
  const found = new Map<bigint, string>();
  if (!files.place.startsWith('http')) return found;
  try {
    const response = await fetch(`${files.place}/connections`, { signal });
    // Ids are longer than the numbers of JSON.
    const text = (await response.text()).replaceAll(/("session_id"\s*:\s*)(-?\d+)/g, '$1"$2"');
    const { connections = [], secure_connections: secure = [] } = JSON.parse(text) as {
      readonly connections?: readonly Connection[];
      readonly secure_connections?: readonly Connection[];
    };
    for (const { session_id: id, remote_socket_address: address } of [...connections, ...secure]) {
      if (id !== undefined && address !== undefined) found.set(BigInt.asUintN(64, BigInt(id)), address);
    }
  } catch {
    signal.throwIfAborted();
    // Addresses are a help, not what was asked for.
  }
  return found;
}

interface Connection {
  readonly session_id?: string;
  readonly remote_socket_address?: string;
}

/** Reads `session=0x… user=… ip=…` of an audit log, ours or Apache's. */
export async function auditedAddresses(path: string, found: Map<bigint, string>): Promise<void> {
  try {
    for await (const line of createInterface({ input: createReadStream(path) })) {
      const session = /\bsession=0x([0-9a-f]{1,16})\b/i.exec(line)?.[1];
      const ip = /\bip=(\S+)/.exec(line)?.[1];
      const user = /\buser=([^\t]*)/.exec(line)?.[1];
      if (session === undefined || ip === undefined) continue;
      found.set(BigInt(`0x${session}`), user === undefined || user === ip ? ip : `${ip} (${user})`);
    }
  } catch (error) {
    throw fileFailure(`cannot read --audit ${path}`, error);
  }
}
