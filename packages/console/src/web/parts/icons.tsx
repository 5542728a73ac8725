import type { ReactNode } from 'react';

const PATHS = {
  tree: 'M4 4h5M4 12h5M4 4v14a2 2 0 0 0 2 2h3M13 4h7M13 12h7M13 20h7',
  live: 'M3 12h4l3-8 4 16 3-8h4',
  sessions:
    'M8 11a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM2 21v-1a6 6 0 0 1 12 0v1M16 3.5a4 4 0 0 1 0 7M18 14.5a6 6 0 0 1 4 5.5v1',
  lines: 'M6 10V7a6 6 0 1 1 12 0v3M5 10h14v11H5zM12 14v3',
  servers: 'M3 4h18v6H3zM3 14h18v6H3zM7 7h.01M7 17h.01',
  sizes: 'M3 3h11v11H3zM17 3h4v7h-4zM17 13h4v8h-4zM3 17h11v4H3z',
  time: 'M12 22a10 10 0 1 0 0-20 10 10 0 0 0 0 20ZM12 6v6l4 3',
  search: 'M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM20 20l-4-4',
  chevron: 'M9 6l6 6-6 6',
  edit: 'M4 20h4L19 9l-4-4L4 16zM13 7l4 4',
  plus: 'M12 5v14M5 12h14',
  trash: 'M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  download: 'M12 4v11M7 10l5 5 5-5M4 20h16',
  upload: 'M12 16V5M7 10l5-5 5 5M4 20h16',
  more: 'M5 12h.01M12 12h.01M19 12h.01',
  undo: 'M9 14L4 9l5-5M4 9h10a6 6 0 0 1 0 12h-3',
  pause: 'M8 5v14M16 5v14',
  play: 'M7 4l13 8-13 8z',
  close: 'M6 6l12 12M18 6L6 18',
  moon: 'M20 14A8 8 0 1 1 10 4a6.5 6.5 0 0 0 10 10Z',
  key: 'M15 9a5 5 0 1 0-4 4.9L13 16h2v2h2v2h4v-4l-6-6',
  up: 'M12 19V5M6 11l6-6 6 6',
  bolt: 'M13 2L5 14h6l-1 8 8-12h-6z',
  help: 'M9.5 9a2.5 2.5 0 1 1 3.5 2.3c-.7.4-1 .9-1 1.7M12 17h.01M12 22a10 10 0 1 0 0-20 10 10 0 0 0 0 20Z',
  out: 'M10 4H5v16h5M14 8l4 4-4 4M18 12H9',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { readonly name: IconName; readonly size?: number }): ReactNode {
  return (
    <svg
      aria-hidden="true"
      className="icon"
      fill="none"
      height={size}
      stroke="currentColor"
      strokeLinecap="round"
      strokeLinejoin="round"
      strokeWidth="1.75"
      viewBox="0 0 24 24"
      width={size}
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
