import { readFileSync } from 'node:fs';
import { FULL_VERSION } from '../../version.ts';

/** The answers of Apache's servers, with our version where their own stood. */
const RECORDED: ReadonlyMap<string, string> = new Map(
  ['../apache-3.8.0.txt', '../apache-3.8.0-ensemble.txt']
    .flatMap((file) => readFileSync(new URL(file, import.meta.url), 'utf8').split('<end>\n'))
    .flatMap((part) => {
      const [, name, text] = /(?:^|\n)=== (.*)\n([\s\S]*)$/.exec(part) ?? [];
      return name === undefined || text === undefined ? [] : [[name, text.replace('<version>', FULL_VERSION)] as const];
    }),
);

export function recorded(name: string): string {
  const text = RECORDED.get(name);
  if (text === undefined) throw new Error(`there is no recording "${name}"`);
  return text;
}
