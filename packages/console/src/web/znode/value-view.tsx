import { type ReactNode, useEffect, useMemo, useState } from 'react';
import type { ZnodeInfo } from '../../api/messages.ts';
import { TEXTS } from '../texts.ts';
import { CodeView } from './code-view.tsx';
import { HexView } from './hex-view.tsx';
import { ProtobufView } from './protobuf-view.tsx';
import { asText, prettyJson, toBytes, type Unpacked, unpack } from './unpack.ts';

type Choice = 'auto' | 'text' | 'json' | 'xml' | 'hex' | 'protobuf' | 'snappy';

/** The data of a znode, decompressed and shown in the detected or the selected format. */
export function ValueView({ znode }: { readonly znode: Pick<ZnodeInfo, 'path' | 'data'> }): ReactNode {
  const bytes = useMemo(() => (znode.data === null ? null : toBytes(znode.data)), [znode.data]);
  const [choice, setChoice] = useState<Choice>('auto');
  const [unpacked, setUnpacked] = useState<Unpacked | null>(null);
  useEffect(() => {
    let isOver = false;
    if (bytes === null) setUnpacked(null);
    else void unpack(bytes, choice === 'snappy').then((found) => isOver || setUnpacked(found));
    return () => {
      isOver = true;
    };
  }, [bytes, choice]);
  // Resets the choice for another znode.
  useEffect(() => setChoice('auto'), [znode.path]);
  if (bytes === null) return <p className="quiet">{TEXTS.znode.emptyValue}</p>;
  if (bytes.length === 0) return <p className="quiet">{TEXTS.znode.zeroValue}</p>;
  if (unpacked === null) return <p className="quiet">{TEXTS.loading}</p>;
  return (
    <div className="value">
      <div className="value-bar">
        <label>
          <span>{TEXTS.znode.format}</span>
          <select onChange={({ target }) => setChoice(target.value as Choice)} value={choice}>
            <option value="auto">{TEXTS.znode.auto(TEXTS.znode.formats[unpacked.format])}</option>
            {(['text', 'json', 'xml', 'hex', 'protobuf', 'snappy'] as const).map((format) => (
              <option key={format} value={format}>
                {TEXTS.znode.formats[format]}
              </option>
            ))}
          </select>
        </label>
        {unpacked.steps.length > 0 && <span className="chip">{TEXTS.znode.packed(unpacked.steps.join(' → '))}</span>}
      </div>
      {unpacked.damage !== null && (
        <p className="note bad">{TEXTS.znode.damaged(unpacked.damage.kind, unpacked.damage.reason)}</p>
      )}
      <Shown choice={choice} label={`${TEXTS.znode.value}: ${znode.path}`} unpacked={unpacked} />
    </div>
  );
}

function Shown({
  choice,
  label,
  unpacked,
}: {
  readonly choice: Choice;
  readonly label: string;
  readonly unpacked: Unpacked;
}): ReactNode {
  const { bytes, format, text } = unpacked;
  const as = choice === 'auto' || choice === 'snappy' ? format : choice;
  switch (as) {
    case 'hex':
      return <HexView bytes={bytes} />;
    case 'protobuf':
      return <ProtobufView bytes={bytes} />;
    case 'json':
      return <CodeView label={label} language="json" text={prettyJson(asText(bytes) ?? lossyText(bytes))} />;
    case 'xml':
      return <CodeView label={label} language="xml" text={asText(bytes) ?? lossyText(bytes)} />;
    case 'java':
      return <CodeView label={label} language="text" text={text} />;
    case 'text':
      return <CodeView label={label} language="text" text={asText(bytes) ?? lossyText(bytes)} />;
  }
}

function lossyText(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
