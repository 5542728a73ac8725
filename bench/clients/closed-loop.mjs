// A closed loop: `depth` operations in flight; each reply starts the next one.

/**
 * Runs `workload`; only operations after `warmUpSeconds` count.
 *
 * CPU seconds are user and system time of all threads of the process. Latencies are taken only with one operation in
 * flight: with more they would measure the queue.
 */
export async function runClosedLoop(workload, { depth, warmUpSeconds, seconds }) {
  const latencies = depth === 1 ? [] : null;
  const count = { steps: 0 };
  const window = { isOpen: false, isOver: false };
  const loops = Array.from({ length: depth }, () =>
    latencies === null ? spin(workload, count, window) : spinTimed(workload, count, window, latencies),
  );
  const figures = await Promise.race([measureWindow(count, window, { warmUpSeconds, seconds }), ...loops]);
  await Promise.all(loops);
  await workload.verify();
  const operations = figures.steps * workload.operations;
  return {
    perSecond: operations / figures.seconds,
    perCpuSecond: operations / figures.cpuSeconds,
    ...(latencies === null ? {} : percentiles(latencies)),
  };
}

async function measureWindow(count, window, { warmUpSeconds, seconds }) {
  await delay(warmUpSeconds);
  window.isOpen = true;
  const before = { steps: count.steps, ms: performance.now(), cpu: process.cpuUsage() };
  await delay(seconds);
  const cpu = process.cpuUsage(before.cpu);
  const elapsedMs = performance.now() - before.ms;
  window.isOpen = false;
  window.isOver = true;
  return {
    steps: count.steps - before.steps,
    seconds: elapsedMs / 1000,
    cpuSeconds: (cpu.user + cpu.system) / 1e6,
  };
}

/** Resolves after the window; rejects on the first wrong answer. */
function spin(workload, count, window) {
  return new Promise((resolve, reject) => {
    const done = (error) => {
      if (error) {
        window.isOver = true;
        reject(error);
        return;
      }
      count.steps++;
      if (window.isOver) resolve();
      else workload.step(done);
    };
    workload.step(done);
  });
}

function spinTimed(workload, count, window, latencies) {
  let startedMs = performance.now();
  const timed = {
    step: (done) => {
      startedMs = performance.now();
      workload.step((error) => {
        if (window.isOpen) latencies.push((performance.now() - startedMs) * 1000);
        done(error);
      });
    },
  };
  return spin(timed, count, window);
}

function percentiles(latencies) {
  const sorted = Float64Array.from(latencies).sort();
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  return { p50Us: at(0.5), p99Us: at(0.99) };
}

const delay = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));
