/** The values in the queues of these tests. */
export interface Job {
  readonly producer: number;
  readonly number: number;
}

export function keyOf({ producer, number }: Job): string {
  return `${producer}/${number}`;
}
