import type { ReactNode } from 'react';
import type { Failure } from '../../api/messages.ts';
import { TEXTS } from '../texts.ts';

/** An error and what can be done: shown instead of the content. */
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

/** A short form, inside other content. */
export function FailureNote({ failure }: { readonly failure: Failure }): ReactNode {
  const known = TEXTS.errors[failure.code];
  return (
    <div className="note bad" role="alert">
      <strong>{known?.title ?? TEXTS.unknownError}.</strong> {known?.hint}{' '}
      <span className="reason">{failure.message}</span>
    </div>
  );
}
