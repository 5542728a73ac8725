import type { ReactNode } from 'react';
import type { AclEntry, QuotaInfo, StatInfo, ZnodeInfo } from '../../api/messages.ts';
import { age, count, size, time } from '../figures.ts';
import { TEXTS } from '../texts.ts';

/** The metadata of a znode. */
export function StatTable({ stat, nowMs }: { readonly stat: StatInfo; readonly nowMs: number }): ReactNode {
  const rows: readonly (readonly [keyof typeof TEXTS.stat, ReactNode])[] = [
    ['ctime', <When key="c" ms={stat.ctime} nowMs={nowMs} />],
    ['mtime', <When key="m" ms={stat.mtime} nowMs={nowMs} />],
    ['dataLength', `${size(stat.dataLength)}${stat.dataLength >= 1024 ? ` (${count(stat.dataLength)} B)` : ''}`],
    ['numChildren', count(stat.numChildren)],
    ['version', stat.version],
    ['cversion', stat.cversion],
    ['aversion', stat.aversion],
    ['ephemeralOwner', stat.ephemeralOwner === '0x0' ? TEXTS.stat.persistent : stat.ephemeralOwner],
    ['czxid', stat.czxid],
    ['mzxid', stat.mzxid],
    ['pzxid', stat.pzxid],
  ];
  return (
    <dl className="stat">
      {rows.map(([key, value]) => (
        <div key={key}>
          <dt>{TEXTS.stat[key]}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function When({ ms, nowMs }: { readonly ms: number; readonly nowMs: number }): ReactNode {
  return (
    <time dateTime={new Date(ms).toISOString()} title={new Date(ms).toISOString()}>
      {time(ms)} <span className="dim">({age(nowMs - ms)})</span>
    </time>
  );
}

/** The permissions of a znode as text, and those of the current session. */
export function AccessView({ znode }: { readonly znode: ZnodeInfo }): ReactNode {
  const { acl, identities } = znode;
  if (acl === null) return <p className="quiet">{TEXTS.acl.refused}</p>;
  return (
    <>
      <table>
        <thead>
          <tr>
            <th scope="col">{TEXTS.acl.who}</th>
            <th scope="col">{TEXTS.acl.may}</th>
          </tr>
        </thead>
        <tbody>
          {acl.map((entry) => (
            <tr key={`${entry.scheme}:${entry.id}:${entry.perms}`}>
              <td>
                {describeWho(entry)}
                <div className="dim mono wrap">{`${entry.scheme}:${entry.id}`}</div>
              </td>
              <td>{describePerms(entry.perms)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p>
        {identities === null
          ? TEXTS.acl.unknown
          : `${TEXTS.acl.knownAs(identities.map(({ scheme, id }) => `${scheme}:${id}`).join(', '))} ${TEXTS.acl.you(describePerms(ourPerms(acl, identities)))}`}
      </p>
      <p className="dim">{TEXTS.acl.deleteHint}</p>
      <QuotaView quota={znode.quota} />
    </>
  );
}

function QuotaView({ quota }: { readonly quota: QuotaInfo | null }): ReactNode {
  const { quota: texts } = TEXTS;
  return (
    <section>
      <h3>{texts.title}</h3>
      {quota === null ? (
        <p className="dim">{texts.none}</p>
      ) : (
        <>
          <p>{texts.at(quota.path)}</p>
          <Meter hard={quota.countHardMax} label={texts.count} show={count} soft={quota.countMax} used={quota.count} />
          <Meter hard={quota.bytesHardMax} label={texts.bytes} show={size} soft={quota.bytesMax} used={quota.bytes} />
          <p className="dim">{texts.explanation}</p>
        </>
      )}
    </section>
  );
}

/** The usage, relative to the limit that is reached first. */
function Meter(props: {
  readonly label: string;
  readonly used: number;
  readonly soft: number;
  readonly hard: number;
  show(n: number): string;
}): ReactNode {
  const { label, used, soft, hard, show } = props;
  const { quota: texts } = TEXTS;
  const limits = [soft, hard].filter((limit) => limit >= 0);
  const max = Math.min(...limits);
  const isOver = limits.length > 0 && used > max;
  return (
    <div className="meter">
      <span>{label}</span>
      {limits.length > 0 && <meter aria-label={label} high={max * 0.9} max={max} value={used} />}
      <span className={isOver ? 'mono bad' : 'mono'}>
        {`${show(used)} · ${texts.soft(soft < 0 ? null : show(soft))} · ${texts.hard(hard < 0 ? null : show(hard))}`}
        {isOver && ` · ${hard >= 0 && used > hard ? texts.overHard : texts.overSoft}`}
      </span>
    </div>
  );
}

export function describeWho({ scheme, id }: AclEntry): string {
  if (scheme === 'world') return TEXTS.acl.anyone;
  return TEXTS.acl.schemes[scheme]?.(id) ?? TEXTS.acl.other(scheme, id);
}

export function describePerms(perms: string): string {
  if (perms.length === 5) return TEXTS.acl.all;
  if (perms === '') return TEXTS.acl.nothing;
  return [...perms].map((letter) => TEXTS.acl.perms[letter] ?? letter).join(', ');
}

/**
 * The permissions that the entries grant to these identities. Networks of `ip` are left to the server: only single
 * addresses are compared.
 */
export function ourPerms(
  acl: readonly AclEntry[],
  identities: readonly { readonly scheme: string; readonly id: string }[],
): string {
  const ours = new Set<string>();
  const isSuper = identities.some(({ scheme }) => scheme === 'super');
  for (const { scheme, id, perms } of acl) {
    const user = id.split(':')[0] ?? '';
    const matches =
      isSuper ||
      scheme === 'world' ||
      identities.some((one) => one.scheme === scheme && (one.id === id || (scheme === 'digest' && one.id === user)));
    if (matches) for (const letter of perms) ours.add(letter);
  }
  return isSuper ? 'cdrwa' : [...'cdrwa'].filter((letter) => ours.has(letter)).join('');
}
