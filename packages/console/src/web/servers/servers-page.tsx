import { type ReactNode, useState } from 'react';
import type { ServerSample, ServersSample } from '../../api/messages.ts';
import { count, time } from '../figures.ts';
import { Members } from '../members/members.tsx';
import { useSession, useSubscription } from '../session.ts';
import { TEXTS } from '../texts.ts';
import { Configuration } from './configuration.tsx';
import { Plot } from './plot.tsx';
import { Restarts, shortVersion } from './restarts-view.tsx';
import { RoleLines } from './role-lines.tsx';

const KEPT = 300;
/** The sampling interval of the backend. */
const EVERY_MS = 2000;

/** The servers: their current state, the last ten minutes, and their configuration. */
export default function ServersPage(): ReactNode {
  const { cluster } = useSession();
  const { servers: texts } = TEXTS;
  const [samples, setSamples] = useState<readonly ServersSample[]>([]);
  useSubscription({ kind: 'servers', cluster: cluster.name }, (message) => {
    if (message.kind === 'servers') {
      setSamples((all) => {
        const last = all.at(-1)?.atMs ?? 0;
        return [...all, ...message.samples.filter(({ atMs }) => atMs > last)].slice(-KEPT);
      });
    }
  });
  const now = samples.at(-1);
  if (now === undefined) return <p className="quiet">{TEXTS.loading}</p>;
  const names = now.servers.map(({ name }) => name);
  const hasLeader = now.servers.some(({ role }) => role === 'leader' || role === 'standalone');
  const refused = [...new Set(now.servers.flatMap((server) => server.refused))];
  return (
    <div className="column scroll padded">
      <div className="bar flush">
        <h1>{texts.title}</h1>
        <span className="dim">{time(now.atMs)}</span>
      </div>
      {!hasLeader && (
        <p className="note bad" role="alert">
          {texts.noLeader}
        </p>
      )}
      {refused.length > 0 && <p className="note warn">{texts.refused(refused.join(', '))}</p>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached with the keyboard. */}
      <section aria-label={texts.title} className="table-scroll" tabIndex={0}>
        <table className="table card-table">
          <thead>
            <tr>
              <th scope="col">{texts.columns.server}</th>
              <th scope="col">{texts.columns.role}</th>
              <th scope="col">{texts.columns.zxid}</th>
              <th className="number" scope="col">
                {texts.columns.lag}
              </th>
              <th className="number" scope="col">
                {texts.columns.latency}
              </th>
              <th className="number" scope="col">
                {texts.columns.fsync}
              </th>
              <th className="number" scope="col">
                {texts.columns.connections}
              </th>
              <th className="number" scope="col">
                {texts.columns.outstanding}
              </th>
              <th className="number" scope="col">
                {texts.columns.znodes}
              </th>
              <th scope="col">{texts.columns.version}</th>
              <th scope="col">{texts.columns.certificate}</th>
            </tr>
          </thead>
          <tbody>
            {now.servers.map((server) => (
              <Row key={server.name} server={server} />
            ))}
          </tbody>
        </table>
      </section>
      <div className="plots">
        <Plot
          label={texts.requests}
          names={names}
          samples={samples}
          value={(server, before, seconds) =>
            before === undefined ? null : Math.max(0, server.received - before.received) / seconds
          }
        />
        <Plot label={texts.latency} names={names} samples={samples} value={(server) => server.latencyAverageMs} />
        <Plot label={texts.lag} names={names} samples={samples} value={(server) => server.lag} />
      </div>
      <Restarts keptMs={KEPT * EVERY_MS} samples={samples} />
      <RoleLines names={names} samples={samples} />
      <Members signs={now.servers.map(({ role }) => role ?? '').join()} />
      <Configuration servers={now.servers} />
    </div>
  );
}

function Row({ server }: { readonly server: ServerSample }): ReactNode {
  const { servers: texts } = TEXTS;
  const { metrics, certificate } = server;
  if (server.problem !== null) {
    return (
      <tr>
        <td className="mono">{server.name}</td>
        <td>
          <span className="role away">{server.role ?? texts.away}</span>
        </td>
        <td className="bad wrap" colSpan={9}>
          {server.problem}
        </td>
      </tr>
    );
  }
  const fsync = metrics['zk_avg_fsynctime'];
  const days = certificate === null ? null : Math.floor((certificate.validToMs - Date.now()) / 86_400_000);
  return (
    <tr>
      <td className="mono">{server.name}</td>
      <td>
        <span className={`role ${server.role ?? ''}`}>{server.role}</span>
      </td>
      <td className="mono">{server.zxid}</td>
      <td className="number">{server.lag === null ? texts.unknown : count(server.lag)}</td>
      <td className="number">{`${server.latencyAverageMs} / ${server.latencyMaxMs}`}</td>
      <td className="number">
        {fsync === undefined ? texts.unknown : `${fsync} / ${metrics['zk_max_fsynctime'] ?? 0}`}
      </td>
      <td className="number">{count(server.connections)}</td>
      <td className="number">{count(server.outstanding)}</td>
      <td className="number">{count(server.znodes)}</td>
      <td className="mono">{shortVersion(server.version)}</td>
      <td
        className={days !== null && days < 30 ? 'bad' : ''}
        title={certificate === null ? '' : `${certificate.subject} · ${certificate.issuer}`}
      >
        {days === null ? texts.noTls : texts.expires(days)}
      </td>
    </tr>
  );
}
