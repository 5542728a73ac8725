import { useVirtualizer } from '@tanstack/react-virtual';
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from 'react';
import type { ChangeInfo, Failure } from '../../api/messages.ts';
import { count } from '../figures.ts';
import { FailureView } from '../parts/failure-view.tsx';
import { Icon } from '../parts/icons.tsx';
import { go } from '../route.ts';
import { useSession, useSubscription } from '../session.ts';
import { STREAM } from '../stream.ts';
import { TEXTS } from '../texts.ts';
import { saveFile } from '../znode/znode-pane.tsx';
import { ChangeLog } from './change-log.ts';
import { ValueChange } from './value-change.tsx';

const ROW_PX = 26;

/** The changes under a path as they happen: the newest first. */
export default function LivePage({ path }: { readonly path: string }): ReactNode {
  const { cluster } = useSession();
  const { live: texts } = TEXTS;
  const [log] = useState(() => new ChangeLog());
  const [, redraw] = useState(0);
  const [isReady, setReady] = useState(false);
  const [mode, setMode] = useState<string | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [filter, setFilter] = useState('');
  const [isPaused, setPaused] = useState(false);
  const [typed, setTyped] = useState(path);
  const frame = useRef(0);
  useSubscription({ kind: 'changes', cluster: cluster.name, path }, (message) => {
    if (message.kind === 'failed') setFailure(message.failure);
    if (message.kind !== 'changes') return;
    setFailure(null);
    setReady(true);
    setMode(message.mode);
    log.add(message.changes);
    // However many messages arrive, they are rendered once per frame.
    cancelAnimationFrame(frame.current);
    frame.current = requestAnimationFrame(() => redraw((n) => n + 1));
  });
  useEffect(() => {
    const timer = setInterval(() => redraw((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (typed.startsWith('/')) go({ cluster: cluster.name, page: 'live', path: typed });
  };
  const pause = (): void => {
    if (isPaused) log.resume();
    else log.pause();
    setPaused(!isPaused);
  };
  const shown = log.shown(filter);
  return (
    <div className="column">
      <div className="bar">
        <h1 className="hidden">{texts.title}</h1>
        <form className="inline grow" onSubmit={submit}>
          <label className="inline grow">
            <span>{texts.path}</span>
            <input
              className="mono grow"
              onChange={({ target }) => setTyped(target.value)}
              spellCheck={false}
              value={typed}
            />
          </label>
          <button type="submit">{texts.start}</button>
        </form>
        <input
          aria-label={texts.filterLabel}
          onChange={({ target }) => setFilter(target.value)}
          placeholder={texts.filter}
          type="search"
          value={filter}
        />
        <button aria-pressed={isPaused} onClick={pause} type="button">
          <Icon name={isPaused ? 'play' : 'pause'} /> {isPaused ? texts.resume : texts.pause}
        </button>
        <button
          onClick={() => {
            log.clear();
            redraw((n) => n + 1);
          }}
          type="button"
        >
          {texts.clear}
        </button>
        <button
          disabled={shown.length === 0}
          onClick={() =>
            saveFile(
              'changes.ndjson',
              shown
                .toReversed()
                .map((change) => `${JSON.stringify(change)}\n`)
                .join(''),
            )
          }
          type="button"
        >
          <Icon name="download" /> {texts.export}
        </button>
      </div>
      <p className="status-line" role="status">
        <span className="mono">{texts.rate(log.rate(Date.now()))}</span>
        <span>{texts.total(log.total)}</span>
        {log.dropped > 0 && <span>{texts.dropped}</span>}
        {isPaused && <strong>{texts.paused(log.waiting)}</strong>}
        {mode === 'one-shot' && <span>{texts.oneShot}</span>}
      </p>
      {failure !== null && <FailureView failure={failure} retry={() => STREAM.restart()} />}
      {failure === null && shown.length === 0 && (
        <p className="quiet">{isReady ? texts.waiting(path) : texts.arming}</p>
      )}
      {shown.length > 0 && <Changes changes={shown} />}
    </div>
  );
}

function Changes({ changes }: { readonly changes: readonly ChangeInfo[] }): ReactNode {
  const { cluster } = useSession();
  const { live: texts } = TEXTS;
  const scroller = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: changes.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 10,
  });
  return (
    <div
      aria-label={`${texts.table}: ${count(changes.length)}`}
      className="log"
      ref={scroller}
      role="log"
      aria-live="off"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached with the keyboard.
      tabIndex={0}
    >
      <div style={{ height: rows.getTotalSize(), position: 'relative' }}>
        {rows.getVirtualItems().map(({ index, start }) => {
          const change = changes[index]!;
          return (
            <div className={`log-row ${change.type}`} key={index} style={{ transform: `translateY(${start}px)` }}>
              <time className="mono dim">{clock(change.atMs)}</time>
              <span className={`badge ${change.type}`}>{texts.types[change.type]}</span>
              {change.type === 'gap' ? (
                <span>{texts.gap(change.missed)}</span>
              ) : (
                <>
                  <button
                    className="link mono"
                    onClick={() => go({ cluster: cluster.name, page: 'tree', path: change.path })}
                    type="button"
                  >
                    {change.path}
                  </button>
                  <ValueChange change={change} />
                  {change.owner !== null && <span className="dim mono">{texts.by(change.owner)}</span>}
                  <span className="mono dim zxid">{change.zxid}</span>
                </>
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function clock(ms: number): string {
  const at = new Date(ms);
  const two = (n: number): string => `${n}`.padStart(2, '0');
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${`${at.getMilliseconds()}`.padStart(3, '0')}`;
}
