import type { ZnodeTable } from './znode-table.ts';

/** What may be read of the table by all who have a tree. */
export type Znodes = Pick<
  ZnodeTable,
  | 'aclOf'
  | 'childCountOf'
  | 'count'
  | 'dataLengthOf'
  | 'dataStartOf'
  | 'digestOf'
  | 'find'
  | 'findByHash'
  | 'firstChildOf'
  | 'getStatInt'
  | 'getStatLong'
  | 'kindOf'
  | 'nextSiblingOf'
  | 'pageOf'
  | 'parentOf'
  | 'pathBytesOf'
  | 'pathOf'
  | 'replyStartOf'
  | 'sequenceOf'
  | 'statStartOf'
  | 'writePath'
>;
