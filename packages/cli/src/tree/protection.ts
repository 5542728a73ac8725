import type { Client } from '@meerkat/client';
import { InvocationFailure } from '../run/command-failure.ts';

/** The service's own: it refuses to delete these, and keeps what it needs below them. */
const SYSTEM_PATHS: ReadonlySet<string> = new Set(['/zookeeper', '/zookeeper/config', '/zookeeper/quota']);

/** Whether it is one of the service's own znodes. */
export function isSystemPath({ chroot }: Pick<Client, 'chroot'>, path: string): boolean {
  return SYSTEM_PATHS.has(path === '/' ? chroot : chroot + path);
}

/**
 * @param verb what is refused: delete, move
 * @throws InvocationFailure for the root and the service's own znodes
 */
export function refuseProtected(client: Pick<Client, 'chroot'>, path: string, verb: string): void {
  if (path === '/') {
    throw new InvocationFailure(`the root cannot be ${past(verb)}; name the znodes below it, as '/*' does all of them`);
  }
  if (!isSystemPath(client, path)) return;
  throw new InvocationFailure(`${path} cannot be ${past(verb)}: it belongs to the service, which needs it`);
}

function past(verb: string): string {
  return verb.endsWith('e') ? `${verb}d` : `${verb}ed`;
}
