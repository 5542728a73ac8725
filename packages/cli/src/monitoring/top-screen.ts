import type { Paint } from '../output/paint.ts';
import { lagOf, type ServerState } from './server-state.ts';
import { sparkline } from './sparkline.ts';

/** What was seen of each server, the newest last. */
interface Trail {
  readonly rates: number[];
  readonly latencies: number[];
  received: number;
}

/** The screen of `top`: a line for each server and a plot for its requests and latencies, in 80 columns. */
export class TopScreen {
  readonly #trails = new Map<string, Trail>();
  readonly #paint: Paint;

  constructor(paint: Paint) {
    this.#paint = paint;
  }

  /**
   * @param elapsedMs since the states before; 0 for the first
   * @param rows lines of the screen; those that do not fit are left out
   */
  draw(states: readonly ServerState[], elapsedMs: number, rows: number): string[] {
    for (const state of states) this.#follow(state, elapsedMs);
    const total = states.reduce((sum, state) => sum + (this.#trailOf(state).rates.at(-1) ?? 0), 0);
    const alive = states.filter(({ problem }) => problem === null);
    const connections = alive.reduce((sum, state) => sum + state.connections, 0);
    const head = `${alive.length} of ${states.length} servers serve · ${Math.round(total)} requests/s · ${connections} connections`;
    const lines = [this.#paint.bold(head), '', this.#paint.dim(HEADER)];
    for (const state of states) lines.push(this.#line(state, states));
    lines.push('', this.#paint.dim(`${''.padEnd(NAME)} requests/s${''.padEnd(PLOT - 10)}  latency, ms`));
    for (const state of states) lines.push(this.#plot(state));
    return lines.slice(0, Math.max(1, rows - 1));
  }

  #trailOf({ server }: ServerState): Trail {
    const known = this.#trails.get(server.name);
    if (known !== undefined) return known;
    const made = { rates: [], latencies: [], received: -1 };
    this.#trails.set(server.name, made);
    return made;
  }

  #follow(state: ServerState, elapsedMs: number): void {
    const trail = this.#trailOf(state);
    const isCounted = trail.received >= 0 && state.problem === null && elapsedMs > 0;
    // A restart and srst reset the count; the poll itself counts as a request.
    const requests = Math.max(0, state.received - trail.received - 1);
    trail.rates.push(isCounted ? (requests * 1000) / elapsedMs : 0);
    trail.latencies.push(state.latencyAverage);
    trail.received = state.problem === null ? state.received : -1;
    if (trail.rates.length > KEPT) trail.rates.shift();
    if (trail.latencies.length > KEPT) trail.latencies.shift();
  }

  #line(state: ServerState, all: readonly ServerState[]): string {
    const name = state.server.name.slice(0, NAME).padEnd(NAME);
    if (state.problem !== null) return `${name} ${this.#paint.bad(state.problem.slice(0, 80 - NAME - 1))}`;
    const { role, connections, outstanding, znodes } = state;
    const lag = lagOf(state, all);
    const rate = Math.round(this.#trailOf(state).rates.at(-1) ?? 0);
    const cells: readonly (readonly [text: string | number, width: number])[] = [
      [rate, 7],
      [state.latencyAverage.toFixed(1), 7],
      [Math.round(state.latencyMax), 7],
      [connections, 6],
      [outstanding, 6],
      [lag ?? '?', 6],
      [znodes, 9],
    ];
    const shownRole = role === 'leader' ? this.#paint.good('leader'.padEnd(ROLE)) : (role ?? '').padEnd(ROLE);
    return `${name} ${shownRole}${cells.map(([text, width]) => String(text).padStart(width)).join('')}`;
  }

  #plot(state: ServerState): string {
    const { rates, latencies } = this.#trailOf(state);
    const name = state.server.name.slice(0, NAME).padEnd(NAME);
    return `${name} ${sparkline(rates, PLOT)}  ${sparkline(latencies, PLOT)}`;
  }
}

const NAME = 21;
const ROLE = 10;
const PLOT = 27;
const KEPT = 200;
const HEADER = `${'server'.padEnd(NAME)} ${'role'.padEnd(ROLE)}${['req/s', 'avg ms', 'max ms'].map((text) => text.padStart(7)).join('')}${[
  'conns',
  'queue',
  'lag',
]
  .map((text) => text.padStart(6))
  .join('')}${'znodes'.padStart(9)}`;
