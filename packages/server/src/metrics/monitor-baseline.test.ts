import { expect, test } from 'vitest';
import { CLOCK, NO_TLS } from '../admin/testing/asked-words.ts';
import { view } from '../admin/testing/server-views.ts';
import { Metrics } from './metrics.ts';
import { monitorValues } from './monitor.ts';
import { MonitorBaseline } from './monitor-baseline.ts';

test('srst sets back what is counted for each namespace', () => {
  const source = { view: view(), metrics: new Metrics(CLOCK, 1000), tls: NO_TLS.tls };
  const baseline = new MonitorBaseline();
  const shown = (): Readonly<Record<string, unknown>> => {
    const ofNamespace = [...monitorValues(source, baseline)].filter(({ key }) => /(^|_)app_/.test(key));
    return Object.fromEntries(ofNamespace.map(({ key, value }) => [key, Number(value)]));
  };
  const change = (count: number): void => {
    for (let i = 0; i < count; i++) source.view.meters.namespaces.onRead('/app/a', 100);
    source.metrics.quotaExceeded.set('app', (source.metrics.quotaExceeded.get('app') ?? 0) + count);
  };
  change(3);
  expect(shown()).toMatchObject({ cnt_app_read_per_namespace: 3, app_quota_exceeded_error_per_namespace: 3 });
  baseline.reset(source);
  expect(shown()).toMatchObject({ cnt_app_read_per_namespace: 0, app_quota_exceeded_error_per_namespace: 0 });
  change(1);
  expect(shown()).toMatchObject({ cnt_app_read_per_namespace: 1, app_quota_exceeded_error_per_namespace: 1 });
});
