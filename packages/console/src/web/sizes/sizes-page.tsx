import { hierarchy, treemap, treemapSquarify } from 'd3-hierarchy';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import type { IndexState, SizeNode } from '../../api/messages.ts';
import { ask, clusterUrl } from '../api.ts';
import { count, size } from '../figures.ts';
import { FailureView } from '../parts/failure-view.tsx';
import { Icon } from '../parts/icons.tsx';
import { go, routeHash } from '../route.ts';
import { useResource, useSession, useSubscription } from '../session.ts';
import { TEXTS } from '../texts.ts';
import { split } from '../tree/tree-model.ts';

type By = 'bytes' | 'count';

interface Answer {
  readonly sizes: SizeNode;
  readonly index: IndexState;
}

/** The distribution of bytes and znodes: an area for each subtree, from the live tree. */
export default function SizesPage({ path }: { readonly path: string }): ReactNode {
  const { cluster } = useSession();
  const { sizes: texts } = TEXTS;
  const [by, setBy] = useState<By>('bytes');
  const [index, setIndex] = useState<IndexState | null>(null);
  useSubscription({ kind: 'index', cluster: cluster.name }, (message) => {
    if (message.kind === 'index') setIndex(message.index);
  });
  // Adding up a large tree takes as long as reading a part of it: during the walk, repeated when it has grown by half.
  const extent =
    index?.isComplete === false
      ? Math.floor(2 * Math.log2(index.znodes + 1))
      : `${index?.znodes ?? 0} ${index?.bytes ?? 0}`;
  const key = `${path} ${by} ${extent}`;
  const { value, failure, reload } = useResource(key, (signal) =>
    ask<Answer>(clusterUrl(cluster.name, 'sizes', { path, by }), undefined, signal),
  );
  if (value === null)
    return failure === null ? (
      <p className="quiet">{TEXTS.loading}</p>
    ) : (
      <FailureView failure={failure} retry={reload} />
    );
  const { sizes, index: state } = value;
  const open = (to: string): void => go({ cluster: cluster.name, page: 'sizes', path: to });
  return (
    <div className="column">
      <div className="bar">
        <h1 className="mono">{path}</h1>
        <button disabled={path === '/'} onClick={() => open(split(path).parent)} type="button">
          <Icon name="up" /> {texts.up}
        </button>
        <label className="inline">
          <span>{texts.by}</span>
          <select onChange={({ target }) => setBy(target.value as By)} value={by}>
            <option value="bytes">{texts.bytes}</option>
            <option value="count">{texts.count}</option>
          </select>
        </label>
        <span className="dim" role="status">
          {texts.total(sizes.count, sizes.bytes)}
          {!state.isComplete && ` · ${TEXTS.search.walking(state.znodes)}`}
          {state.isComplete && !state.isLive && ` · ${TEXTS.search.old}`}
          {state.missing !== null && ` · ${state.missing}`}
        </span>
      </div>
      <div className="sizes">
        <Areas by={by} onOpen={open} sizes={sizes} />
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached with the keyboard. */}
        <section aria-label={texts.table} className="scroll size-table" tabIndex={0}>
          <table className="table">
            <thead>
              <tr>
                <th scope="col">{texts.name}</th>
                <th className="number" scope="col">
                  {texts.bytes}
                </th>
                <th className="number" scope="col">
                  {texts.count}
                </th>
                <th className="number" scope="col">
                  {texts.share}
                </th>
              </tr>
            </thead>
            <tbody>
              {sizes.children.map((child) => (
                <tr key={child.path === '' ? 'others' : child.path}>
                  <td className="mono wrap">
                    {child.path === '' ? (
                      texts.others(child.name)
                    ) : (
                      <a
                        href={routeHash({
                          cluster: cluster.name,
                          page: child.count > 1 ? 'sizes' : 'tree',
                          path: child.path,
                        })}
                      >
                        {child.name}
                      </a>
                    )}
                  </td>
                  <td className="number">{size(child.bytes)}</td>
                  <td className="number">{count(child.count)}</td>
                  <td className="number">{`${((child[by] / Math.max(1, sizes[by])) * 100).toFixed(1)} %`}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      </div>
    </div>
  );
}

/** The chart; the table beside it has the same contents in accessible form. */
function Areas({
  sizes,
  by,
  onOpen,
}: {
  readonly sizes: SizeNode;
  readonly by: By;
  onOpen(path: string): void;
}): ReactNode {
  const place = useRef<HTMLDivElement>(null);
  const [box, setBox] = useState({ width: 600, height: 400 });
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const observer = new ResizeObserver(() => setBox({ width: element.clientWidth, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const root = hierarchy<SizeNode>(sizes)
    .sum((node) => (node.children.length === 0 ? Math.max(node[by], 0.5) : 0))
    .sort((a, b) => (b.value ?? 0) - (a.value ?? 0));
  const laidOut = treemap<SizeNode>()
    .tile(treemapSquarify)
    .size([box.width, box.height])
    .paddingTop((node) => (node.depth === 1 && node.children !== undefined ? 18 : 0))
    .paddingInner(2)
    .round(true)(root);
  return (
    <div aria-hidden="true" className="areas" ref={place}>
      {laidOut
        .descendants()
        .slice(1)
        .map((node) => {
          const { path, name, count: znodes, bytes } = node.data;
          const width = node.x1 - node.x0;
          const height = node.y1 - node.y0;
          const label = path === '' ? TEXTS.sizes.others(name) : name;
          const hue = hueOf(node.depth === 1 ? path : (node.parent?.data.path ?? path));
          return (
            // biome-ignore lint/a11y/noStaticElementInteractions lint/a11y/useKeyWithClickEvents: hidden from assistive techniques; the table has the links.
            <div
              className={`area depth-${node.depth}${node.children === undefined ? ' leaf' : ''}`}
              key={`${node.depth} ${path}${node.x0},${node.y0}`}
              onClick={() => path !== '' && znodes > 1 && onOpen(path)}
              style={{ left: node.x0, top: node.y0, width, height, ['--hue' as string]: hue }}
              title={`${path === '' ? label : path}\n${size(bytes)}, ${count(znodes)}`}
            >
              {width > 34 && height > 15 && <span>{label}</span>}
            </div>
          );
        })}
    </div>
  );
}

/** The same subtree always has the same colour. */
function hueOf(path: string): number {
  let hash = 7;
  for (let i = 0; i < path.length; i++) hash = (hash * 31 + path.charCodeAt(i)) % 360;
  return hash;
}
