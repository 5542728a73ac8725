import { type ReactNode, useState } from 'react';
import type { HistoryEntry, HistoryInfo } from '../../api/past-messages.ts';
import { ask, clusterUrl } from '../api.ts';
import { time } from '../figures.ts';
import { FailureView } from '../parts/failure-view.tsx';
import { useResource, useSession } from '../session.ts';
import { TEXTS } from '../texts.ts';
import { CodeView } from './code-view.tsx';
import { asText, toBytes } from './unpack.ts';

type Against = 'before' | 'now' | 'nothing';

/** A slider over the states of a znode in the retained log: its data, since when, and by which session. */
export function HistoryView({ path, version }: { readonly path: string; readonly version: number }): ReactNode {
  const { cluster } = useSession();
  const { history: texts } = TEXTS;
  const [chosen, setChosen] = useState<string | null>(null);
  const [against, setAgainst] = useState<Against>('before');
  const { value, failure, reload } = useResource(`${path} ${version}`, (signal) =>
    ask<HistoryInfo>(clusterUrl(cluster.name, 'history', { path }), undefined, signal),
  );
  if (failure !== null) return <FailureView failure={failure} retry={reload} />;
  if (value === null) return <p className="quiet">{TEXTS.loading}</p>;
  const { entries, isCut } = value;
  const last = entries.length - 1;
  const found = entries.findIndex(({ zxid }) => zxid === chosen);
  const at = found < 0 ? last : found;
  const entry = entries[at];
  if (entry === undefined) return <p className="quiet">{texts.none}</p>;
  const other = against === 'nothing' ? undefined : against === 'now' ? entries[last] : entries[at - 1];
  return (
    <div className="value">
      <div className="value-bar">
        <label>
          <span>{texts.slider}</span>
          <input
            aria-valuetext={`${texts.at(at + 1, entries.length)}, ${time(entry.atMs)}`}
            max={last}
            min={0}
            onChange={({ target }) => setChosen(entries[Number(target.value)]?.zxid ?? null)}
            type="range"
            value={at}
          />
        </label>
        <span className="mono">{texts.at(at + 1, entries.length)}</span>
        <label>
          <span>{texts.compare}</span>
          <select onChange={({ target }) => setAgainst(target.value as Against)} value={against}>
            {(['before', 'now', 'nothing'] as const).map((one) => (
              <option key={one} value={one}>
                {texts[one]}
              </option>
            ))}
          </select>
        </label>
        {isCut && <span className="dim">{texts.cut}</span>}
      </div>
      <p className="status-line" role="status">
        <strong>{texts.changes[entry.change]}</strong>
        <span>{time(entry.atMs)}</span>
        <span className="mono">{entry.zxid}</span>
        <span className="mono">{texts.by(entry.session, entry.client)}</span>
        {entry.version !== null && <span>{TEXTS.znode.version(entry.version)}</span>}
      </p>
      {entry.isWithheld ? (
        <p className="quiet">{texts.withheld}</p>
      ) : (
        <CodeView
          key={`${entry.zxid} ${against}`}
          label={texts.label}
          language="text"
          {...(other === undefined ? {} : { original: shown(other) })}
          text={shown(entry)}
        />
      )}
    </div>
  );
}

function shown({ data, isWithheld }: HistoryEntry): string {
  if (data === null || isWithheld) return '';
  const bytes = toBytes(data);
  return asText(bytes) ?? TEXTS.history.binary(bytes.length);
}
