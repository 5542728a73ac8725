import { lazy, type ReactNode, Suspense, useEffect, useRef, useState } from 'react';
import type { StreamMessage } from '../api/messages.ts';
import { hello as askHello, clusterUrl } from './api.ts';
import { Dialog } from './parts/dialog.tsx';
import { Icon } from './parts/icons.tsx';
import { Menu } from './parts/menu.tsx';
import { SearchBox } from './parts/search-box.tsx';
import { go, PAGES, routeHash, useRoute } from './route.ts';
import { useSession, useSubscription } from './session.ts';
import { STREAM } from './stream.ts';
import { TEXTS } from './texts.ts';
import { setTheme, useTheme } from './theme.ts';
import { TreePage } from './tree/tree-page.tsx';

const LivePage = lazy(() => import('./live/live-page.tsx'));
const SessionsPage = lazy(() => import('./people/sessions-page.tsx'));
const LinesPage = lazy(() => import('./people/lines-page.tsx'));
const ServersPage = lazy(() => import('./servers/servers-page.tsx'));
const SizesPage = lazy(() => import('./sizes/sizes-page.tsx'));
const TimePage = lazy(() => import('./time/time-page.tsx'));

export interface Toast {
  readonly id: number;
  readonly text: string;
  readonly undo: boolean;
  readonly isError: boolean;
}

/** The frame of all views. */
export function Shell(props: {
  readonly toasts: readonly Toast[];
  onDropToast(id: number): void;
  onUndo(): void;
  onHelp(): void;
}): ReactNode {
  const { cluster } = useSession();
  const route = useRoute();
  const path = route.cluster === cluster.name ? route.path : '/';
  return (
    <div className="app">
      <button className="skip" onClick={() => document.getElementById('content')?.focus()} type="button">
        {TEXTS.skip}
      </button>
      <header className="top">
        <span className="brand">
          <span aria-hidden="true" className="logo">
            M
          </span>
          <span className="brand-name">Meerkat</span>
        </span>
        <Clusters />
        <SearchBox />
        <StateMark />
        <Tools onHelp={props.onHelp} />
      </header>
      <nav aria-label={TEXTS.menu} className="pages">
        {PAGES.filter((page) => page !== 'time' || cluster.hasPast).map((page) => (
          <a
            aria-current={route.page === page ? 'page' : undefined}
            href={routeHash({ cluster: cluster.name, page, path })}
            key={page}
          >
            <Icon name={page} size={18} />
            <span>{TEXTS.pages[page]}</span>
          </a>
        ))}
      </nav>
      <main className={`content page-${route.page}`} id="content" tabIndex={-1}>
        <Suspense fallback={<p className="quiet">{TEXTS.loading}</p>}>
          {route.page === 'tree' && <TreePage path={path} />}
          {route.page === 'live' && <LivePage key={path} path={path} />}
          {route.page === 'sessions' && <SessionsPage />}
          {route.page === 'lines' && <LinesPage />}
          {route.page === 'servers' && <ServersPage />}
          {route.page === 'sizes' && <SizesPage path={path} />}
          {route.page === 'time' && <TimePage path={path} />}
        </Suspense>
      </main>
      <div aria-live="polite" className="toasts" role="status">
        {props.toasts.map(({ id, text, undo, isError }) => (
          <div className={isError ? 'toast bad' : 'toast'} key={id}>
            <span>{text}</span>
            {undo && (
              <button onClick={props.onUndo} type="button">
                {TEXTS.actions.undo}
              </button>
            )}
            <button aria-label={TEXTS.close} className="ghost" onClick={() => props.onDropToast(id)} type="button">
              <Icon name="close" size={14} />
            </button>
          </div>
        ))}
      </div>
    </div>
  );
}

function Clusters(): ReactNode {
  const { hello, cluster } = useSession();
  if (hello.clusters.length === 1) return <span className="cluster mono">{cluster.name}</span>;
  return (
    <select
      aria-label={TEXTS.cluster}
      className="cluster"
      onChange={({ target }) => go({ cluster: target.value, page: 'tree', path: '/' })}
      value={cluster.name}
    >
      {hello.clusters.map(({ name }) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

/** The connection state and the login. */
function StateMark(): ReactNode {
  const { cluster, isWritable, notify } = useSession();
  const [state, setState] = useState<Extract<StreamMessage, { kind: 'state' }> | null>(null);
  const lastSession = useRef<string | null>(null);
  const [isOnline, setOnline] = useState(true);
  useSubscription({ kind: 'state', cluster: cluster.name }, (message) => {
    if (message.kind !== 'state') return;
    setState(message);
    if (message.state !== 'connected' || message.session === null) return;
    const { current } = lastSession;
    lastSession.current = message.session;
    if (current === null || current === message.session) return;
    notify(TEXTS.sessionOver(current, message.session), { isError: true, stays: true });
  });
  useEffect(() => STREAM.onOnline(setOnline), []);
  const name = isOnline ? (state?.state ?? 'connecting') : 'offline';
  const text = isOnline ? (TEXTS.states[name] ?? name) : TEXTS.offline;
  const isGood = name === 'connected';
  const title = state === null ? text : `${text}. ${state.server ?? ''} ${state.session ?? ''} ${state.reason}`;
  return (
    <span className="state-group">
      <span className={`state ${isGood ? 'good' : name === 'connecting' ? '' : 'bad'}`} role="status" title={title}>
        <span aria-hidden="true" className="dot" />
        <span className="state-text">{isGood ? (state?.server ?? text) : text}</span>
      </span>
      {!isWritable && (
        <span className="chip" title={TEXTS.readOnlyHint}>
          {TEXTS.readOnly}
        </span>
      )}
    </span>
  );
}

function Tools({ onHelp }: { onHelp(): void }): ReactNode {
  const { cluster, setHello, fail } = useSession();
  const theme = useTheme();
  return (
    <div className="tools">
      <Menu
        icon="moon"
        items={(['auto', 'light', 'dark'] as const).map((one) => {
          return { label: TEXTS.theme[one], isChecked: theme === one, run: () => setTheme(one) };
        })}
        label={TEXTS.theme.label}
      />
      <button aria-label={TEXTS.help} className="ghost" onClick={onHelp} title={`${TEXTS.help} (?)`} type="button">
        <Icon name="help" />
      </button>
      <button
        aria-label={TEXTS.signOut}
        className="ghost"
        onClick={() => void askHello(clusterUrl(cluster.name, 'logout'), {}).then(setHello, fail)}
        title={TEXTS.signOut}
        type="button"
      >
        <Icon name="out" />
      </button>
    </div>
  );
}

export function KeysDialog({ onClose }: { onClose(): void }): ReactNode {
  return (
    <Dialog onClose={onClose} title={TEXTS.keys.title}>
      <dl className="keys">
        {TEXTS.keys.list.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
