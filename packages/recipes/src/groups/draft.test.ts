import { ConnectionLossError, NoAuthError } from '@meerkat/client';
import { expect, test } from 'vitest';
import { Draft } from './draft.ts';

const ABOUT = { operation: 'set', path: '/a' } as const;
const refusal = new NoAuthError({ ...ABOUT, outcome: 'not-applied' });
const loss = new ConnectionLossError({ ...ABOUT, outcome: 'unknown' });

test('a refusal says that data may have been written only if a reply to an attempt before it was lost', () => {
  const draft = new Draft('x');
  expect(draft.failed(refusal, '/a')).toMatchObject({ code: 'NOAUTH', outcome: 'not-applied' });
  draft.failed(loss, '/a');
  expect(draft.failed(refusal, '/a')).toMatchObject({ code: 'NOAUTH', outcome: 'unknown' });
  draft.written();
  expect(draft.failed(refusal, '/a')).toMatchObject({ outcome: 'not-applied' });
});
