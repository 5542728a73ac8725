import type { EditorView } from '@codemirror/view';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { TEXTS } from '../texts.ts';

/** A text with line numbers and syntax colours, read-only or editable. */
export function CodeView(props: {
  readonly text: string;
  readonly language: 'json' | 'xml' | 'text';
  readonly label: string;
  readonly isEditable?: boolean;
  readonly original?: string;
  onChange?(text: string): void;
}): ReactNode {
  const { text, language, label, isEditable = false, original } = props;
  const place = useRef<HTMLDivElement>(null);
  const editor = useRef<EditorView | null>(null);
  const onChange = useRef(props.onChange);
  onChange.current = props.onChange;
  const latest = useRef(text);
  latest.current = text;
  const [isReady, setReady] = useState(false);
  const [reason, setReason] = useState<string | null>(null);
  useEffect(() => {
    let isOver = false;
    const begin = ({ makeEditor }: typeof import('./editor-view.ts')): void => {
      if (isOver || place.current === null) return;
      editor.current = makeEditor({
        parent: place.current,
        text: latest.current,
        language,
        label,
        isEditable,
        ...(original === undefined ? {} : { original }),
        onChange: (changed) => onChange.current?.(changed),
      });
      setReady(true);
      if (isEditable) editor.current.focus();
    };
    import('./editor-view.ts').then(begin).catch((error: unknown) => setReason((error as Error).message));
    return () => {
      isOver = true;
      editor.current?.destroy();
      editor.current = null;
    };
  }, [language, label, isEditable, original]);
  useEffect(() => {
    const { current } = editor;
    // While it is edited the editor has the newest text: `text` may lag some keystrokes behind.
    if (!isReady || isEditable || current === null) return;
    const shown = current.state.doc.toString();
    if (shown !== text) current.dispatch({ changes: { from: 0, to: shown.length, insert: text } });
  }, [text, isReady, isEditable]);
  if (reason !== null) return <EditorAway reason={reason} />;
  return (
    <div className="code" ref={place}>
      {!isReady && <p className="quiet">{TEXTS.loading}</p>}
    </div>
  );
}

/** A browser does not reload a script that failed to load: the page has to be reloaded. */
function EditorAway({ reason }: { readonly reason: string }): ReactNode {
  return (
    <div className="failure" role="alert">
      <h2>{TEXTS.editorAway}</h2>
      <p>{TEXTS.editorAwayHint}</p>
      <p className="reason">{reason}</p>
      <button onClick={() => location.reload()} type="button">
        {TEXTS.reload}
      </button>
    </div>
  );
}
