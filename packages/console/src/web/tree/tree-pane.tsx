import { useVirtualizer } from '@tanstack/react-virtual';
import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react';
import type { ChildrenPage } from '../../api/messages.ts';
import { ask, clusterUrl, failureOf } from '../api.ts';
import { count, size } from '../figures.ts';
import { Icon } from '../parts/icons.tsx';
import { useSession } from '../session.ts';
import { STREAM } from '../stream.ts';
import { TEXTS } from '../texts.ts';
import { split, TreeModel, type TreeRow } from './tree-model.ts';

const ROW_PX = 24;
/** Maximum number of watches of the tree: on the first expanded znodes. */
const FOLLOWED_MAX = 100;

/** The tree: one row per visible znode, of which only those in the viewport are rendered. */
export function TreePane({
  path,
  onSelect,
  onEnter,
}: {
  readonly path: string;
  onSelect(path: string): void;
  onEnter(): void;
}): ReactNode {
  const { cluster } = useSession();
  const model = useMemo(() => makeModel(cluster.name), [cluster.name]);
  useSyncExternalStore(model.listen, model.revision);
  useFollowed(model, cluster.name);
  const scroller = useRef<HTMLDivElement>(null);
  const [cursor, setCursor] = useState(0);
  const rows = useVirtualizer({
    count: model.rowCount,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 12,
  });
  const typed = useRef({ text: '', atMs: 0 });

  useEffect(() => {
    let isOver = false;
    void model.reveal(path).then((row) => {
      if (isOver || row === null) return;
      setCursor(row);
      rows.scrollToIndex(row, { align: 'auto' });
    });
    return () => {
      isOver = true;
    };
  }, [model, path, rows.scrollToIndex]);

  const items = rows.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    // While the user drags through a million rows, only the rows where it stops are loaded.
    const timer = setTimeout(() => {
      for (let i = first; i <= last; i++) {
        const row = model.row(i);
        if (row !== null && row.info === null && row.parent !== null) model.want(row.parent, row.index);
      }
    }, 50);
    return () => clearTimeout(timer);
  });

  const moveTo = (to: number): void => {
    const row = Math.max(0, Math.min(model.rowCount - 1, to));
    setCursor(row);
    rows.scrollToIndex(row, { align: 'auto' });
    const found = model.row(row);
    if (found !== null && found.path !== '') onSelect(found.path);
  };
  const toggle = (row: TreeRow): void => {
    if (row.isExpanded) model.collapse(row.path);
    else void model.expand(row.path);
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const row = model.row(cursor);
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 400) / ROW_PX) - 1);
    const moves: Readonly<Record<string, number>> = {
      ArrowDown: cursor + 1,
      ArrowUp: cursor - 1,
      PageDown: cursor + page,
      PageUp: cursor - page,
      Home: 0,
      End: model.rowCount - 1,
    };
    const move = moves[event.key];
    if (move !== undefined) moveTo(move);
    else if (event.key === 'ArrowRight' && row !== null) {
      if (row.isExpanded) moveTo(cursor + 1);
      else void model.expand(row.path);
    } else if (event.key === 'ArrowLeft' && row !== null) {
      if (row.isExpanded && row.path !== '/') model.collapse(row.path);
      else moveTo(model.rowOf(row.parent ?? '/') ?? 0);
    } else if (event.key === 'Enter' && row !== null) {
      if (row.path !== '') onSelect(row.path);
      onEnter();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  /** Typed letters select the next loaded name with this prefix. Single letters are left to the page's shortcuts. */
  const onType = (event: KeyboardEvent): void => {
    if (event.key.length !== 1 || event.ctrlKey || event.metaKey || event.altKey || !event.shiftKey) return;
    const { current } = typed;
    const nowMs = performance.now();
    current.text = (nowMs - current.atMs < 800 ? current.text : '') + event.key.toLowerCase();
    current.atMs = nowMs;
    for (let step = 1; step <= Math.min(model.rowCount, 2000); step++) {
      const at = (cursor + step) % model.rowCount;
      if (model.row(at)?.name.toLowerCase().startsWith(current.text) === true) {
        moveTo(at);
        return;
      }
    }
  };

  return (
    <div
      aria-activedescendant={`row-${cursor}`}
      aria-label={TEXTS.tree.label}
      className="tree"
      id="tree"
      onKeyDown={(event) => {
        onKey(event);
        if (!event.isPropagationStopped()) onType(event);
      }}
      ref={scroller}
      role="tree"
      tabIndex={0}
    >
      <div role="presentation" style={{ height: rows.getTotalSize(), position: 'relative' }}>
        {items.map(({ index, start }) => {
          const row = model.row(index);
          return row === null ? null : (
            <Row
              failure={row.isExpanded ? (model.failureAt(row.path)?.code ?? null) : null}
              id={`row-${index}`}
              isActive={index === cursor}
              isLoading={row.isExpanded && model.isLoading(row.path)}
              isSelected={row.path !== '' && row.path === path}
              key={index}
              onClick={() => {
                setCursor(index);
                if (row.path !== '') onSelect(row.path);
              }}
              onToggle={() => toggle(row)}
              row={row}
              top={start}
            />
          );
        })}
      </div>
    </div>
  );
}

