/** One thing that is to be known before servers are replaced. */
export interface MigrationNote {
  /** `stop`: it does not work like this; `change`: it will behave otherwise; `fact`: as it is. */
  readonly level: 'stop' | 'change' | 'fact';
  readonly where: string;
  readonly text: string;
}
