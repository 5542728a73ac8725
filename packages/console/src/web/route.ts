import { useSyncExternalStore } from 'react';

export type Page = 'tree' | 'live' | 'sessions' | 'lines' | 'servers' | 'sizes' | 'time';
export const PAGES: readonly Page[] = ['tree', 'live', 'sessions', 'lines', 'servers', 'sizes', 'time'];

/** The current view: `#/CLUSTER/PAGE/PATH`. Links to it can be bookmarked. */
export interface Route {
  readonly cluster: string;
  readonly page: Page;
  readonly path: string;
}

export function useRoute(): Route {
  const hash = useSyncExternalStore(listen, () => location.hash);
  return parseRoute(hash);
}

export function parseRoute(hash: string): Route {
  const [, cluster = '', page = '', ...names] = hash.replace(/^#/, '').split('/');
  const known = PAGES.find((one) => one === page) ?? 'tree';
  const path = `/${names.map(decode).join('/')}`;
  return { cluster: decode(cluster), page: known, path: path === '/' ? '/' : path.replace(/\/+$/, '') };
}

export function routeHash({ cluster, page, path }: Route): string {
  const names = path === '/' ? '' : path.split('/').map(encodeURIComponent).join('/');
  return `#/${encodeURIComponent(cluster)}/${page}${names}`;
}

export function go(route: Route, isReplaced = false): void {
  const hash = routeHash(route);
  if (location.hash === hash) return;
  if (!isReplaced) {
    location.hash = hash;
    return;
  }
  history.replaceState(null, '', hash);
  dispatchEvent(new HashChangeEvent('hashchange'));
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function listen(onChange: () => void): () => void {
  addEventListener('hashchange', onChange);
  return () => removeEventListener('hashchange', onChange);
}
