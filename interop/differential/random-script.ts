import type { Script } from './comparison.ts';
import { Generator, type StepResult } from './generator.ts';
import type { Guard } from './guard.ts';
import { Random } from './random.ts';
import type { Step } from './step.ts';

/** Random steps, determined by the seed and the answers. */
export class RandomScript implements Script {
  readonly #seed: number;
  readonly #steps: number;
  readonly #generator: Generator;

  constructor(seed: number, steps: number) {
    this.#seed = seed;
    this.#steps = steps;
    this.#generator = new Generator(new Random(seed));
  }

  next(taken: number, guard: Guard): Step | null {
    return taken < this.#steps ? this.#generator.next(guard) : null;
  }

  learn(step: Step, result: StepResult): void {
    this.#generator.learn(step, result);
  }

  replay(taken: number): string {
    return `npm run differential -- --seed ${this.#seed} --ops ${taken}`;
  }
}
