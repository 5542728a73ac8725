/**
 * Locks, elections, queues, barriers, caches and groups on ZooKeeper, safe by construction.
 *
 * @module @meerkat/recipes
 */
export { Barrier } from './barriers/barrier.ts';
export { type Acquirable, Condition } from './barriers/condition.ts';
export { CountDownLatch } from './barriers/count-down-latch.ts';
export { CyclicBarrier, type Passage } from './barriers/cyclic-barrier.ts';
export { DoubleBarrier, type DoubleBarrierOptions } from './barriers/double-barrier.ts';
export type { Inside } from './barriers/inside.ts';
export { type Meeting, Rendezvous, type RendezvousOptions } from './barriers/rendezvous.ts';
export { Cache, type ChangesOptions } from './caches/cache.ts';
export type { CacheChange, CachedZnode, CacheOptions, CacheReads } from './caches/cached-znode.ts';
export type { CacheChanges } from './caches/change-feed.ts';
export { ChildrenCache } from './caches/children-cache.ts';
export { NodeCache } from './caches/node-cache.ts';
export { TreeCache, type TreeCacheOptions } from './caches/tree-cache.ts';
export {
  type Candidate,
  Election,
  type ElectionOptions,
  type Leadership,
  type RunOptions,
} from './election/election.ts';
export type { Presence } from './groups/certainty.ts';
export {
  Group,
  type GroupLayout,
  type GroupObservation,
  type GroupOptions,
  type GroupView,
  type JoinOptions,
  type Member,
  type Membership,
} from './groups/group.ts';
export { type Message, Messenger, type MessengerOptions } from './groups/messenger.ts';
export { type Binding, ClaimedName, NameService, type NameServiceOptions } from './groups/name-service.ts';
export { PersistentEphemeral, type PersistentEphemeralOptions } from './groups/persistent-ephemeral.ts';
export { PersistentTtl, type PersistentTtlOptions } from './groups/persistent-ttl.ts';
export {
  type ProviderOptions,
  type Registration,
  type ServiceDescription,
  ServiceDiscovery,
  type ServiceDiscoveryOptions,
  type ServiceObservation,
  type ServiceProvider,
} from './groups/service-discovery.ts';
export { buildUri, type ServiceInstance, type ServiceType } from './groups/service-instance.ts';
export { anyOf, type DownPolicy, roundRobin, type ServiceStrategy, sticky } from './groups/service-strategies.ts';
export {
  type PartitionFunction,
  SetPartitioner,
  type SetPartitionerOptions,
  type Share,
} from './groups/set-partitioner.ts';
export { type Generation, type Guard, Guarded } from './kernel/guarded.ts';
export type { Held, Holding } from './kernel/holding.ts';
export type { Layout } from './kernel/layout.ts';
export type { Contending } from './kernel/line.ts';
export { NotHeldError } from './kernel/not-held-error.ts';
export type { HeldOptions, LockOptions, SharedHeldOptions, SharedLockOptions, ZnodeOptions } from './kernel/options.ts';
export { SequenceExhaustedError } from './kernel/overflow.ts';
export { compareBySequence, compareSequences, sequenceOf, withoutSequence } from './kernel/sequence.ts';
export { type Fence, type FencedStore, type FencedWriter, fence } from './locks/fence.ts';
export { Lock } from './locks/lock.ts';
export { type Lockable, MultiLock } from './locks/multi-lock.ts';
export { Mutex, type MutexOptions } from './locks/mutex.ts';
export type { PriorityContending } from './locks/priority-line.ts';
export { type PriorityAcquireOptions, PriorityLock, type PriorityLockOptions } from './locks/priority-lock.ts';
export { type ReadWriteContending, ReadWriteLock, type ReadWriteLockOptions } from './locks/read-write-lock.ts';
export { type LeaseHolder, Semaphore, type SemaphoreOptions } from './locks/semaphore.ts';
export type { Migration, MigrationOperation } from './migrations/migration-digest.ts';
export {
  MigrationMismatchError,
  type MigrationReport,
  Migrations,
  type MigrationsOptions,
} from './migrations/migrations.ts';
export { type DelayedPutOptions, DelayQueue, type DelayQueueOptions } from './queues/delay-queue.ts';
export { IdQueue, type IdQueueOptions } from './queues/id-queue.ts';
export type { ItemQueue, QueueOptions } from './queues/item-queue.ts';
export type { QueueLayout } from './queues/layout.ts';
export { PriorityQueue, type PutOptions } from './queues/priority-queue.ts';
export { Queue } from './queues/queue.ts';
export type { QueueItem } from './queues/queue-item.ts';
export {
  type AtomicUpdate,
  AtomicValue,
  type AtomicValueOptions,
  type CounterOptions,
  type TurnLock,
} from './values/atomic-value.ts';
export { Configuration, type ConfigurationOptions, type ConfigurationVersion } from './values/configuration.ts';
export { AtomicLong, Counter, FloatCounter } from './values/counters.ts';
export { decimalFloat, decimalInteger, int32, int64 } from './values/numbers.ts';
export { type PublishedEntries, PublishedSet, type PublishedSetOptions } from './values/published-set.ts';
export { SharedCount, SharedValue, type SharedValueOptions, type VersionedValue } from './values/shared-value.ts';
