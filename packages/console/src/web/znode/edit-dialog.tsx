import { type ReactNode, useEffect, useState } from 'react';
import type { Failure, ZnodeInfo } from '../../api/messages.ts';
import { ask, clusterUrl, failureOf } from '../api.ts';
import { Dialog } from '../parts/dialog.tsx';
import { useSession } from '../session.ts';
import { TEXTS } from '../texts.ts';
import { CodeView } from './code-view.tsx';
import { useChange } from './dialogs.tsx';
import { asText, jsonFault, toBase64, toBytes } from './unpack.ts';

/**
 * Edits a value: first the text, then the difference to the *current* value, then the change, conditional on that
 * version. If another user was faster, the difference shows that user's value.
 */
export function EditDialog({
  znode,
  onDone,
}: {
  readonly znode: ZnodeInfo;
  onDone(path: string | null): void;
}): ReactNode {
  const { edit: texts } = TEXTS;
  const { cluster } = useSession();
  const { path } = znode;
  const [first] = useState(znode);
  const [text, setText] = useState(() => textOf(first));
  const [base, setBase] = useState<ZnodeInfo | null>(null);
  const [readFailure, setReadFailure] = useState<Failure | null>(null);
  const { isBusy, failure, run } = useChange();
  const before = textOf(first);
  const wasJson = before.trim() !== '' && /^[[{]/.test(before.trim()) && jsonFault(before) === null;
  const fault = wasJson ? jsonFault(text) : null;
  const language = wasJson ? 'json' : /^\s*</.test(before) ? 'xml' : 'text';

  const review = async (): Promise<void> => {
    setReadFailure(null);
    try {
      setBase(await ask<ZnodeInfo>(clusterUrl(cluster.name, 'znode', { path })));
    } catch (error) {
      setReadFailure(failureOf(error));
    }
  };
  const save = async (): Promise<void> => {
    if (base === null) return;
    const body = { path, version: base.stat.version, data: toBase64(new TextEncoder().encode(text)) };
    const changed = await run('set', body, () => texts.saved(path));
    if (changed !== null) onDone(path);
  };
  const proceed = (): void => void (base === null ? review() : save());
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== 's' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      proceed();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  });
  // Another user was faster between review and save: read the current value, and show the difference to it.
  useEffect(() => {
    if (failure?.code === 'BADVERSION') void review();
  }, [failure]);

  const isConflict = base !== null && base.stat.version !== first.stat.version;
  const isSame = base !== null && textOf(base) === text;
  return (
    <Dialog
      canSubmit={base === null || !isSame}
      extra={
        base !== null && (
          <button onClick={() => setBase(null)} type="button">
            {texts.back}
          </button>
        )
      }
      failure={failure?.code === 'BADVERSION' ? null : (failure ?? readFailure)}
      isBusy={isBusy}
      isWide
      onClose={() => onDone(null)}
      onSubmit={proceed}
      submit={base === null ? texts.review : texts.save}
      title={base === null ? texts.title(path) : texts.diff}
    >
      {isConflict && (
        <p className="note warn" role="alert">
          {texts.conflict(base.stat.version)}
        </p>
      )}
      {fault !== null && <p className="note warn">{texts.badJson(fault)}</p>}
      {isSame && <p className="note">{texts.same}</p>}
      <div className="edit-area">
        {base === null ? (
          <CodeView isEditable label={texts.label(path)} language={language} onChange={setText} text={text} />
        ) : (
          <CodeView
            key={base.stat.version}
            label={texts.diff}
            language={language}
            original={textOf(base)}
            text={text}
          />
        )}
      </div>
    </Dialog>
  );
}

function textOf({ data }: ZnodeInfo): string {
  return data === null ? '' : (asText(toBytes(data)) ?? '');
}

/** Whether a value can be edited as text. */
export function isEditable({ data }: ZnodeInfo): boolean {
  return data === null || asText(toBytes(data)) !== null;
}
