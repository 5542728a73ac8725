/** Says whether a promise has settled by now. */
export function watched(promise: Promise<unknown>): { isSettled: boolean } {
  const state = { isSettled: false };
  const settle = (): void => {
    state.isSettled = true;
  };
  promise.then(settle, settle);
  return state;
}
