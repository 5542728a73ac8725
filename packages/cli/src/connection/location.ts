/**
 * Where a znode is: in the service of this run, or in another one.
 *
 *     location = path / "zk://" hosts path / profile ":" path
 *
 * `zk://zk1:2181,zk2:2181/app` is a path of that service, not a chroot; `prod:/app` is one of the service of a profile.
 */
export interface Location {
  readonly path: string;
  readonly service: Service;
}

export type Service =
  | { readonly kind: 'current' }
  | { readonly kind: 'hosts'; readonly hosts: string }
  | { readonly kind: 'profile'; readonly name: string };

const CURRENT: Service = { kind: 'current' };

export function parseLocation(text: string): Location {
  const url = /^zk:\/\/([^/]+)(\/.*)?$/.exec(text);
  if (url !== null) return { path: url[2] ?? '/', service: { kind: 'hosts', hosts: url[1] ?? '' } };
  const named = /^([A-Za-z0-9_.-]+):(\/.*)$/.exec(text);
  if (named !== null) return { path: named[2] ?? '/', service: { kind: 'profile', name: named[1] ?? '' } };
  return { path: text, service: CURRENT };
}
