import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { Icon, type IconName } from './icons.tsx';

export interface MenuItem {
  readonly label: string;
  readonly icon?: IconName;
  readonly isDisabled?: boolean;
  readonly isChecked?: boolean;
  run(): void;
}

/** A button with a menu of actions. */
export function Menu({
  label,
  icon,
  items,
  text,
}: {
  readonly label: string;
  readonly icon: IconName;
  readonly text?: string;
  readonly items: readonly MenuItem[];
}): ReactNode {
  const [isOpen, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();
  useEffect(() => {
    if (!isOpen) return undefined;
    root.current?.querySelector<HTMLElement>('[role^=menuitem]')?.focus();
    const close = (event: PointerEvent): void => {
      if (!(event.target instanceof Node) || root.current?.contains(event.target) !== true) setOpen(false);
    };
    addEventListener('pointerdown', close);
    return () => removeEventListener('pointerdown', close);
  }, [isOpen]);
  const onKey = (event: KeyboardEvent): void => {
    if (!isOpen) return;
    const entries = [...(root.current?.querySelectorAll<HTMLElement>('[role^=menuitem]') ?? [])];
    const at = entries.indexOf(document.activeElement as HTMLElement);
    const moves: Readonly<Record<string, number>> = {
      ArrowDown: (at + 1) % entries.length,
      ArrowUp: (at - 1 + entries.length) % entries.length,
      Home: 0,
      End: entries.length - 1,
    };
    const move = moves[event.key];
    if (move !== undefined) entries[move]?.focus();
    else if (event.key === 'Escape') {
      setOpen(false);
      button.current?.focus();
    } else if (event.key === 'Tab') {
      setOpen(false);
      return;
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys are those of the menu inside.
    <div className="menu" onKeyDown={onKey} ref={root}>
      <button
        aria-controls={isOpen ? id : undefined}
        aria-expanded={isOpen}
        aria-haspopup="menu"
        aria-label={label}
        className={text === undefined ? 'ghost' : ''}
        onClick={() => setOpen(!isOpen)}
        ref={button}
        title={label}
        type="button"
      >
        <Icon name={icon} />
        {text !== undefined && <span>{text}</span>}
      </button>
      {isOpen && (
        <div className="menu-list" id={id} role="menu">
          {items.map((item) => (
            <Entry
              item={item}
              key={item.label}
              onDone={() => {
                setOpen(false);
                button.current?.focus();
              }}
            />
          ))}
        </div>
      )}
    </div>
  );
}

function Entry({ item, onDone }: { readonly item: MenuItem; onDone(): void }): ReactNode {
  const { label, icon, isDisabled = false, isChecked } = item;
  const onClick = (): void => {
    if (isDisabled) return;
    onDone();
    item.run();
  };
  if (isChecked !== undefined) {
    return (
      <button aria-checked={isChecked} onClick={onClick} role="menuitemradio" tabIndex={-1} type="button">
        {label}
      </button>
    );
  }
  return (
    <button aria-disabled={isDisabled} onClick={onClick} role="menuitem" tabIndex={-1} type="button">
      {icon !== undefined && <Icon name={icon} />}
      {label}
    </button>
  );
}
