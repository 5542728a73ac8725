import type { EditorView } from '@codemirror/view';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { TEXTS } from '../texts.ts';

/** A text with line numbers and colours, to be read or changed. */
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
  useEffect(() => {
    let isOver = false;
    void import('./editor-view.ts').then(({ makeEditor }) => {
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
    });
    return () => {
      isOver = true;
      editor.current?.destroy();
      editor.current = null;
    };
  }, [language, label, isEditable, original]);
  useEffect(() => {
    const { current } = editor;
    // While it is edited the editor has the newest text: `text` may be what it was some keys ago.
    if (!isReady || isEditable || current === null) return;
    const shown = current.state.doc.toString();
    if (shown !== text) current.dispatch({ changes: { from: 0, to: shown.length, insert: text } });
  }, [text, isReady, isEditable]);
  return (
    <div className="code" ref={place}>
      {!isReady && <p className="quiet">{TEXTS.loading}</p>}
    </div>
  );
}
