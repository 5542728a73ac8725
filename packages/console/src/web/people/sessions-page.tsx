import { type ReactNode, useState } from 'react';
import type { SessionEndInfo, SessionInfo, SessionsInfo } from '../../api/messages.ts';
import { age, count, time } from '../figures.ts';
import { Dialog } from '../parts/dialog.tsx';
import { go } from '../route.ts';
import { useSession, useSubscription } from '../session.ts';
import { TEXTS } from '../texts.ts';
import { EndDialog, EndOffer } from './session-end.tsx';

type Key = 'session' | 'client' | 'server' | 'establishedMs' | 'latencyMaxMs' | 'ephemerals' | 'watches';
const ROWS_MAX = 500;

/** The connected clients, their addresses, what they hold and what they watch. */
export default function SessionsPage(): ReactNode {
  const { cluster } = useSession();
  const { sessions: texts } = TEXTS;
  const [found, setFound] = useState<SessionsInfo | null>(null);
  const [filter, setFilter] = useState('');
  const [sort, setSort] = useState<Key>('establishedMs');
  const [open, setOpen] = useState<string | null>(null);
  const [ending, setEnding] = useState<{ readonly session: SessionInfo; readonly end: SessionEndInfo } | null>(null);
  useSubscription({ kind: 'sessions', cluster: cluster.name }, (message) => {
    if (message.kind === 'sessions') setFound(message.sessions);
  });
  if (found === null) return <p className="quiet">{TEXTS.loading}</p>;
  const shown = found.sessions.filter((session) => matches(session, filter.trim().toLowerCase())).toSorted(by(sort));
  const opened = found.sessions.find(({ session }) => session === open);
  const heading = (key: Key, label: string, isNumber = false): ReactNode => (
    <th
      aria-sort={sort === key ? (isNumber ? 'descending' : 'ascending') : undefined}
      className={isNumber ? 'number' : ''}
      scope="col"
    >
      <button className="sort" onClick={() => setSort(key)} type="button">
        {label}
      </button>
    </th>
  );
  return (
    <div className="column">
      <div className="bar">
        <h1>{texts.title}</h1>
        <span className="chip">{count(found.sessions.length)}</span>
        <input
          aria-label={texts.filter}
          className="grow"
          onChange={({ target }) => setFilter(target.value)}
          placeholder={texts.filter}
          type="search"
          value={filter}
        />
      </div>
      {found.problems.map((problem) => (
        <p className="note warn inset" key={problem}>
          {problem}
        </p>
      ))}
      {found.sessions.length === 0 && <p className="quiet">{texts.none}</p>}
      {found.sessions.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached with the keyboard.
        <section aria-label={texts.title} className="scroll" tabIndex={0}>
          <table className="table">
            <thead>
              <tr>
                {heading('session', texts.columns.session)}
                {heading('client', texts.columns.client)}
                {heading('server', texts.columns.server)}
                {heading('establishedMs', texts.columns.connected)}
                <th className="number" scope="col">
                  {texts.columns.timeout}
                </th>
                <th scope="col">{texts.columns.zxid}</th>
                {heading('latencyMaxMs', texts.columns.latency, true)}
                {heading('ephemerals', texts.columns.ephemerals, true)}
                {heading('watches', texts.columns.watches, true)}
              </tr>
            </thead>
            <tbody>
              {shown.slice(0, ROWS_MAX).map((one) => (
                <tr key={`${one.session} ${one.client}`}>
                  <td className="mono">
                    <button className="link mono" onClick={() => setOpen(one.session)} type="button">
                      {one.session}
                    </button>{' '}
                    {one.isOurs && <span className="chip">{texts.ours}</span>}
                  </td>
                  <td className="mono">{one.client}</td>
                  <td className="mono">{one.server}</td>
                  <td title={time(one.establishedMs)}>{age(Date.now() - one.establishedMs)}</td>
                  <td className="number">{`${one.timeoutMs / 1000} s`}</td>
                  <td className="mono">{one.lastZxid}</td>
                  <td className="number">{`${one.latencyAverageMs} / ${one.latencyMaxMs} ms`}</td>
                  <td className="number">{count(one.ephemerals.length)}</td>
                  <td className="number">{count(one.watches.length)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
      {opened !== undefined && ending === null && (
        <SessionDialog
          onClose={() => setOpen(null)}
          onEnd={(end) => {
            setOpen(null);
            setEnding({ session: opened, end });
          }}
          session={opened}
        />
      )}
      {ending !== null && <EndDialog {...ending} onClose={() => setEnding(null)} />}
    </div>
  );
}

function SessionDialog(props: {
  readonly session: SessionInfo;
  onEnd(end: SessionEndInfo): void;
  onClose(): void;
}): ReactNode {
  const { session, onEnd, onClose } = props;
  const { cluster } = useSession();
  const { sessions: texts } = TEXTS;
  const list = (title: string, paths: readonly string[]): ReactNode => (
    <section>
      <h3>{title}</h3>
      {paths.length > 0 && (
        <ul className="paths">
          {paths.slice(0, ROWS_MAX).map((path) => (
            <li key={path}>
              <button
                className="link mono"
                onClick={() => {
                  onClose();
                  go({ cluster: cluster.name, page: 'tree', path });
                }}
                type="button"
              >
                {path}
              </button>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
  return (
    <Dialog onClose={onClose} title={texts.details(session.session)}>
      <p className="mono dim">{`${session.client} → ${session.server}, ${session.operation}`}</p>
      {list(texts.holds(session.ephemerals.length), session.ephemerals)}
      {list(texts.watched(session.watches.length), session.watches)}
      <EndOffer onEnd={onEnd} session={session} />
    </Dialog>
  );
}

function matches(one: SessionInfo, text: string): boolean {
  if (text === '') return true;
  const { session, client, server, ephemerals, watches } = one;
  return [session, client, server, ...ephemerals, ...watches].some((part) => part.toLowerCase().includes(text));
}

function by(key: Key): (a: SessionInfo, b: SessionInfo) => number {
  return (a, b) => {
    if (key === 'ephemerals' || key === 'watches') return b[key].length - a[key].length;
    if (key === 'latencyMaxMs') return b[key] - a[key];
    return a[key] < b[key] ? -1 : a[key] > b[key] ? 1 : 0;
  };
}
