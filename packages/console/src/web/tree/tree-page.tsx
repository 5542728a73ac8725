import { type KeyboardEvent, type PointerEvent, type ReactNode, useState } from 'react';
import { go } from '../route.ts';
import { useSession } from '../session.ts';
import { TEXTS } from '../texts.ts';
import { ZnodePane } from '../znode/znode-pane.tsx';
import { TreePane } from './tree-pane.tsx';

const WIDTH_MIN = 180;
const WIDTH_MAX = 900;

/** The tree, and beside it the selected znode. On a narrow screen only one of the two. */
export function TreePage({ path }: { readonly path: string }): ReactNode {
  const { cluster } = useSession();
  const [width, setWidth] = useState(() => Number(localStorage.getItem('meerkat-tree-width') ?? 340));
  const [isTreeShown, setTreeShown] = useState(path === '/');
  const resize = (to: number): void => {
    const next = Math.max(WIDTH_MIN, Math.min(WIDTH_MAX, to));
    setWidth(next);
    localStorage.setItem('meerkat-tree-width', `${next}`);
  };
  const onDrag = (event: PointerEvent): void => {
    if (event.buttons === 1)
      resize(event.clientX - (event.currentTarget.parentElement?.getBoundingClientRect().left ?? 0));
  };
  const onKey = ({ key }: KeyboardEvent): void => {
    if (key === 'ArrowLeft') resize(width - 16);
    if (key === 'ArrowRight') resize(width + 16);
  };
  return (
    <div
      className={`split ${isTreeShown ? 'tree-shown' : 'znode-shown'}`}
      style={{ ['--tree-width' as string]: `${width}px` }}
    >
      <TreePane
        onEnter={() => {
          setTreeShown(false);
          document.getElementById('tab-value')?.focus();
        }}
        onSelect={(to) => go({ cluster: cluster.name, page: 'tree', path: to })}
        path={path}
      />
      {/* biome-ignore lint/a11y/useSemanticElements: a rule cannot be moved. */}
      <div
        aria-label={TEXTS.tree.label}
        aria-orientation="vertical"
        aria-valuemax={WIDTH_MAX}
        aria-valuemin={WIDTH_MIN}
        aria-valuenow={width}
        className="splitter"
        onKeyDown={onKey}
        onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
        onPointerMove={onDrag}
        role="separator"
        tabIndex={0}
      />
      <ZnodePane onBack={() => setTreeShown(true)} path={path} />
    </div>
  );
}
