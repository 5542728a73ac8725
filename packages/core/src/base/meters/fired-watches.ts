import { EventType } from '@meerkat/protocol';
import { Histogram } from './histogram.ts';

/** How many watches one event has fired, by its type; events without watches are not counted. */
export class FiredWatches {
  readonly created: Histogram = new Histogram();
  readonly deleted: Histogram = new Histogram();
  readonly dataChanged: Histogram = new Histogram();
  readonly childrenChanged: Histogram = new Histogram();

  onFired(type: EventType, watches: number): void {
    switch (type) {
      case EventType.nodeCreated:
        this.created.add(watches);
        return;
      case EventType.nodeDeleted:
        this.deleted.add(watches);
        return;
      case EventType.nodeDataChanged:
        this.dataChanged.add(watches);
        return;
      case EventType.nodeChildrenChanged:
        this.childrenChanged.add(watches);
        return;
      default:
        return;
    }
  }
}
