import { type FormEvent, type ReactNode, useEffect, useId, useRef } from 'react';
import type { Failure } from '../../api/messages.ts';
import { TEXTS } from '../texts.ts';
import { FailureNote } from './failure-view.tsx';
import { Icon } from './icons.tsx';

/** A modal dialog, which keeps the focus until it is closed. */
export function Dialog(props: {
  readonly title: string;
  readonly isWide?: boolean;
  readonly submit?: string;
  readonly isDangerous?: boolean;
  readonly isBusy?: boolean;
  readonly canSubmit?: boolean;
  readonly failure?: Failure | null;
  readonly extra?: ReactNode;
  readonly children: ReactNode;
  onSubmit?(): void;
  onClose(): void;
}): ReactNode {
  const { title, submit, isDangerous = false, isBusy = false, canSubmit = true, failure = null, onClose } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const element = dialog.current;
    const before = document.activeElement;
    element?.showModal();
    element?.querySelector<HTMLElement>('[data-autofocus]')?.focus();
    return () => {
      element?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  const onSubmit = (event: FormEvent): void => {
    event.preventDefault();
    if (canSubmit && !isBusy) props.onSubmit?.();
  };
  return (
    <dialog
      aria-labelledby={id}
      className={props.isWide === true ? 'dialog wide' : 'dialog'}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      ref={dialog}
    >
      <form onSubmit={onSubmit}>
        <header>
          <h2 id={id}>{title}</h2>
          <button aria-label={TEXTS.close} className="ghost" onClick={onClose} type="button">
            <Icon name="close" />
          </button>
        </header>
        <div className="dialog-body">
          {props.children}
          {failure !== null && <FailureNote failure={failure} />}
        </div>
        {submit !== undefined && (
          <footer>
            {props.extra}
            <button onClick={onClose} type="button">
              {TEXTS.cancel}
            </button>
            <button className={isDangerous ? 'danger' : 'primary'} disabled={!canSubmit || isBusy} type="submit">
              {submit}
            </button>
          </footer>
        )}
      </form>
    </dialog>
  );
}
