import { useVirtualizer } from '@tanstack/react-virtual';
import { type ReactNode, useRef } from 'react';
import { TEXTS } from '../texts.ts';

const ROW_PX = 20;

/** Sixteen bytes per line, in hexadecimal and as characters. */
export function HexView({ bytes }: { readonly bytes: Uint8Array }): ReactNode {
  const scroller = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: Math.ceil(bytes.length / 16),
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 20,
  });
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached with the keyboard.
    <section aria-label={TEXTS.znode.formats.hex} className="hex" ref={scroller} tabIndex={0}>
      <div style={{ height: rows.getTotalSize(), position: 'relative' }}>
        {rows.getVirtualItems().map(({ index, start }) => (
          <div className="hex-row" key={index} style={{ transform: `translateY(${start}px)` }}>
            {hexLine(bytes, index * 16)}
          </div>
        ))}
      </div>
    </section>
  );
}

export function hexLine(bytes: Uint8Array, from: number): string {
  const part = [...bytes.subarray(from, from + 16)];
  const hex = part.map((byte, i) => `${i === 8 ? ' ' : ''}${byte.toString(16).padStart(2, '0')}`).join(' ');
  const letters = part.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '·')).join('');
  return `${from.toString(16).padStart(8, '0')}  ${hex.padEnd(48)}  ${letters}`;
}
