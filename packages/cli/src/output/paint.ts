import { styleText } from 'node:util';
import type { Io, Output } from '../run/io.ts';

type Style = Parameters<typeof styleText>[0];

/** Colours, where there is a terminal that has them. */
export class Paint {
  readonly isOn: boolean;

  constructor(isOn: boolean) {
    this.isOn = isOn;
  }

  /** Of a terminal, unless NO_COLOR or TERM=dumb is set; FORCE_COLOR paints everywhere. */
  static for(stream: Output, { env }: Io, isWanted: boolean): Paint {
    if (!isWanted || (env['NO_COLOR'] ?? '') !== '') return new Paint(false);
    const forced = env['FORCE_COLOR'];
    if (forced !== undefined && forced !== '' && forced !== '0') return new Paint(true);
    return new Paint(stream.isTTY === true && env['TERM'] !== 'dumb');
  }

  bold(text: string): string {
    return this.#style('bold', text);
  }

  dim(text: string): string {
    return this.#style('dim', text);
  }

  /** Names of znodes that have children. */
  parent(text: string): string {
    return this.#style(['bold', 'blue'], text);
  }

  /** What was added, or is right. */
  good(text: string): string {
    return this.#style('green', text);
  }

  /** What went, or is wrong. */
  bad(text: string): string {
    return this.#style('red', text);
  }

  /** What has changed, or needs a look. */
  notable(text: string): string {
    return this.#style('yellow', text);
  }

  #style(style: Style, text: string): string {
    // Whether there is a terminal has been decided, and not about the stream of this process alone.
    return this.isOn ? styleText(style, text, { validateStream: false }) : text;
  }
}
