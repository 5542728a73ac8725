import type { ReactNode } from 'react';
import type { Failure } from '../../api/messages.ts';
import { TEXTS } from '../texts.ts';

/** What is so, and what can be done: in place of what cannot be shown. */
export function FailureView({ failure, retry }: { readonly failure: Failure; retry?(): void }): ReactNode {
  const known = TEXTS.errors[failure.code];
  return (
    <div className="failure" role="alert">
      <h2>{known?.title ?? TEXTS.unknownError}</h2>
      {known !== undefined && <p>{known.hint}</p>}
      <p className="reason">{failure.message}</p>
      {retry !== undefined && (
        <button onClick={retry} type="button">
          {TEXTS.retry}
        </button>
      )}
    </div>
  );
}

/** The same in a few lines, inside of something else. */
export function FailureNote({ failure }: { readonly failure: Failure }): ReactNode {
  const known = TEXTS.errors[failure.code];
  return (
    <div className="note bad" role="alert">
      <strong>{known?.title ?? TEXTS.unknownError}.</strong> {known?.hint}{' '}
      <span className="reason">{failure.message}</span>
    </div>
  );
}
