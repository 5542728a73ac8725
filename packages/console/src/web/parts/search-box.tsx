import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from 'react';
import type { Failure, SearchResult } from '../../api/messages.ts';
import { ask, clusterUrl, failureOf } from '../api.ts';
import { go } from '../route.ts';
import { useSession } from '../session.ts';
import { TEXTS } from '../texts.ts';
import { FailureNote } from './failure-view.tsx';
import { Icon } from './icons.tsx';

/** Searches all paths while the user types. A complete path is opened. */
export function SearchBox(): ReactNode {
  const { cluster } = useSession();
  const [text, setText] = useState('');
  const [result, setResult] = useState<SearchResult | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [isOpen, setOpen] = useState(false);
  const [at, setAt] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const isComplete = result?.index.isComplete ?? true;
  useEffect(() => {
    if (text.trim() === '') {
      setResult(null);
      return undefined;
    }
    const controller = new AbortController();
    const search = (): void => {
      ask<SearchResult>(clusterUrl(cluster.name, 'search', { text: text.trim() }), undefined, controller.signal).then(
        (found) => {
          setResult(found);
          setFailure(null);
        },
        (error: unknown) => controller.signal.aborted || setFailure(failureOf(error)),
      );
    };
    const first = setTimeout(search, 60);
    // While the tree is still being read, more matches appear.
    const again = setInterval(() => !isComplete && search(), 500);
    return () => {
      controller.abort();
      clearTimeout(first);
      clearInterval(again);
    };
  }, [text, cluster.name, isComplete]);
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  });
  const paths = result?.paths ?? [];
  const choose = (path: string): void => {
    go({ cluster: cluster.name, page: 'tree', path });
    setOpen(false);
    input.current?.blur();
    document.getElementById('tree')?.focus();
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === 'ArrowDown') setAt(Math.min(at + 1, paths.length - 1));
    else if (event.key === 'ArrowUp') setAt(Math.max(at - 1, 0));
    else if (event.key === 'Enter') {
      const chosen = paths[at] ?? (text.startsWith('/') ? text.trim() : null);
      if (chosen !== null) choose(chosen);
    } else if (event.key === 'Escape') {
      setOpen(false);
      document.getElementById('tree')?.focus();
    } else return;
    event.preventDefault();
  };
  const isShown = isOpen && text.trim() !== '';
  return (
    <search className="search">
      <Icon name="search" />
      <input
        aria-activedescendant={isShown && paths.length > 0 ? `hit-${at}` : undefined}
        aria-autocomplete="list"
        aria-controls="hits"
        aria-expanded={isShown}
        aria-label={TEXTS.search.label}
        autoComplete="off"
        id="search"
        onBlur={() => setTimeout(() => setOpen(false), 150)}
        onChange={({ target }) => {
          setText(target.value);
          setAt(0);
          setOpen(true);
        }}
        onFocus={() => setOpen(true)}
        onKeyDown={onKey}
        placeholder={TEXTS.search.placeholder}
        ref={input}
        role="combobox"
        spellCheck={false}
        value={text}
      />
      <kbd>/</kbd>
      {isShown && (
        <div className="hits">
          <div aria-label={TEXTS.search.label} id="hits" ref={list} role="listbox">
            {paths.map((path, i) => (
              // biome-ignore lint/a11y/useKeyWithClickEvents: the input takes the keys.
              <div
                aria-selected={i === at}
                className="hit mono"
                id={`hit-${i}`}
                key={path}
                onClick={() => choose(path)}
                role="option"
                tabIndex={-1}
              >
                <Marked path={path} text={text.trim()} />
              </div>
            ))}
          </div>
          {failure !== null && <FailureNote failure={failure} />}
          {result !== null && (
            <p className="hits-state" role="status">
              {result.found === 0 ? TEXTS.search.none(text.trim()) : TEXTS.search.found(result.found, paths.length)}
              {!result.index.isComplete && ` · ${TEXTS.search.walking(result.index.znodes)}`}
              {result.index.isComplete && !result.index.isLive && ` · ${TEXTS.search.old}`}
              {result.index.missing !== null && ` · ${result.index.missing}`}
            </p>
          )}
        </div>
      )}
    </search>
  );
}

function Marked({ path, text }: { readonly path: string; readonly text: string }): ReactNode {
  const at = path.toLowerCase().lastIndexOf(text.toLowerCase());
  if (at < 0) return path;
  return (
    <>
      {path.slice(0, at)}
      <mark>{path.slice(at, at + text.length)}</mark>
      {path.slice(at + text.length)}
    </>
  );
}
