import type { ReactNode } from 'react';
import type { MemberStep } from '../../api/messages.ts';
import { TEXTS } from '../texts.ts';

/** The steps of a plan, whether the quorum survives each, and what has to be done first. */
export function PlanTable({ steps }: { readonly steps: readonly MemberStep[] }): ReactNode {
  const { steps: texts } = TEXTS.members;
  if (steps.length === 0) return <p className="dim">{TEXTS.members.planEmpty}</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached with the keyboard.
    <section aria-label={TEXTS.members.plan} className="table-scroll" tabIndex={0}>
      <table className="table card-table">
        <thead>
          <tr>
            <th scope="col">{texts.step}</th>
            <th scope="col">{texts.voters}</th>
            <th className="number" scope="col">
              {texts.quorum}
            </th>
            <th className="number" scope="col">
              {texts.up}
            </th>
            <th scope="col">{texts.survives}</th>
            <th scope="col">{texts.first}</th>
            <th scope="col">{texts.note}</th>
          </tr>
        </thead>
        <tbody>
          {steps.map(({ change, what, voters, quorum, up, survives, first, note }) => (
            <tr key={change.id}>
              <th className="wrap" scope="row">
                {what}
              </th>
              <td className="mono">{voters.join(', ')}</td>
              <td className="number">{quorum}</td>
              <td className="number">{up}</td>
              <td className={survives ? 'good' : 'bad'}>{survives ? texts.yes : texts.no}</td>
              <td className="wrap">{first}</td>
              <td className="wrap">{note}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
