import { mkdir, mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { DescribingReader } from '../../apps/worker-agent/src/models/describing.js';
import { HeaderReader } from '../../apps/worker-agent/src/models/header-reader.js';
import { scan } from '../../apps/worker-agent/src/models/scan.js';
import { makeModel } from '../../apps/worker-agent/src/make-model/index.js';

/** Times the scan of 10,000 files in 2,500 folders: headers unknown, then known, then one file changed. */
const FILES = 10_000;
const PER_FOLDER = 4;

const root = await mkdtemp(join(tmpdir(), 'berth-scan-bench-'));
const source = join(root, 'made.gguf');
try {
  const models = join(root, 'models');
  await makeModel({ preset: 'embed', file: source });
  const bytes = await readFile(source);
  for (let i = 0; i < FILES / PER_FOLDER; i++) {
    const folder = join(models, `owner-${i % 50}`, `repo-${i}`);
    await mkdir(folder, { recursive: true });
    for (const label of ['F16', 'Q8_0', 'Q6_K', 'Q4_K_M']) {
      await writeFile(join(folder, `model-${label}.gguf`), bytes);
    }
  }
  const roots = [{ name: 'models' as const, path: models }];
  const memory = join(root, 'headers.json');
  const describing = new DescribingReader();
  const timed = async (what: string, headers: HeaderReader) => {
    const before = headers.reads;
    const cpu = process.cpuUsage();
    const started = performance.now();
    const found = await scan(roots, { headers, describing }, Date.now);
    const seconds = (performance.now() - started) / 1000;
    const { user, system } = process.cpuUsage(cpu);
    const files = found.models.flatMap(({ model }) => model.artifacts.flatMap((a) => a.files)).length;
    console.log(
      `${what.padEnd(28)} ${seconds.toFixed(2).padStart(7)} s  ${((user + system) / 1e6).toFixed(2).padStart(7)} s of processor  ` +
        `${String(files).padStart(6)} files  ${String(headers.reads - before).padStart(6)} headers read`,
    );
  };
  console.log(`${FILES} files, load ${loadavg()[0]?.toFixed(1)}; budget of a scan 3 s`);
  const first = new HeaderReader(memory);
  await timed('the first ever', first);
  await timed('again, nothing changed', first);
  const changed = join(models, 'owner-0', 'repo-0', 'model-F16.gguf');
  await utimes(changed, new Date(), new Date());
  await timed('again, one file changed', first);
  await first.save();
  await first.close();
  const second = new HeaderReader(memory);
  await timed('after a restart', second);
  await second.close();
} finally {
  await rm(root, { recursive: true, force: true });
}
