import { type ReactNode, useState } from 'react';
import type { ContenderInfo, LineInfo, LinesInfo } from '../../api/messages.ts';
import { age } from '../figures.ts';
import { routeHash } from '../route.ts';
import { useSession, useSubscription } from '../session.ts';
import { TEXTS } from '../texts.ts';

/** The lines of locks, elections, queues and barriers: who holds, who waits for whom, and wait cycles. */
export default function LinesPage(): ReactNode {
  const { cluster } = useSession();
  const { lines: texts } = TEXTS;
  const [found, setFound] = useState<LinesInfo | null>(null);
  useSubscription({ kind: 'lines', cluster: cluster.name }, (message) => {
    if (message.kind === 'lines') setFound(message.lines);
  });
  if (found === null) return <p className="quiet">{TEXTS.loading}</p>;
  const deadlocked = new Set(found.deadlocks.flat());
  return (
    <div className="column scroll padded">
      <div className="bar flush">
        <h1>{texts.title}</h1>
        <span className="chip">{found.lines.length}</span>
        {!found.index.isComplete && <span className="chip">{texts.walking}</span>}
      </div>
      {found.index.isComplete && !found.index.isLive && <p className="note warn">{TEXTS.search.old}</p>}
      {found.deadlocks.map((circle) => (
        <div className="note bad deadlock" key={circle.join()} role="alert">
          <strong>{texts.deadlock}.</strong>{' '}
          {texts.deadlockText(circle.map((session) => nameOf(session, found)).join(' → '))}
        </div>
      ))}
      {found.lines.length === 0 && <p className="quiet">{texts.none}</p>}
      <ul className="lines">
        {found.lines.map((line) => (
          <Line cluster={cluster.name} deadlocked={deadlocked} key={line.path} line={line} />
        ))}
      </ul>
    </div>
  );
}

function nameOf(session: string, { lines }: LinesInfo): string {
  const client = lines.flatMap(({ contenders }) => contenders).find((one) => one.session === session)?.client;
  return client === null || client === undefined ? session : `${session} (${client})`;
}

function Line({
  line,
  cluster,
  deadlocked,
}: {
  readonly line: LineInfo;
  readonly cluster: string;
  readonly deadlocked: ReadonlySet<string>;
}): ReactNode {
  const { lines: texts } = TEXTS;
  const { path, kind, layout, contenders, total } = line;
  const inLine = kind === 'queue' ? texts.items(total) : isGathering(kind) ? texts.members(total) : texts.inLine(total);
  return (
    <li className="line">
      <header>
        <a className="mono path" href={routeHash({ cluster, page: 'tree', path })}>
          {path}
        </a>
        <span className="chip">{texts.kinds[kind]}</span>
        <span className="dim">{`${texts.layouts[layout]} · ${inLine}`}</span>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached with the keyboard. */}
      <ol aria-label={path} className="contenders" tabIndex={0}>
        {contenders.slice(0, 12).map((one) => (
          <Contender
            isDeadlocked={one.session !== null && deadlocked.has(one.session)}
            key={one.name}
            kind={kind}
            one={one}
          />
        ))}
        {kind === 'barrier' && total === 0 && <li className="more">{texts.noWaiters}</li>}
        {total > 12 && <li className="more">{texts.more(total - 12)}</li>}
      </ol>
    </li>
  );
}

function Contender({
  one,
  kind,
  isDeadlocked,
}: {
  readonly one: ContenderInfo;
  readonly kind: LineInfo['kind'];
  readonly isDeadlocked: boolean;
}): ReactNode {
  const { lines: texts } = TEXTS;
  const [nowMs] = useState(() => Date.now());
  const state = stateOf(one, kind);
  return (
    <li className={`contender${one.isHolder && state !== null ? ' holder' : ''}${isDeadlocked ? ' deadlocked' : ''}`}>
      <div className="contender-name mono" title={one.name}>
        {shortName(one.name)}
      </div>
      {state !== null && <div className="contender-state">{state}</div>}
      {isDeadlocked && <div className="bad">{texts.deadlocked}</div>}
      <div className="dim mono">{one.client ?? one.session ?? texts.noSession}</div>
      <div className="dim">
        {one.sinceMs !== null && texts.since(age(nowMs - one.sinceMs))}
        {one.token !== null && ` · ${texts.token(one.token)}`}
      </div>
      {one.data !== '' && <div className="dim mono data">{one.data}</div>}
    </li>
  );
}

/** As text; null when there are no waiters. */
function stateOf({ isHolder, waitsFor }: ContenderInfo, kind: LineInfo['kind']): string | null {
  const { lines: texts } = TEXTS;
  if (kind === 'queue' || kind === 'line') return null;
  if (kind === 'barrier') return texts.watches;
  if (isHolder) return texts.holds[kind] ?? texts.holder;
  if (isGathering(kind)) return texts.waitsForRest;
  return waitsFor.length === 1 ? texts.waits(shortName(waitsFor[0] ?? '')) : texts.waitsMany(waitsFor.length);
}

function isGathering(kind: LineInfo['kind']): boolean {
  return kind === 'barrier' || kind === 'double barrier' || kind === 'rendezvous';
}

/** Without the mark of its owner, 36 meaningless letters. */
function shortName(name: string): string {
  return name.replace(/^_c_[0-9a-f-]{36}-/, '').replace(/^[0-9a-f]{32}(?=__)/, '');
}
