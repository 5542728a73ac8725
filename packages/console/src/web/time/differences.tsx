import { type ReactNode, useState } from 'react';
import type { PastDifference, PastZnode } from '../../api/past-messages.ts';
import { ask, clusterUrl } from '../api.ts';
import { FailureNote } from '../parts/failure-view.tsx';
import { useResource, useSession } from '../session.ts';
import { TEXTS } from '../texts.ts';
import { CodeView } from '../znode/code-view.tsx';
import { asText, toBytes } from '../znode/unpack.ts';

/** The changes of a subtree, and of one of its values. */
export function Differences({ difference }: { readonly difference: PastDifference }): ReactNode {
  const { from, to, changes, compared, isCut, withheld } = difference;
  const { time: texts } = TEXTS;
  const [chosen, setChosen] = useState<string | null>(null);
  const path = changes.some((change) => change.path === chosen) ? chosen : null;
  return (
    <>
      <p className="dim" role="status">
        {texts.between(from.zxid, to.zxid)} {texts.compared(compared, changes.length)} {isCut && texts.cut}{' '}
        {withheld > 0 && texts.withheldSome(withheld)}
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached with the keyboard. */}
      <section aria-label={texts.differences} className="table-scroll differences" tabIndex={0}>
        <table className="table card-table">
          <thead>
            <tr>
              <th scope="col">{texts.path}</th>
              <th scope="col">{texts.change}</th>
            </tr>
          </thead>
          <tbody>
            {changes.map((change) => (
              <tr key={change.path}>
                <td>
                  <button
                    aria-pressed={change.path === path}
                    className="ghost mono"
                    onClick={() => setChosen(change.path)}
                    type="button"
                  >
                    {change.path}
                  </button>
                </td>
                <td>{texts.changes[change.change]}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {path !== null && <ValueDifference from={from.zxid} path={path} to={to.zxid} />}
    </>
  );
}

function ValueDifference(props: { readonly path: string; readonly from: string; readonly to: string }): ReactNode {
  const { path, from, to } = props;
  const { cluster } = useSession();
  const { value, failure } = useResource(`${path} ${from} ${to}`, async (signal) => {
    const [before, after] = await Promise.all(
      [from, to].map((at) => ask<PastZnode>(clusterUrl(cluster.name, 'past/znode', { at, path }), undefined, signal)),
    );
    return { path, before, after };
  });
  if (failure !== null) return <FailureNote failure={failure} />;
  if (value === null || value.path !== path) return <p className="quiet">{TEXTS.loading}</p>;
  if (value.before?.isWithheld === true || value.after?.isWithheld === true) {
    return <p className="quiet">{TEXTS.time.withheld}</p>;
  }
  const [original, text] = [shown(value.before), shown(value.after)];
  return (
    <CodeView
      key={`${path} ${from} ${to}`}
      label={TEXTS.history.label}
      language="text"
      original={original}
      text={text}
    />
  );
}

function shown(znode: PastZnode | undefined): string {
  if (znode?.data === undefined || znode.data === null) return '';
  const bytes = toBytes(znode.data);
  return asText(bytes) ?? TEXTS.history.binary(bytes.length);
}
