import { type ReactNode, useEffect, useState } from 'react';
import { TEXTS } from '../texts.ts';
import { CodeView } from './code-view.tsx';

/** Decodes a message by a schema that the user enters. It is kept in this browser. */
export function ProtobufView({ bytes }: { readonly bytes: Uint8Array }): ReactNode {
  const [schema, setSchema] = useState(() => localStorage.getItem('meerkat-proto') ?? EXAMPLE);
  const [message, setMessage] = useState(() => localStorage.getItem('meerkat-proto-message') ?? 'Example');
  const [shown, setShown] = useState<{ readonly text: string; readonly fault: string | null }>({
    text: '',
    fault: null,
  });
  useEffect(() => {
    let isOver = false;
    localStorage.setItem('meerkat-proto', schema);
    localStorage.setItem('meerkat-proto-message', message);
    const report = (text: string, fault: string | null): void => {
      if (!isOver) setShown({ text, fault });
    };
    import('./protobuf.ts')
      .then(({ decodeMessage }) => report(decodeMessage(schema, message, bytes), null))
      .catch((error: Error) => report('', error.message));
    return () => {
      isOver = true;
    };
  }, [schema, message, bytes]);
  return (
    <div className="protobuf">
      <div className="fields">
        <label>
          {TEXTS.znode.schemaLabel}
          <textarea onChange={({ target }) => setSchema(target.value)} rows={5} spellCheck={false} value={schema} />
        </label>
        <label>
          {TEXTS.znode.messageLabel}
          <input onChange={({ target }) => setMessage(target.value)} spellCheck={false} value={message} />
        </label>
      </div>
      {shown.fault === null ? (
        <CodeView label={TEXTS.znode.formats.protobuf} language="json" text={shown.text} />
      ) : (
        <p className="note bad">{shown.fault}</p>
      )}
    </div>
  );
}

const EXAMPLE = 'syntax = "proto3";\nmessage Example { string name = 1; int64 id = 2; }';
