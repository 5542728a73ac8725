import { type ReactNode, useEffect, useState } from 'react';
import type { PastDifference, PastSpan, PastZnode } from '../../api/past-messages.ts';
import { ask, clusterUrl } from '../api.ts';
import { time } from '../figures.ts';
import { FailureNote, FailureView } from '../parts/failure-view.tsx';
import { go } from '../route.ts';
import { useResource, useSession } from '../session.ts';
import { TEXTS } from '../texts.ts';
import { ValueView } from '../znode/value-view.tsx';
import { Differences } from './differences.tsx';
import { PastBranch } from './past-branch.tsx';

/** Nothing is rebuilt while the slider is dragged. */
const STILL_MS = 300;
const STEPS = 1000;

/** The whole tree at a moment of the retained log, and the changes until another one. */
export default function TimePage({ path }: { readonly path: string }): ReactNode {
  const { cluster } = useSession();
  const { time: texts } = TEXTS;
  const [moment, setMoment] = useState<string | null>(null);
  const [other, setOther] = useState<string | null>(null);
  const span = useResource(cluster.name, (signal) =>
    ask<PastSpan>(clusterUrl(cluster.name, 'past/span'), undefined, signal),
  );
  const at = moment ?? (span.value === null ? null : `${span.value.toMs}`);
  const read = useResource(at === null ? null : `${at} ${path}`, (signal) =>
    ask<PastZnode>(clusterUrl(cluster.name, 'past/znode', { at: at ?? '', path }), undefined, signal),
  );
  const difference = useResource(at === null || other === null ? null : `${at} ${other} ${path}`, (signal) =>
    ask<PastDifference>(
      clusterUrl(cluster.name, 'past/difference', { from: at ?? '', to: other ?? '', path }),
      undefined,
      signal,
    ),
  );
  if (span.failure !== null) return <FailureView failure={span.failure} retry={span.reload} />;
  if (at === null || span.value === null) return <p className="quiet">{TEXTS.loading}</p>;
  const znode = read.value;
  return (
    <div className="column">
      <div className="bar">
        <h1>{texts.title}</h1>
        <Slider onMoment={setMoment} span={span.value} />
        <MomentForm label={texts.moment} onMoment={setMoment} submit={texts.show} />
        <MomentForm label={texts.compare} onMoment={setOther} submit={texts.compareSubmit} />
        {other !== null && (
          <button onClick={() => setOther(null)} type="button">
            {texts.noCompare}
          </button>
        )}
        <span className="dim" role="status">
          {znode === null ? TEXTS.loading : texts.asOf(znode.moment.zxid, znode.moment.atMs)}
        </span>
      </div>
      <div className="time">
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached with the keyboard. */}
        <section aria-label={texts.tree} className="past-tree" tabIndex={0}>
          <ul>
            <PastBranch
              at={at}
              name="/"
              onSelect={(to) => go({ cluster: cluster.name, page: 'time', path: to })}
              path="/"
              selected={path}
            />
          </ul>
        </section>
        <section aria-label={path} className="past-znode">
          <h2 className="mono">{path}</h2>
          {read.failure !== null && <FailureNote failure={read.failure} />}
          {other !== null && difference.failure !== null && <FailureNote failure={difference.failure} />}
          {other === null ? (
            znode !== null && read.failure === null && <Znode znode={znode} />
          ) : difference.value === null ? (
            <p className="quiet">{TEXTS.loading}</p>
          ) : (
            <Differences difference={difference.value} />
          )}
        </section>
      </div>
    </div>
  );
}

function Znode({ znode }: { readonly znode: PastZnode }): ReactNode {
  const { time: texts } = TEXTS;
  const { stat, isWithheld } = znode;
  if (isWithheld) return <p className="quiet">{texts.withheld}</p>;
  if (stat === null) return <p className="quiet">{texts.absent}</p>;
  return (
    <>
      <p className="status-line">
        <span className="mono">{stat.mzxid}</span>
        <span>{time(stat.mtime)}</span>
        <span>{TEXTS.znode.version(stat.version)}</span>
      </p>
      <ValueView znode={znode} />
    </>
  );
}

function Slider(props: { readonly span: NonNullable<PastSpan>; onMoment(moment: string): void }): ReactNode {
  const { span, onMoment } = props;
  const [ms, setMs] = useState<number | null>(null);
  useEffect(() => {
    if (ms === null) return undefined;
    const timer = setTimeout(() => onMoment(`${ms}`), STILL_MS);
    return () => clearTimeout(timer);
  }, [ms, onMoment]);
  const { fromMs, toMs } = span;
  return (
    <label className="inline">
      <span>{TEXTS.time.slider}</span>
      <input
        aria-valuetext={time(ms ?? toMs)}
        max={toMs}
        min={fromMs}
        onChange={({ target }) => setMs(Number(target.value))}
        step={Math.max(1, Math.floor((toMs - fromMs) / STEPS))}
        type="range"
        value={ms ?? toMs}
      />
    </label>
  );
}

/** An input for a zxid or a time. */
function MomentForm(props: {
  readonly label: string;
  readonly submit: string;
  onMoment(moment: string): void;
}): ReactNode {
  const [text, setText] = useState('');
  return (
    <form
      className="moment"
      onSubmit={(event) => {
        event.preventDefault();
        // Resolves "now" to a fixed time.
        props.onMoment(text.trim() === '' || text.trim() === 'now' ? `${Date.now()}` : text.trim());
      }}
    >
      <label className="inline">
        <span>{props.label}</span>
        <input
          onChange={({ target }) => setText(target.value)}
          placeholder={TEXTS.time.momentExample}
          spellCheck={false}
          value={text}
        />
      </label>
      <button type="submit">{props.submit}</button>
    </form>
  );
}
