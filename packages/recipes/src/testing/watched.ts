/** Reports whether a promise has settled. */
export function watched(promise: Promise<unknown>): { isSettled: boolean } {
  const state = { isSettled: false };
  const settle = (): void => {
    state.isSettled = true;
  };
  promise.then(settle, settle);
  return state;
}
