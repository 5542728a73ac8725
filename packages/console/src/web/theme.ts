import { useSyncExternalStore } from 'react';

export type Theme = 'auto' | 'light' | 'dark';

const KEY = 'meerkat-theme';
const listeners = new Set<() => void>();

apply(read());

export function useTheme(): Theme {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, read);
}

export function setTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme);
  apply(theme);
  for (const listener of listeners) listener();
}

function read(): Theme {
  const text = localStorage.getItem(KEY);
  return text === 'light' || text === 'dark' ? text : 'auto';
}

function apply(theme: Theme): void {
  document.documentElement.dataset['theme'] = theme;
}
