import { type ReactNode, useState } from 'react';
import type { PastZnode } from '../../api/past-messages.ts';
import { ask, clusterUrl } from '../api.ts';
import { Icon } from '../parts/icons.tsx';
import { useResource, useSession } from '../session.ts';
import { TEXTS } from '../texts.ts';
import { join } from '../tree/tree-model.ts';
import { visibleName } from '../tree/tree-pane.tsx';

/** A znode of a past tree, and its children once it is expanded. */
export function PastBranch(props: {
  readonly at: string;
  readonly path: string;
  readonly name: string;
  readonly selected: string;
  onSelect(path: string): void;
}): ReactNode {
  const { at, path, name, selected, onSelect } = props;
  const { cluster } = useSession();
  const [isOpen, setOpen] = useState(path === '/');
  const { value, failure } = useResource(isOpen ? `${at} ${path}` : null, (signal) =>
    ask<PastZnode>(clusterUrl(cluster.name, 'past/znode', { at, path }), undefined, signal),
  );
  return (
    <li>
      <button
        aria-current={path === selected ? 'true' : undefined}
        aria-expanded={isOpen}
        className="past-row"
        onClick={() => {
          onSelect(path);
          setOpen(path !== selected || !isOpen);
        }}
        type="button"
      >
        <span aria-hidden="true" className={`twisty${isOpen ? ' open' : ''}`}>
          <Icon name="chevron" size={13} />
        </span>
        {visibleName(name)}
      </button>
      {isOpen && failure !== null && <p className="dim">{TEXTS.unknownError}</p>}
      {isOpen && value !== null && (
        <ul>
          {value.isWithheld && <li className="dim">{TEXTS.tree.refused}</li>}
          {value.children.map((child) => (
            <PastBranch
              at={at}
              key={child}
              name={child}
              onSelect={onSelect}
              path={join(path, child)}
              selected={selected}
            />
          ))}
          {value.total > value.children.length && (
            <li className="dim">{TEXTS.time.more(value.total - value.children.length)}</li>
          )}
        </ul>
      )}
    </li>
  );
}
