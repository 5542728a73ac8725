import { NoNodeError } from '@meerkat/client';
import { readClients, readLine, sessionOf } from '../monitoring/contender-line.ts';
import { age } from '../output/age.ts';
import type { Context } from '../run/context.ts';
import type { FaultName, Finding } from './faults.ts';

/** Why a lock, or another line of sequential znodes, does not come free. */
export async function checkLock(context: Context, text: string): Promise<Finding[]> {
  const client = await context.connect();
  const path = context.resolve(text);
  const finding = (fault: FaultName, found: string): Finding[] => [{ fault, where: path, found }];
  let line: Awaited<ReturnType<typeof readLine>>;
  try {
    line = await readLine(context, client, path);
  } catch (error) {
    if (error instanceof NoNodeError) return finding('lock-path-missing', `there is no znode ${path}`);
    throw error;
  }
  const [first] = line;
  if (first === undefined) return finding('lock-free', 'no sequential znode stands there');
  const session = sessionOf(first);
  const since = `since ${age(first.stat.ctime, Date.now())}, ${line.length - 1} wait behind it`;
  if (session === null) return finding('lock-not-ephemeral', `${first.name} belongs to no session; ${since}`);
  const address = (await readClients(context)).get(session);
  const holder = `${first.name} of session ${session}`;
  if (address === undefined)
    return finding('lock-holder-away', `${holder} is connected to none of the servers that allow cons; ${since}`);
  return finding('lock-held', `${holder}, connected from ${address}; ${since}`);
}
