import type { Client } from '@meerkat/client';
import { expect } from 'vitest';
import type { Ensemble, Member } from './ensemble.ts';
import { ForeignClient, type ForeignKind, type ForeignOptions } from './foreign-client.ts';

/** A foreign client, and the session that it must keep. */
export interface SessionOwner {
  readonly client: ForeignClient;
  readonly session: bigint;
}

/** Starts a client that connects to this member, if the client supports that. */
export async function startClient(
  kind: ForeignKind,
  ensemble: Ensemble,
  first: Member,
  root: string,
  control: Client,
  options: ForeignOptions = {},
): Promise<SessionOwner> {
  const members = [first, ...ensemble.members.filter((member) => member !== first)];
  const servers = members.map(({ server }) => `127.0.0.1:${server.port}`);
  const client = await ForeignClient.start(kind, servers, root, options);
  return { client, session: await ownerOf(control, `${root}/mine`) };
}

/** Expects the client to have its session, ephemerals and watches; the event of a watched change comes first. */
export async function expectSessionKept(
  { client, session }: SessionOwner,
  deaths: number,
  control: Client,
): Promise<void> {
  await client.hearsOfChange('/watched');
  await client.write(`after-${deaths}`);
  await client.createEphemeral(`after-${deaths}`);
  expect(await ownerOf(control, `${client.root}/mine`)).toBe(session);
  expect(await ownerOf(control, `${client.root}/after-${deaths}`)).toBe(session);
  const written = await control.get(client.written);
  expect(new TextDecoder().decode(written.data)).toBe(`after-${deaths}`);
}

export async function ownerOf(control: Client, path: string): Promise<bigint> {
  await control.sync();
  const stat = await control.exists(path);
  if (stat === null) throw new Error(`there is no ${path}`);
  return stat.ephemeralOwner;
}
