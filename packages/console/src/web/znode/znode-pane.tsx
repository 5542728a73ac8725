import { type ReactNode, useEffect, useRef, useState } from 'react';
import type { Failure, ZnodeInfo } from '../../api/messages.ts';
import { clusterUrl } from '../api.ts';
import { FailureView } from '../parts/failure-view.tsx';
import { Icon } from '../parts/icons.tsx';
import { Menu, type MenuItem } from '../parts/menu.tsx';
import { go } from '../route.ts';
import { useSession, useSubscription } from '../session.ts';
import { STREAM } from '../stream.ts';
import { TEXTS } from '../texts.ts';
import { visibleName } from '../tree/tree-pane.tsx';
import { AccessView, StatTable } from './details.tsx';
import { AclDialog, CreateDialog, DeleteDialog, RelocateDialog, useChange } from './dialogs.tsx';
import { EditDialog, isEditable } from './edit-dialog.tsx';
import { HistoryView } from './history-view.tsx';
import { toBase64, toBytes } from './unpack.ts';
import { ValueView } from './value-view.tsx';

type Tab = 'value' | 'details' | 'access' | 'history';
type Open = 'edit' | 'create' | 'delete' | 'copy' | 'move' | 'acl' | null;

/** One znode, updated as it changes. */
export function ZnodePane({ path, onBack }: { readonly path: string; onBack(): void }): ReactNode {
  const { cluster } = useSession();
  const [znode, setZnode] = useState<ZnodeInfo | null>(null);
  const [isGone, setGone] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [flash, setFlash] = useState<string | null>(null);
  const [tab, setTab] = useState<Tab>('value');
  const seen = useRef('');
  useEffect(() => {
    setFailure(null);
    setGone(false);
    setFlash(null);
    seen.current = '';
    if (path === '') setZnode(null);
  }, [path]);
  useSubscription({ kind: 'znode', cluster: cluster.name, path }, (message) => {
    if (message.kind === 'failed') setFailure(message.failure);
    if (message.kind !== 'znode') return;
    setFailure(null);
    setGone(message.znode === null);
    setZnode(message.znode);
    const version = message.znode === null ? 'gone' : message.znode.stat.mzxid;
    if (seen.current !== '' && seen.current !== version)
      setFlash(TEXTS.znode.changed(message.zxid ?? message.znode?.stat.mzxid ?? null));
    seen.current = version;
  });
  useEffect(() => {
    if (flash === null) return undefined;
    const timer = setTimeout(() => setFlash(null), 4000);
    return () => clearTimeout(timer);
  }, [flash]);
  const shown = znode?.path === path ? znode : null;
  return (
    <section aria-label={path} className="znode">
      <div className="znode-head">
        <button aria-label={TEXTS.pages.tree} className="ghost only-narrow" onClick={onBack} type="button">
          <Icon name="tree" />
        </button>
        <Crumbs cluster={cluster.name} path={path} />
        <span aria-live="polite" className={`pulse${flash === null ? '' : ' on'}`}>
          {flash ?? TEXTS.znode.live}
        </span>
        {shown !== null && <Actions znode={shown} />}
      </div>
      {failure !== null && <FailureView failure={failure} retry={() => STREAM.restart()} />}
      {failure === null && isGone && (
        <div className="failure">
          <h2>{TEXTS.znode.gone(path)}</h2>
          <p>{TEXTS.znode.goneHint}</p>
        </div>
      )}
      {failure === null && isGone && cluster.hasHistory && <HistoryView path={path} version={-1} />}
      {failure === null && !isGone && shown === null && <p className="quiet">{TEXTS.loading}</p>}
      {failure === null && shown !== null && <Body setTab={setTab} tab={tab} znode={shown} />}
    </section>
  );
}

function Body({
  znode,
  tab,
  setTab,
}: {
  readonly znode: ZnodeInfo;
  readonly tab: Tab;
  setTab(tab: Tab): void;
}): ReactNode {
  const { cluster } = useSession();
  const tabs: readonly Tab[] = ['value', 'details', 'access', ...(cluster.hasHistory ? (['history'] as const) : [])];
  return (
    <>
      <div className="tabs" role="tablist">
        {tabs.map((one) => (
          <button
            aria-controls={`panel-${one}`}
            aria-selected={one === tab}
            id={`tab-${one}`}
            key={one}
            onClick={() => setTab(one)}
            onKeyDown={({ key }) => {
              const step = key === 'ArrowRight' ? 1 : key === 'ArrowLeft' ? -1 : 0;
              const next = tabs[(tabs.indexOf(one) + step + tabs.length) % tabs.length];
              if (step === 0 || next === undefined) return;
              setTab(next);
              document.getElementById(`tab-${next}`)?.focus();
            }}
            role="tab"
            tabIndex={one === tab ? 0 : -1}
            type="button"
          >
            {TEXTS.znode[one]}
          </button>
        ))}
        <span className="tabs-extra mono">{TEXTS.znode.version(znode.stat.version)}</span>
      </div>
      <div aria-labelledby={`tab-${tab}`} className={`panel panel-${tab}`} id={`panel-${tab}`} role="tabpanel">
        {tab === 'value' && <ValueView znode={znode} />}
        {tab === 'details' && <StatTable nowMs={Date.now()} stat={znode.stat} />}
        {tab === 'access' && <AccessView znode={znode} />}
        {tab === 'history' && <HistoryView path={znode.path} version={znode.stat.version} />}
      </div>
    </>
  );
}

