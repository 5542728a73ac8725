import { expect, test } from 'vitest';
import type { ChildrenPage, Failure } from '../../api/messages.ts';
import { TreeModel } from './tree-model.ts';

/** A service whose replies arrive when the test says so. */
class SlowService {
  readonly answers: (() => void)[] = [];
  names: readonly string[] = [];

  readonly read = (path: string, from: number, find: readonly string[]): Promise<ChildrenPage> => {
    const { names } = this;
    const page: ChildrenPage = {
      path,
      total: names.length,
      cversion: 0,
      from,
      children: names.map((name) => ({ name, numChildren: 0, dataLength: 0, isEphemeral: false })),
      places: Object.fromEntries(find.map((name) => [name, names.indexOf(name)])),
    };
    return new Promise((resolve) => this.answers.push(() => resolve(page)));
  };
}

function failureOf(error: unknown): Failure {
  throw error;
}

test('a reply that was overtaken by newer ones is not shown', async () => {
  const service = new SlowService();
  const model = new TreeModel(service.read, failureOf);
  service.names = ['held', 'stays'];
  const opened = model.expand('/');
  service.answers.shift()!();
  await opened;
  expect(model.rowCount).toBe(3);
  const early = model.refresh('/');
  service.names = ['stays'];
  const late = model.refresh('/');
  const [overtaken, newest] = service.answers.splice(0);
  newest!();
  await late;
  overtaken!();
  await early;
  expect(model.rowCount).toBe(2);
  expect(model.row(1)?.name).toBe('stays');
});
