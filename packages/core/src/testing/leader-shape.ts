import type { QuorumShape } from '../election/quorum.ts';
import type { ZabOptions } from '../zab/zab-options.ts';

export interface LeaderShape {
  readonly serverId: number;
  readonly quorum: QuorumShape;
  /** Content of its database: `(1,1)..(1,5)`. */
  readonly history: string;
  /** How many of the newest txns are also in memory. */
  readonly memory: number;
  /** The first txn in its log; null: the first of the history. */
  readonly logFrom: string | null;
  readonly currentEpoch: number;
  readonly acceptedEpoch: number;
  readonly configText: string;
  readonly options: Partial<ZabOptions>;
  readonly needSnapshot: Set<number> | undefined;
}

export const LEADER_SHAPE: LeaderShape = {
  serverId: 3,
  quorum: { voters: [1, 2, 3] },
  history: '(1,1)..(1,5)',
  memory: 100,
  logFrom: null,
  currentEpoch: 1,
  acceptedEpoch: 1,
  configText: 'version=0',
  options: {},
  needSnapshot: undefined,
};