function Row(props: {
  readonly row: TreeRow;
  readonly id: string;
  readonly top: number;
  readonly isActive: boolean;
  readonly isSelected: boolean;
  readonly isLoading: boolean;
  readonly failure: string | null;
  onClick(): void;
  onToggle(): void;
}): ReactNode {
  const { row, id, top, isActive, isSelected, isLoading, failure } = props;
  const { info, depth, name, isExpanded, index, siblings } = row;
  const hasChildren = (info?.numChildren ?? 0) > 0 || isExpanded;
  const classes = [
    'row',
    isActive ? 'active' : '',
    isSelected ? 'selected' : '',
    info?.isEphemeral === true ? 'ephemeral' : '',
  ];
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree takes the keys for all of its rows.
    <div
      aria-expanded={hasChildren ? isExpanded : undefined}
      aria-level={depth + 1}
      aria-posinset={index + 1}
      aria-selected={isSelected}
      aria-setsize={siblings}
      className={classes.join(' ')}
      id={id}
      onClick={props.onClick}
      onDoubleClick={hasChildren ? props.onToggle : undefined}
      role="treeitem"
      style={{ transform: `translateY(${top}px)`, paddingLeft: 6 + depth * 14 }}
      tabIndex={-1}
      title={row.path}
    >
      <span
        aria-hidden="true"
        className={`twisty${hasChildren ? '' : ' leaf'}${isExpanded ? ' open' : ''}`}
        onClick={(event) => {
          if (!hasChildren) return;
          event.stopPropagation();
          props.onToggle();
        }}
      >
        <Icon name="chevron" size={13} />
      </span>
      <span className="name">{info === null ? '…' : visibleName(name)}</span>
      {info?.isEphemeral === true && (
        <span className="mark" title={TEXTS.tree.ephemeral}>
          <Icon name="bolt" size={11} />
          <span className="hidden">{TEXTS.tree.ephemeral}</span>
        </span>
      )}
      {failure !== null && <span className="extra bad">{TEXTS.tree.refused}</span>}
      {isLoading && <span className="extra">{TEXTS.loading}</span>}
      {depth > 0 && info !== null && failure === null && (
        <span className="extra">
          {info.numChildren !== null && info.numChildren > 0 ? count(info.numChildren) : sizeOf(info.dataLength)}
        </span>
      )}
    </div>
  );
}

function sizeOf(bytes: number): string {
  return bytes === 0 ? '' : size(bytes);
}

/** Makes leading and trailing spaces and invisible characters visible, so that names are distinguishable. */
export function visibleName(name: string): string {
  return name
    .replace(/^ +| +$/g, (spaces) => '␣'.repeat(spaces.length))
    .replace(
      /[\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\u00ad]/g,
      (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
}

function makeModel(cluster: string): TreeModel {
  return new TreeModel(
    (path, from, find, isFresh) =>
      ask<ChildrenPage>(
        clusterUrl(cluster, 'children', {
          path,
          from,
          count: 200,
          ...(find.length === 0 ? {} : { find: find.join('/') }),
          ...(isFresh ? { fresh: 1 } : {}),
        }),
      ),
    failureOf,
  );
}

/** Expanded znodes are read again when their children change. */
function useFollowed(model: TreeModel, cluster: string): void {
  const open = model.openPaths.slice(0, FOLLOWED_MAX).join('\n');
  const followed = useRef(new Map<string, () => void>());
  useEffect(() => {
    const wanted = new Set(open === '' ? [] : open.split('\n'));
    for (const [path, end] of followed.current) {
      if (wanted.has(path)) continue;
      end();
      followed.current.delete(path);
    }
    for (const path of wanted) {
      if (followed.current.has(path)) continue;
      const refresh = (): void => {
        void model.refresh(path);
        const { parent } = split(path);
        if (path !== '/') void model.refresh(parent);
      };
      followed.current.set(
        path,
        STREAM.subscribe({ kind: 'children', cluster, path }, (message) => {
          if (message.kind === 'children') refresh();
        }),
      );
    }
  }, [open, model, cluster]);
  useEffect(() => {
    const { current } = followed;
    return () => {
      for (const end of current.values()) end();
      current.clear();
    };
  }, []);
}
