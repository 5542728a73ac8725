import type { ZnodeTable } from './znode-table.ts';

/** Read access to the table, for everything that has a tree. */
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
