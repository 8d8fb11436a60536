import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { readGpus } from './read-gpus.js';
import { runTool, ToolStream } from './tool.js';

let folder: string;
const path = process.env['PATH'];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-tool-'));
  process.env['PATH'] = `${folder}:/usr/bin:/bin`;
});
afterEach(async () => {
  process.env['PATH'] = path;
  await rm(folder, { recursive: true, force: true });
});

async function tool(name: string, script: string): Promise<void> {
  await writeFile(join(folder, name), `#!/bin/sh\n${script}\n`);
  await chmod(join(folder, name), 0o755);
}

it('a driver that hangs is unknown after its deadline, and its tool is ended', async () => {
  await tool('nvidia-smi', 'echo $$ > "$(dirname "$0")/pid"; exec sleep 600');
  expect(await runTool('nvidia-smi', [], 300)).toEqual({ kind: 'silent', text: '' });
  const hanging: typeof runTool = (command, args) => runTool(command, args, 300);
  expect(await readGpus(hanging, 'linux')).toEqual({ readings: [], silent: ['nvidia-smi'] });
});

it('a driver that fails is unknown, one that is not installed is none', async () => {
  await tool(
    'nvidia-smi',
    'echo "NVIDIA-SMI has failed because it could not communicate with the driver."; exit 9',
  );
  expect((await readGpus(runTool, 'linux')).silent).toEqual(['nvidia-smi']);
  await rm(join(folder, 'nvidia-smi'));
  expect(await readGpus(runTool, 'linux')).toEqual({ readings: [], silent: [] });
});

it('a tool that prints by itself is heard line by line, until it is stopped', async () => {
  await tool('ticker', 'i=0; while :; do echo "line $i"; i=$((i+1)); sleep 0.05; done');
  const lines: string[] = [];
  const stream = await new Promise<ToolStream>((resolve) => {
    const started: ToolStream = new ToolStream('ticker', [], (line) => {
      if (lines.push(line) === 3) resolve(started);
    });
  });
  stream.stop();
  expect(lines.slice(0, 3)).toEqual(['line 0', 'line 1', 'line 2']);
});
