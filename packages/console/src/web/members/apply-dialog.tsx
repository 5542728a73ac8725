import { type ReactNode, useEffect, useRef, useState } from 'react';
import type { Failure, MembersPlan } from '../../api/messages.ts';
import { ask, clusterUrl, failureOf } from '../api.ts';
import { Dialog } from '../parts/dialog.tsx';
import { useSession } from '../session.ts';
import { TEXTS } from '../texts.ts';

/** Interval at which a pending step is retried. */
const AGAIN_MS = 1000;

interface Progress {
  /** Completed steps. */
  readonly done: number;
  readonly isBusy: boolean;
  /** What the current step waits for. */
  readonly first: string | null;
  readonly failure: Failure | null;
}

const BEGINNING: Progress = { done: 0, isBusy: false, first: null, failure: null };

/** Asks for confirmation, and then performs one step after the other. Closing it cancels the remaining ones. */
export function ApplyDialog(props: { readonly plan: MembersPlan; onClose(done: number): void }): ReactNode {
  const { steps } = props.plan;
  const { cluster } = useSession();
  const { confirm: texts } = TEXTS.members;
  const [progress, setProgress] = useState(BEGINNING);
  const [ending] = useState(() => new AbortController());
  useEffect(() => () => ending.abort(), [ending]);
  /** Of the configuration after the last completed step. */
  const version = useRef(props.plan.version);
  const run = async (from: number): Promise<void> => {
    setProgress({ done: from, isBusy: true, first: null, failure: null });
    for (let at = from; at < steps.length && !ending.signal.aborted; ) {
      try {
        const body = { ...steps[at]?.change, version: version.current };
        const made = await ask<Pick<MembersPlan, 'version'>>(clusterUrl(cluster.name, 'members/step'), body);
        version.current = made.version;
        at++;
        setProgress({ done: at, isBusy: at < steps.length, first: null, failure: null });
      } catch (error) {
        const failure = failureOf(error);
        // `away`: the previous step has removed the leader, and another one is being elected.
        if (failure.code !== 'not-yet' && failure.code !== 'away') {
          setProgress({ done: at, isBusy: false, first: null, failure: inWords(failure) });
          return;
        }
        setProgress({ done: at, isBusy: true, first: failure.message, failure: null });
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    }
  };
  const { done, isBusy, first, failure } = progress;
  const isOver = done === steps.length;
  const hasBegun = isBusy || done > 0 || failure !== null;
  const statusOf = (at: number): string => {
    if (at < done) return texts.done;
    if (at > done || !hasBegun) return texts.waits;
    if (failure !== null) return texts.failed;
    return first === null ? texts.works : texts.waitsFor(first);
  };
  return (
    <Dialog
      failure={failure}
      isBusy={isBusy}
      isDangerous
      onClose={() => props.onClose(done)}
      onSubmit={() => void run(done)}
      title={texts.title}
      {...(isOver ? {} : { submit: hasBegun ? texts.resume : texts.submit })}
    >
      <p>{isOver ? texts.all : hasBegun ? texts.stop : texts.text}</p>
      <ol aria-live="polite" className="steps">
        {steps.map((step, at) => (
          <li key={step.change.id}>
            {step.what}
            <span className={at < done ? 'status good' : 'status'}>{statusOf(at)}</span>
          </li>
        ))}
      </ol>
    </Dialog>
  );
}

/** An explanation for this dialog: NOAUTH is not about the ACL of a znode here. */
function inWords(failure: Failure): Failure {
  return failure.code === 'NOAUTH' ? { ...failure, code: 'members-refused' } : failure;
}
