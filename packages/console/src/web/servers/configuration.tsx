import { type ReactNode, useState } from 'react';
import type { ServerSample } from '../../api/messages.ts';
import { TEXTS } from '../texts.ts';

/** Settings that legitimately differ between servers. */
const OWN: ReadonlySet<string> = new Set([
  'serverId',
  'clientPort',
  'secureClientPort',
  'dataDir',
  'dataLogDir',
  'dataDirSize',
  'dataLogSize',
  'electionPort',
  'quorumPort',
  'peerType',
  'clientPortAddress',
]);

/** The settings of all servers side by side. */
export function Configuration({ servers }: { readonly servers: readonly ServerSample[] }): ReactNode {
  const { servers: texts } = TEXTS;
  const [isShort, setShort] = useState(false);
  const configured = servers.filter(({ config }) => Object.keys(config).length > 0);
  if (configured.length === 0) return null;
  const keys = [...new Set(configured.flatMap(({ config }) => Object.keys(config)))]
    .filter((key) => !key.startsWith('server.'))
    .sort();
  const differs = (key: string): boolean =>
    !OWN.has(key) && new Set(configured.map(({ config }) => config[key] ?? '')).size > 1;
  const different = keys.filter(differs);
  const shown = isShort ? different : keys;
  return (
    <section>
      <h2>{texts.config}</h2>
      <p className={different.length === 0 ? 'dim' : 'note warn'}>
        {different.length === 0 ? texts.configSame : texts.configDiffers(different.length)}
      </p>
      <label className="inline">
        <input checked={isShort} onChange={({ target }) => setShort(target.checked)} type="checkbox" />{' '}
        {texts.onlyDifferences}
      </label>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached with the keyboard. */}
      <section aria-label={texts.config} className="table-scroll" tabIndex={0}>
        <table className="table card-table">
          <thead>
            <tr>
              <th scope="col">{texts.setting}</th>
              {configured.map(({ name }) => (
                <th className="mono" key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((key) => (
              <tr className={differs(key) ? 'differs' : ''} key={key}>
                <th className="mono" scope="row">
                  {key} {differs(key) && <span className="chip">{texts.differs}</span>}
                </th>
                {configured.map(({ name, config }) => (
                  <td className="mono wrap" key={name}>
                    {config[key] ?? '–'}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </section>
  );
}
