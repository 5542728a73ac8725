import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { type ArchiveFiles, readConnectedClients } from '@meerkat/server/archive';
import { fileFailure } from '../run/command-failure.ts';

/** Where the clients of sessions are or were, as far as anybody knows. By session id, unsigned. */
export type Addresses = ReadonlyMap<bigint, string>;

/** Of the clients that are connected to the server whose files they are; of none when they are a directory. */
export async function connectedAddresses(files: ArchiveFiles, signal: AbortSignal): Promise<Map<bigint, string>> {
  if (!files.place.startsWith('http')) return new Map();
  try {
    const response = await fetch(`${files.place}/connections`, { signal });
    return readConnectedClients(await response.text());
  } catch {
    signal.throwIfAborted();
    // Addresses are a help, not what was asked for.
    return new Map();
  }
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