function Crumbs({ path, cluster }: { readonly path: string; readonly cluster: string }): ReactNode {
  const names = path === '/' ? [] : path.slice(1).split('/');
  return (
    <nav aria-label={TEXTS.znode.openPath} className="crumbs">
      <button onClick={() => go({ cluster, page: 'tree', path: '/' })} type="button">
        /
      </button>
      {names.map((name, i) => {
        const to = `/${names.slice(0, i + 1).join('/')}`;
        return (
          <span key={to}>
            {i > 0 && <span aria-hidden="true">/</span>}
            <button
              aria-current={i === names.length - 1 ? 'location' : undefined}
              onClick={() => go({ cluster, page: 'tree', path: to })}
              type="button"
            >
              {visibleName(name)}
            </button>
          </span>
        );
      })}
    </nav>
  );
}

function Actions({ znode }: { readonly znode: ZnodeInfo }): ReactNode {
  const { cluster, isWritable, notify, fail } = useSession();
  const [open, setOpen] = useState<Open>(null);
  const { run, failure } = useChange();
  const { actions } = TEXTS;
  const { path } = znode;
  const done = (to: string | null): void => {
    setOpen(null);
    if (to !== null) go({ cluster: cluster.name, page: 'tree', path: to });
  };
  const copyPath = (): void => {
    void navigator.clipboard.writeText(path).then(() => notify(`${TEXTS.copied}: ${path}`), fail);
  };
  const edit = (): void => {
    if (!isWritable) notify(TEXTS.readOnlyHint, { isError: true });
    else if (isEditable(znode)) setOpen('edit');
    else notify(TEXTS.edit.binary, { isError: true });
  };
  useEffect(() => {
    if (failure !== null) notify(failure.message, { isError: true });
  }, [failure, notify]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || open !== null) return;
      if (document.querySelector('dialog[open]') !== null) return;
      if (event.key === 'e') edit();
      else if (event.key === 'y') copyPath();
      else if (isWritable && event.key === 'c') setOpen('create');
      else if (isWritable && event.key === 'Delete' && path !== '/') setOpen('delete');
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  });
  const upload = (): void =>
    pickFile((bytes) => {
      void run('set', { path, version: znode.stat.version, data: toBase64(bytes) }, () => TEXTS.edit.saved(path));
    });
  const importTree = (): void =>
    pickFile((bytes) => {
      const lines = new TextDecoder().decode(bytes);
      void run('import', { path, lines }, ({ znodes }) => TEXTS.import.done(path, znodes));
    });
  const items: readonly MenuItem[] = [
    { label: actions.copyPath, icon: 'copy', run: copyPath },
    { label: actions.watch, icon: 'live', run: () => go({ cluster: cluster.name, page: 'live', path }) },
    {
      label: actions.download,
      icon: 'download',
      run: () => saveFile(path.split('/').at(-1) || 'root', toBytes(znode.data ?? '')),
    },
    {
      label: actions.export,
      icon: 'download',
      run: () => location.assign(`./api/${clusterUrl(cluster.name, 'export', { path })}`),
    },
    { label: actions.upload, icon: 'upload', isDisabled: !isWritable, run: upload },
    { label: actions.import, icon: 'upload', isDisabled: !isWritable, run: importTree },
    { label: actions.copy, icon: 'copy', isDisabled: !isWritable || path === '/', run: () => setOpen('copy') },
    { label: actions.move, icon: 'out', isDisabled: !isWritable || path === '/', run: () => setOpen('move') },
    { label: TEXTS.acl.edit, icon: 'key', isDisabled: !isWritable || znode.acl === null, run: () => setOpen('acl') },
  ];
  return (
    <div className="actions">
      {isWritable && (
        <>
          <button onClick={edit} type="button">
            <Icon name="edit" /> <span>{actions.edit}</span>
          </button>
          <button onClick={() => setOpen('create')} type="button">
            <Icon name="plus" /> <span>{actions.create}</span>
          </button>
          {path !== '/' && (
            <button onClick={() => setOpen('delete')} type="button">
              <Icon name="trash" /> <span>{actions.delete}</span>
            </button>
          )}
        </>
      )}
      <Menu icon="more" items={items} label={actions.more} />
      {open === 'edit' && <EditDialog onDone={done} znode={znode} />}
      {open === 'create' && <CreateDialog onDone={done} path={path} />}
      {open === 'delete' && <DeleteDialog onDone={done} path={path} />}
      {(open === 'copy' || open === 'move') && <RelocateDialog isMove={open === 'move'} onDone={done} path={path} />}
      {open === 'acl' && <AclDialog onDone={done} znode={znode} />}
    </div>
  );
}

export function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

export function saveFile(name: string, content: BlobPart | Uint8Array): void {
  const url = URL.createObjectURL(new Blob([content as BlobPart], { type: 'application/octet-stream' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

function pickFile(use: (bytes: Uint8Array) => void): void {
  const input = document.createElement('input');
  input.type = 'file';
  input.addEventListener('change', () => {
    const file = input.files?.[0];
    if (file !== undefined) void file.arrayBuffer().then((buffer) => use(new Uint8Array(buffer)));
  });
  input.click();
}
