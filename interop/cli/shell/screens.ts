/** A terminal screen on a page, and the steps that produce it. */
export interface Screen {
  /** Line number of the comment with the steps, from 1. */
  readonly line: number;
  readonly steps: readonly ScreenStep[];
  readonly expected: string;
}

export interface ScreenStep {
  readonly verb: ScreenVerb;
  readonly words: string;
}

/**
 * - enter: type a line and wait for the next prompt
 * - type: type text; keys: press keys by tmux's names; wait: until the screen has this text
 * - elsewhere: another `meerkat` runs this; server: `pause` it, or let it `lose` its data
 */
const VERBS = ['enter', 'type', 'keys', 'wait', 'elsewhere', 'server'] as const;
export type ScreenVerb = (typeof VERBS)[number];

/** Finds the blocks fenced as `screen`, each after a comment `<!-- screen` with one step per line. */
export function findScreens(page: string): readonly Screen[] {
  const screens: Screen[] = [];
  const pattern = /<!-- screen\n([\s\S]*?)-->\n```screen\n([\s\S]*?)```/g;
  for (const { 1: steps = '', 2: expected = '', index } of page.matchAll(pattern)) {
    const line = page.slice(0, index).split('\n').length;
    screens.push({
      line,
      steps: steps
        .trimEnd()
        .split('\n')
        .map((text) => parseStep(text, line)),
      expected,
    });
  }
  const fences = page.match(/^```screen$/gm)?.length ?? 0;
  if (fences !== screens.length) throw new Error(`${fences - screens.length} screens have no comment with their steps`);
  return screens;
}

function parseStep(text: string, line: number): ScreenStep {
  const end = text.indexOf(' ');
  const verb = VERBS.find((known) => known === text.slice(0, end));
  if (verb === undefined)
    throw new Error(`the screen of line ${line}: "${text}" is no step; verbs: ${VERBS.join(', ')}`);
  return { verb, words: text.slice(end + 1) };
}
