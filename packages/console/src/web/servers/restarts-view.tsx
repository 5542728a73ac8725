import type { ReactNode } from 'react';
import type { ServersSample } from '../../api/messages.ts';
import { time } from '../figures.ts';
import { TEXTS } from '../texts.ts';
import { readRestarts } from './restarts.ts';

/** A rolling restart or upgrade: which servers are restarted, away or due. Empty when there is none. */
export function Restarts(props: { readonly samples: readonly ServersSample[]; readonly keptMs: number }): ReactNode {
  const restarts = readRestarts(props.samples, props.keptMs);
  if (restarts === null) return null;
  const { restarts: texts } = TEXTS.servers;
  const done = restarts.filter(({ state }) => state === 'restarted').length;
  return (
    <section>
      <h2>{texts.title}</h2>
      <p className="dim" role="status">
        {done === restarts.length ? texts.all(done) : texts.some(done, restarts.length)}
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached with the keyboard. */}
      <section aria-label={texts.title} className="table-scroll" tabIndex={0}>
        <table className="table card-table">
          <thead>
            <tr>
              <th scope="col">{TEXTS.servers.columns.server}</th>
              <th scope="col">{texts.state}</th>
              <th scope="col">{texts.since}</th>
              <th scope="col">{texts.before}</th>
              <th scope="col">{texts.now}</th>
            </tr>
          </thead>
          <tbody>
            {restarts.map(({ name, state, startedMs, versionBefore, version }) => (
              <tr key={name}>
                <th className="mono" scope="row">
                  {name}
                </th>
                <td>
                  <span className={state === 'away' ? 'role away' : state === 'due' ? 'role' : 'role leader'}>
                    {texts.states[state]}
                  </span>
                </td>
                <td>{startedMs === null ? TEXTS.servers.unknown : time(startedMs)}</td>
                <td className="mono">{shortVersion(versionBefore)}</td>
                <td className="mono">{shortVersion(version)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </section>
  );
}

/** Without the hash of the commit. */
export function shortVersion(version: string | null): string {
  return version?.replace(/-[0-9a-f]{40}$/, '') ?? '–';
}
