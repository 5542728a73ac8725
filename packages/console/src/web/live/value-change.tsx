import type { ReactNode } from 'react';
import type { ChangeInfo } from '../../api/messages.ts';

const LENGTH = 160;

/** The change of a value, on one line: the common prefix and suffix are grey. */
export function ValueChange({ change }: { readonly change: ChangeInfo }): ReactNode {
  const { value, before, type } = change;
  if (type === 'deleted')
    return before === null ? <span className="delta" /> : <del className="delta mono">{oneLine(before)}</del>;
  if (value === null || value === '') return <span className="delta" />;
  if (before === null || before === value) return <span className="delta mono dim">{oneLine(value)}</span>;
  const { head, removed, added, tail } = difference(oneLine(before, 2000), oneLine(value, 2000));
  return (
    <span className="delta mono" title={value}>
      <span className="dim">{head.length > 24 ? `…${head.slice(-24)}` : head}</span>
      {removed !== '' && <del>{removed.slice(0, LENGTH)}</del>}
      {added !== '' && <ins>{added.slice(0, LENGTH)}</ins>}
      <span className="dim">{tail.slice(0, 60)}</span>
    </span>
  );
}

export function difference(
  before: string,
  after: string,
): { head: string; removed: string; added: string; tail: string } {
  const max = Math.min(before.length, after.length);
  let start = 0;
  while (start < max && before[start] === after[start]) start++;
  let end = 0;
  while (end < max - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end++;
  return {
    head: after.slice(0, start),
    removed: before.slice(start, before.length - end),
    added: after.slice(start, after.length - end),
    tail: after.slice(after.length - end),
  };
}

function oneLine(text: string, length = LENGTH): string {
  return text.replace(/\s+/g, ' ').slice(0, length);
}
