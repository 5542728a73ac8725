import { type ReactNode, useState } from 'react';
import type { MemberChange, MemberInfo, MembersInfo, MembersPlan } from '../../api/messages.ts';
import { ask, clusterUrl } from '../api.ts';
import { FailureNote } from '../parts/failure-view.tsx';
import { useResource, useRetry, useSession, useSubscription } from '../session.ts';
import { TEXTS } from '../texts.ts';
import { ApplyDialog } from './apply-dialog.tsx';
import { MemberDialog } from './member-dialog.tsx';
import { PlanTable } from './plan-table.tsx';

/**
 * The members of the ensemble by its configuration; changes are collected, planned and then applied.
 *
 * @param signs changes when servers have changed their roles, so that members are read again
 */
export function Members({ signs }: { readonly signs: string }): ReactNode {
  const { cluster, isWritable } = useSession();
  const { members: texts } = TEXTS;
  const [zxid, setZxid] = useState('');
  const [changes, setChanges] = useState<readonly MemberChange[]>([]);
  const [edited, setEdited] = useState<MemberInfo | 'new' | null>(null);
  const [applied, setApplied] = useState<MembersPlan | null>(null);
  useSubscription({ kind: 'znode', cluster: cluster.name, path: '/zookeeper/config' }, (message) => {
    if (message.kind === 'znode') setZxid(message.znode?.stat.mzxid ?? '');
  });
  const read = useResource(`${cluster.name} ${zxid} ${signs}`, (signal) =>
    ask<MembersInfo>(clusterUrl(cluster.name, 'members'), undefined, signal),
  );
  const planned = useResource(changes.length === 0 ? null : `${JSON.stringify(changes)} ${zxid} ${signs}`, (signal) =>
    ask<MembersPlan>(clusterUrl(cluster.name, 'members/plan'), { changes }, signal),
  );
  useRetry(read);
  useRetry(planned);
  const put = (change: MemberChange): void =>
    setChanges((all) => [...all.filter(({ id }) => id !== change.id), change]);
  if (read.value === null) {
    if (read.failure === null) return null;
    const { code } = read.failure;
    const known = code === 'NOAUTH' ? texts.none : code === 'NONODE' ? texts.old : null;
    return (
      <Section>{known === null ? <FailureNote failure={read.failure} /> : <p className="dim">{known}</p>}</Section>
    );
  }
  const { members, version, weightLine } = read.value;
  if (members.length === 0) {
    return (
      <Section>
        <p className="dim">{texts.alone}</p>
      </Section>
    );
  }
  const plan = changes.length === 0 ? null : planned.value;
  return (
    <Section>
      {version !== null && <p className="dim mono">{texts.version(version)}</p>}
      <MembersTable edit={setEdited} members={members} put={put} canChange={weightLine === null} />
      {weightLine === null ? (
        <div className="bar flush">
          <button onClick={() => setEdited('new')} type="button">
            {texts.add}
          </button>
        </div>
      ) : (
        <p className="note warn">{texts.weights(weightLine)}</p>
      )}
      {changes.length > 0 && planned.failure !== null && <FailureNote failure={planned.failure} />}
      {plan !== null && planned.failure === null && (
        <>
          <h3>{texts.plan}</h3>
          {!isWritable && <p className="dim">{texts.readOnly}</p>}
          <PlanTable steps={plan.steps} />
        </>
      )}
      {changes.length > 0 && (
        <div className="bar flush">
          <button onClick={() => setChanges([])} type="button">
            {texts.drop}
          </button>
          {isWritable && plan !== null && planned.failure === null && (
            <button
              className="danger"
              // There would be no voter: servers refuse that.
              disabled={plan.steps.some(({ voters }) => voters.length === 0)}
              onClick={() => setApplied(plan)}
              type="button"
            >
              {texts.apply}
            </button>
          )}
        </div>
      )}
      {edited !== null && (
        <MemberDialog
          member={edited === 'new' ? null : edited}
          onDone={(change) => {
            if (change !== null) put(change);
            setEdited(null);
          }}
        />
      )}
      {applied !== null && (
        <ApplyDialog
          onClose={(done) => {
            const made = new Set(applied.steps.slice(0, done).map(({ change }) => change.id));
            setApplied(null);
            setChanges((all) => all.filter(({ id }) => !made.has(id)));
          }}
          plan={applied}
        />
      )}
    </Section>
  );
}

function Section({ children }: { readonly children: ReactNode }): ReactNode {
  return (
    <section className="members">
      <h2>{TEXTS.members.title}</h2>
      {children}
    </section>
  );
}

function MembersTable(props: {
  readonly members: readonly MemberInfo[];
  readonly canChange: boolean;
  edit(member: MemberInfo): void;
  put(change: MemberChange): void;
}): ReactNode {
  const { members, canChange, edit, put } = props;
  const { members: texts } = TEXTS;
  const { columns } = texts;
  const hasWeights = members.some(({ weight, group }) => weight !== null || group !== null);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached with the keyboard.
    <section aria-label={texts.title} className="table-scroll" tabIndex={0}>
      <table className="table card-table">
        <thead>
          <tr>
            <th scope="col">{columns.id}</th>
            <th scope="col">{columns.role}</th>
            <th scope="col">{columns.now}</th>
            <th scope="col">{columns.line}</th>
            <th scope="col">{columns.client}</th>
            {hasWeights && <th scope="col">{columns.group}</th>}
            {hasWeights && <th scope="col">{columns.weight}</th>}
            {canChange && <th scope="col">{columns.change}</th>}
          </tr>
        </thead>
        <tbody>
          {members.map((member) => (
            <tr key={member.id}>
              <th className="mono" scope="row">
                {member.id}
              </th>
              <td>{member.isVoter ? texts.voter : texts.observer}</td>
              <td title={member.problem ?? undefined}>
                <span className={`role ${member.role ?? 'away'}`}>{member.role ?? texts.silent}</span>
              </td>
              <td className="mono wrap">{member.line.split(';')[0]}</td>
              <td className="mono">{member.client ?? TEXTS.servers.unknown}</td>
              {hasWeights && <td className="mono">{member.group}</td>}
              {hasWeights && <td className="mono">{member.weight ?? '1'}</td>}
              {canChange && (
                <td>
                  <button aria-label={texts.editOf(member.id)} onClick={() => edit(member)} type="button">
                    {texts.edit}
                  </button>{' '}
                  <button
                    aria-label={texts.removeOf(member.id)}
                    onClick={() => put({ id: member.id, line: null })}
                    type="button"
                  >
                    {texts.remove}
                  </button>
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
